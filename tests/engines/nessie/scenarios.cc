#include "tests/engines/nessie/scenarios.h"

#include <vector>

#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {

// Of a table of 256 slots, a cursor reads some at a time.
std::string CursorMeetsAMigration() {
  const OptionMap options = {{"slots", "256"}, {"sweep", "0"}};
  const Shape shape{.initial_bits = 8};
  const auto key_at = [&](uint64_t primary, uint64_t secondary, int nth = 0) {
    return KeyFor(
        [&](const KeyHash& hash) {
          return hash.SlotOf(shape, Candidate::kPrimary, 1) == primary &&
                 hash.SlotOf(shape, Candidate::kSecondary, 1) == secondary;
        },
        nth);
  };
  const std::string key = key_at(3, 200);
  const std::string blocker = key_at(3, 100);
  const std::string other = key_at(5, 101);
  const std::string taken = key_at(250, 251);
  const std::string displaces = key_at(200, 250);
  World world;
  Member writer(world, options);
  Member reader(world, options);
  writer.Now(writer.Put(blocker, "0"));
  writer.Now(writer.Put(key, "0"));
  writer.Now(writer.Delete(blocker));
  writer.Now(writer.Put(other, "0"));
  writer.Now(writer.Put(taken, "0"));
  Cursor cursor;
  std::vector<Record> all = reader.Now(reader.Page(cursor));
  if (all.size() != 1 || all[0].key != other) return "the first page is another one";
  writer.Now(writer.Put(displaces, "0"));
  for (bool more = true; more;) {
    const std::vector<Record> page = reader.Now(reader.Page(cursor));
    all.insert(all.end(), page.begin(), page.end());
    more = !page.empty();
  }
  bool found = false;
  for (const Record& record : all) found = found || record.key == key;
  if (!found) world.Complain("the cursor misses a key that was there all the time");
  return world.problem;
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
