#include "tests/engines/nessie/scenarios.h"

#include <algorithm>
#include <vector>

#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {

namespace {

std::string KeyIn(const Shape& shape, uint64_t primary, uint64_t secondary) {
  return KeyFor([&](const KeyHash& hash) {
    return hash.SlotOf(shape, Candidate::kPrimary, 1) == primary &&
           hash.SlotOf(shape, Candidate::kSecondary, 1) == secondary;
  });
}

bool HasKey(const std::vector<Record>& records, const std::string& key) {
  return std::any_of(records.begin(), records.end(),
                     [&key](const Record& record) { return record.key == key; });
}

// A table of four ranges, as a cursor reads them, with a key in the first one and two in the last one.
class FourRanges {
 public:
  explicit FourRanges(const WorldOptions& options = {}) : world_(options) {
    const std::string blocker = KeyIn(kShape, 3, 100);
    writer_.Now(writer_.Put(blocker, "0"));
    writer_.Now(writer_.Put(moves_, "0"));
    writer_.Now(writer_.Delete(blocker));
    writer_.Now(writer_.Put(first_, "0"));
    writer_.Now(writer_.Put(last_, "0"));
  }

  Member& writer() { return writer_; }
  World& world() { return world_; }
  // From slot 200 to slot 3.
  void Move() { writer_.Now(writer_.Put(KeyIn(kShape, 200, 250), "0")); }
  // The rest of the records.
  void Read(Member& reader, Cursor& cursor, std::vector<Record>& all) {
    while (true) {
      const std::vector<Record> page = reader.Now(reader.Page(cursor));
      if (page.empty()) break;
      all.insert(all.end(), page.begin(), page.end());
    }
  }
  // What went wrong, or nothing.
  std::string ProblemWith(const std::vector<Record>& all) {
    for (const std::string& key : {first_, moves_, last_}) {
      if (!HasKey(all, key)) world_.Complain("the cursor misses a key that was there all the time");
    }
    return world_.problem;
  }
  bool IsFirst(const std::vector<Record>& page) const { return page.size() == 1 && page[0].key == first_; }

  static constexpr Shape kShape{.initial_bits = 8};
  static inline const OptionMap kOptions = {{"slots", "256"}, {"sweep", "0"}};

 private:
  const std::string first_ = KeyIn(kShape, 5, 101);
  const std::string moves_ = KeyIn(kShape, 3, 200);
  const std::string last_ = KeyIn(kShape, 250, 251);
  World world_;
  Member writer_{world_, kOptions};
};

}  // namespace

std::string CursorMeetsAMigration() {
  FourRanges table;
  Member reader(table.world(), FourRanges::kOptions);
  Cursor cursor;
  std::vector<Record> all = reader.Now(reader.Page(cursor));
  if (!table.IsFirst(all)) return "the first page is another one";
  table.Move();
  table.Read(reader, cursor, all);
  return table.ProblemWith(all);
}

std::string CursorMeetsAnError() {
  bool more = true;
  for (uint64_t verb = 0; more; ++verb) {
    FourRanges table;
    Member reader(table.world(), FourRanges::kOptions);
    Cursor cursor;
    std::vector<Record> all = reader.Now(reader.Page(cursor));
    if (!table.IsFirst(all)) return "the first page is another one";
    table.Move();
    table.world().Arm(verb, FaultKind::kLoseCompletion);
    more = false;
    while (true) {
      const Result<std::vector<Record>> page = reader.Try(reader.Page(cursor));
      more = !page.ok();
      if (!page.ok() || page->empty()) break;
      all.insert(all.end(), page->begin(), page->end());
    }
    table.world().Disarm();
    if (more) table.Read(table.writer(), cursor, all);
    const std::string problem = table.ProblemWith(all);
    if (!problem.empty()) return fmt::format("an error at verb {}: {}", verb, problem);
  }
  return "";
}

// A chain of migrations in a table of one range: each of seven keys goes to the next line.
std::string KeysMoveInsideAReadOfACursor(uint64_t seeds) {
  const OptionMap options = {{"slots", "64"}, {"grow", "no"}};
  const Shape shape{.initial_bits = 6};
  const std::string displaces = KeyIn(shape, 3, 5);
  std::vector<std::string> keys = {KeyIn(shape, 5, 6), KeyIn(shape, 6, 5)};
  for (uint64_t slot = 3; slot + 8 < 64; slot += 8) keys.push_back(KeyIn(shape, slot, slot + 8));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions of_world{.seed = seed, .region_bytes = 1 << 20};
    of_world.chaos.tear = fabric::sim::kOneIn;
    of_world.chaos.ordered_reads = seed % 2 == 0;
    World world(of_world);
    Member member(world, options);
    for (const std::string& key : keys) member.Now(member.Put(key, "0"));
    Task<PutOutcome> put = member.Put(displaces, "0");
    put.Start();
    const uint64_t steps = seed % 200;
    for (uint64_t step = 0; step < steps && !put.done(); ++step) world.fabric.Step();
    const std::multimap<std::string, std::string> all = member.Now(member.List());
    world.Drive([&] { return put.done(); });
    if (!put.TakeResult().ok()) world.Complain("the put fails");
    for (const std::string& key : keys) {
      if (!all.contains(key)) world.Complain("the cursor misses a key that was there all the time");
    }
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

std::string TwoRemoveAClaim() {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    Play play;
    Member& migrator = play.Enter();
    Member& first = play.Enter();
    Member& second = play.Enter();
    StandsInSecondary(play);
    play.BeginUntil(migrator, Put(TakesSecondary(), "1"), [&] { return play.Has(0, Kind::kClaim, K()); });
    play.Stop(migrator);
    play.Begin(first, Update(K(), "2"), steps);
    more = !play.OverOf(first);
    play.Stop(first, std::chrono::milliseconds(2));
    play.Do(second, Put(TakesPrimary(), "3"));
    play.Finish();
    LetMemoryGo(play.world);
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("one stops after {} steps: {}", steps, problem);
  }
  return "";
}

std::string EntryIsGoneAtItsCommit() {
  for (const bool deletes : {false, true}) {
    Play play;
    Member& writer = play.Enter();
    if (deletes) play.Do(writer, Put(K(), "0"));
    const Word before = play.At(0);
    Task<bool> change = deletes ? writer.Delete(K()) : writer.Insert(K(), "1");
    change.Start();
    play.world.Drive([&] { return play.At(0).is(Kind::kPending) || change.done(); });
    play.Set(0, before);
    play.world.Drive([&] { return change.done(); });
    const Result<bool> answer = change.TakeResult();
    const bool is_there = play.Has(0, Kind::kLive, K());
    if (answer.ok() && is_there == deletes) return "a change is said to be done, and is not";
    if (!answer.ok() && answer.error().code() != ErrorCode::kFenced) return answer.error().ToString();
  }
  return "";
}

std::string MemoryComesBack() {
  for (const bool dies : {false, true}) {
    Play play;
    Member& first = play.Enter();
    Member& second = play.Enter();
    StandsInSecondary(play);
    for (int round = 0; round < 12; ++round) {
      play.DoAll(first, {Put(TakesSecondary(), "1"), Delete(TakesSecondary()), Put(K(), "of first")});
      play.DoAll(second, {Put(TakesPrimary(), "2"), Delete(TakesPrimary()), Update(K(), "of second")});
      if (round % 3 == 0) play.LetPass(std::chrono::milliseconds(2));
    }
    if (dies) play.Kill(second);
    const std::string problem = play.End();
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace farside::index::nessie
