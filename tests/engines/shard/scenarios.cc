#include "tests/engines/shard/scenarios.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace farside::index::shard {

std::string TwoKeysWithOneTag() {
  Stage stage({{"slots", "2"}, {"overflow_slots", "2"}});
  Member& member = stage.Enter();
  const auto same = [](Candidate candidate) {
    return [=](const KeyHash& hash) {
      return TagOf({}, hash.number(candidate), 1) == TagOf({}, HashOf("k0").number(candidate), 1);
    };
  };
  ExpectedValues expected;
  expected.Put(stage, member, "k0", "zero");
  expected.Put(stage, member, KeyFor(same(Candidate::kLevel1), 1), "one");
  expected.CheckAll(stage, member);
  expected.Delete(stage, member, "k0");
  expected.CheckAll(stage, member);
  expected.Put(stage, member, "k1", "fills");
  expected.Put(stage, member, "k0", "to level 2");
  expected.Put(stage, member, KeyFor(same(Candidate::kFirstChoice), 1), "beside it");
  expected.CheckAll(stage, member);
  return stage.End();
}

std::string EachNeedsTheLockOfTheOther() {
  Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});
  Member& one = stage.Enter();
  Member& other = stage.Enter();
  stage.GrowTo(2);
  const auto in = [](uint64_t unit) {
    return [=](const KeyHash& hash) {
      return (hash.number(Candidate::kLevel1) & 1) == unit &&
             (hash.number(Candidate::kFirstChoice) & 1) != unit &&
             (hash.number(Candidate::kSecondChoice) & 1) != unit;
    };
  };
  ExpectedValues expected;
  for (uint64_t unit = 0; unit < 2; ++unit) expected.Put(stage, one, KeyFor(in(unit)), "old");
  stage.Announce({&one, &other});
  std::optional<Task<PutOutcome>> put(one.Put(KeyFor(in(0), 1), "new"));
  std::optional<Task<PutOutcome>> other_put(other.Put(KeyFor(in(1), 1), "new"));
  put->Start();
  other_put->Start();
  stage.world.Drive([&] { return put->done() && other_put->done(); });
  for (auto* task : {&put, &other_put}) {
    if (!(*task)->done()) return "they wait for each other";
    const Result<PutOutcome> end = (*task)->TakeResult();
    if (!end.ok()) return end.error().ToString();
    task->reset();
  }
  for (uint64_t unit = 0; unit < 2; ++unit) expected.Holds(KeyFor(in(unit), 1), "new");
  expected.CheckAll(stage, one);
  expected.CheckList(stage, other);
  return stage.End();
}

std::string CursorWhileTheTableGrows() {
  for (size_t grows_at = 0; grows_at < 8; ++grows_at) {
    Stage stage({{"slots", "2"}, {"overflow_slots", "1"}});
    Member& reader = stage.Enter();
    Member& writer = stage.Enter();
    stage.GrowTo(3);
    std::set<std::string> missing;
    for (int i = 0; i < 24; ++i) {
      missing.insert(fmt::format("k{}", i));
      writer.Now(writer.Put(fmt::format("k{}", i), "old"));
    }
    Cursor cursor;
    for (size_t pages = 0; pages < 1000; ++pages) {
      if (pages >= grows_at && stage.world.state().version() < 6) {
        // The reader learns of every announcement, or nothing would be split; but not that it counts.
        stage.Announce({&reader, &writer});
        stage.Activate();
        stage.Learn(writer);
        for (int i = 0; i < 24; ++i) writer.Now(writer.Put(fmt::format("k{}", i), "new"));
      }
      const std::vector<Record> page = reader.Now(reader.Page(cursor));
      if (page.empty()) break;
      for (const Record& record : page) missing.erase(record.key);
    }
    if (!missing.empty())
      return fmt::format("the cursor missed {} keys, such as {}", missing.size(), *missing.begin());
    const std::string problem = stage.End();
    if (!problem.empty()) return problem;
  }
  return "";
}

namespace {

class BlocksReached final : public pool::Reach {
 public:
  void Mark(fabric::FarAddr, uint64_t) override {}
  void MarkBlock(fabric::FarAddr block, uint64_t, uint64_t) override { blocks.insert(block.offset); }
  std::set<uint64_t> blocks;
};

}  // namespace

std::string WalkWhileTheTableGrows() {
  bool more = true;
  for (int steps = 0; more; steps += 3) {
    Stage stage({{"slots", "2"}, {"overflow_slots", "1"}});
    Member& walker = stage.Enter();
    Member& writer = stage.Enter();
    stage.GrowTo(3);
    for (int i = 0; i < 12; ++i) writer.Now(writer.Put(fmt::format("k{}", i), "old"));
    BlocksReached all;
    writer.Now(writer.WalkTable(all));
    stage.Announce({&walker, &writer});
    stage.WaitForGrace();
    BlocksReached reached;
    Task<Done> walk = walker.WalkTable(reached);
    walk.Start();
    for (int step = 0; step < steps && !walk.done(); ++step) stage.world.fabric.Step();
    more = !walk.done();
    if (more) {
      stage.world.fabric.Sleep(walker.client().id(), std::chrono::milliseconds(4));
      stage.LookAfterGrace();
      stage.Learn(writer);
      // New keys, so that the others keep their blocks.
      for (int i = 12; i < 40; ++i) writer.Now(writer.Put(fmt::format("k{}", i), "new"));
    }
    stage.world.Drive([&] { return walk.done(); });
    const Result<Done> end = walk.TakeResult();
    if (!end.ok()) return end.error().ToString();
    for (const uint64_t block : all.blocks) {
      if (!reached.blocks.contains(block)) return fmt::format("the walk missed the block at {:#x}", block);
    }
    const std::string problem = stage.End();
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string CachedBlockIsReused(uint64_t seeds, bool ordered_reads) {
  constexpr int kReaders = 16;
  bool more = true;
  for (uint64_t run = 0; more || run % seeds != 0; ++run) {
    const uint64_t steps = run / seeds;
    const uint64_t seed = run % seeds + 1;
    if (seed == 1) more = false;
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = ordered_reads;
    Stage stage({{"slots", "8"}, {"overflow_slots", "2"}, {"cache", "16"}}, options);
    Member& reader = stage.Enter();
    Member& writer = stage.Enter();
    const auto move_on = [&] {
      for (int round = 0; round < 6; ++round) {
        for (Member* member : {&reader, &writer}) member->Now(member->Maintain());
        stage.SyncGrower();
      }
    };
    writer.Now(writer.Put("k", "oldest"));
    stage.Learn(reader);  // the first search reads the directory, and remembers nothing
    reader.Now(reader.Get("k"));
    writer.Now(writer.Put("k", "older!"));
    move_on();
    std::optional<Task<PutOutcome>> put(writer.Put("k", "newest"));
    put->Start();
    for (uint64_t step = 0; step < steps && !put->done(); ++step) stage.world.fabric.Step();
    more |= !put->done();
    std::vector<Task<std::string>> gets;
    for (int i = 0; i < kReaders; ++i) gets.push_back(reader.Get("k"));
    for (Task<std::string>& get : gets) get.Start();
    const auto done = [](const auto& task) { return task.done(); };
    stage.world.Drive([&] { return put->done() && std::all_of(gets.begin(), gets.end(), done); });
    put.reset();
    for (Task<std::string>& get : gets) {
      const Result<std::string> found = get.TakeResult();
      if (!found.ok()) stage.world.Complain(found.error().ToString());
      if (found.ok() && *found != "older!" && *found != "newest")
        stage.world.Complain("a reader finds " + *found);
    }
    gets.clear();
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}, after {} steps of the put: {}", seed, steps, problem);
  }
  return "";
}

namespace {

// Gets a key again and again, and returns what it was when it was not what it should be.
Task<std::string> GetUntil(Member& member, std::string key, std::string value, const bool& over) {
  std::string found = value;
  while (!over && found == value) found = co_await member.Get(key);
  co_return found;
}

}  // namespace

std::string ReadersMeetASplit(uint64_t seeds) {
  constexpr int kReaders = 16;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed};
    options.chaos.tear = 768;
    Stage stage({{"slots", "16"}, {"overflow_slots", "2"}}, options);
    Member& splitter = stage.Enter();
    Member& reader = stage.Enter();
    for (int i = 0; i < 8; ++i) splitter.Now(splitter.Put(KeyThat(true, i), "old"));
    const std::string stays = KeyThat(false, 0);
    splitter.Now(splitter.Put(stays, "old"));
    stage.Announce({&splitter, &reader});
    stage.Activate();
    stage.Learn(splitter);
    stage.Learn(reader);
    if (stage.VersionOf(0) != 1) return "there is nothing to split";
    std::optional<Task<PutOutcome>> put(splitter.Put(KeyThat(false, 1), "splits"));
    bool over = false;
    std::vector<Task<std::string>> gets;
    for (int i = 0; i < kReaders; ++i) gets.push_back(GetUntil(reader, stays, "old", over));
    for (Task<std::string>& get : gets) get.Start();
    put->Start();
    stage.world.Drive([&] { return put->done(); });
    over = true;
    const auto done = [](const auto& task) { return task.done(); };
    stage.world.Drive([&] { return std::all_of(gets.begin(), gets.end(), done); });
    for (Task<std::string>& get : gets) {
      const Result<std::string> found = get.TakeResult();
      if (!found.ok()) stage.world.Complain(found.error().ToString());
      if (found.ok() && *found != "old")
        stage.world.Complain("a reader of a key that is there throughout finds it " + *found);
    }
    put.reset();
    gets.clear();
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

std::string LateReaderMeetsSeveralVersions() {
  Stage stage({{"slots", "8"}, {"overflow_slots", "2"}}, {}, {{"max_load", "0.1"}, {"burst", "8"}});
  Member& late = stage.Enter();
  Member& splitter = stage.Enter();
  const auto key_of = [](uint64_t low_bits) {
    return KeyFor([=](const KeyHash& hash) { return (hash.hash() & 3) == low_bits; });
  };
  ExpectedValues expected;
  for (uint64_t low_bits = 0; low_bits < 4; ++low_bits)
    expected.Put(stage, splitter, key_of(low_bits), "old");
  stage.Announce({&late, &splitter});
  if (stage.world.state().steps() < 2) return "the resize goes one version only";
  stage.Activate();
  stage.Learn(splitter);
  expected.Put(stage, splitter, key_of(0), "splits");
  if (stage.VersionOf(0) != stage.world.state().version()) return "the unit is not split";
  expected.Check(stage, late, key_of(2));
  expected.CheckAll(stage, late);
  expected.CheckAll(stage, splitter);
  expected.CheckList(stage, late);
  return stage.End();
}

std::string ReadersMeetAnAnnouncement(uint64_t seeds) {
  constexpr int kReaders = 8;
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    more = false;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      WorldOptions options{.seed = seed};
      options.chaos.tear = 896;
      Stage stage({{"slots", "8"}, {"overflow_slots", "2"}}, options);
      stage.SyncGrower();  // reports its record, which is reason enough
      Member& announcer = stage.Enter("0.000001");
      Member& reader = stage.Enter();  // has not read it yet
      Task<Done> announcing = LookThrice(announcer);
      announcing.Start();
      for (uint64_t step = 0; step < steps && !announcing.done(); ++step) stage.world.fabric.Step();
      more |= !announcing.done();
      std::vector<Task<std::string>> gets;
      for (int i = 0; i < kReaders; ++i) gets.push_back(reader.Get(Stage::kSeed));
      for (Task<std::string>& get : gets) get.Start();
      const auto done = [](const auto& task) { return task.done(); };
      stage.world.Drive([&] { return announcing.done() && std::all_of(gets.begin(), gets.end(), done); });
      for (Task<std::string>& get : gets) {
        const Result<std::string> found = get.TakeResult();
        if (!found.ok()) stage.world.Complain(found.error().ToString());
        if (found.ok() && *found != "grows") stage.world.Complain("a reader finds " + *found);
      }
      if (stage.world.state().phase() != Phase::kAnnounced) stage.world.Complain("nothing was announced");
      if (!stage.world.problem.empty())
        return fmt::format("seed {}, after {} steps: {}", seed, steps, stage.world.problem);
    }
  }
  return "";
}

std::string TwoInsertAKeyWhileAThirdSplits(uint64_t seeds) {
  const std::string stays = KeyFor([](const KeyHash& hash) { return (hash.hash() & 1) == 0; });
  const std::string moves = KeyFor([](const KeyHash& hash) {
    return (hash.hash() & 1) == 1 && (hash.number(Candidate::kFirstChoice) & 1) == 0 &&
           (hash.number(Candidate::kSecondChoice) & 1) == 0;
  });
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = true;
    Stage stage({{"slots", "1"}, {"overflow_slots", "1"}}, options);
    Member& late = stage.Enter();
    Member& splitter = stage.Enter();
    Member& knower = stage.Enter();
    ExpectedValues expected;
    expected.Put(stage, splitter, stays, "old");
    stage.Announce({&late, &splitter, &knower});
    stage.Activate();
    stage.Learn(splitter);
    stage.Learn(knower);
    Task<bool> one = late.Insert(moves, "of late");
    Task<bool> other = knower.Insert(moves, "of knower");
    Task<PutOutcome> put = splitter.Put(stays, "new");
    one.Start();
    put.Start();
    other.Start();
    stage.world.Drive([&] { return one.done() && other.done() && put.done(); });
    const Result<bool> first = one.TakeResult();
    const Result<bool> second = other.TakeResult();
    const Result<PutOutcome> split = put.TakeResult();
    if (!first.ok() || !second.ok() || !split.ok()) return "a client gave up";
    if (*first == *second)
      return fmt::format("seed {}: {} inserted the key", seed, *first ? "both" : "neither");
    expected.Holds(stays, "new");
    expected.Holds(moves, *first ? "of late" : "of knower");
    expected.CheckAll(stage, late);
    expected.CheckList(stage, knower);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

std::string ManyOperationsInFlight(uint64_t seeds, const std::string& burst) {
  constexpr int kRounds = 14;
  constexpr int kInFlight = 12;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions chaotic{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    chaotic.chaos.ordered_reads = true;
    World world(chaotic);
    OptionMap options = {
        {"slots", seed % 2 == 0 ? "1" : "4"}, {"overflow_slots", "2"}, {"max_load", "0.4"}, {"burst", burst}};
    if (seed % 3 == 0) options["cache"] = "8";
    Member one(world, options);
    Member other(world, options);
    // Both know that the table was made: a client that learns of it while it waits has to look anew
    // (shard/10).
    for (Member* member : {&one, &other}) {
      Task<Done> synced = member->Maintain();
      synced.Start();
      world.Drive([&] { return synced.done(); });
    }
    std::map<std::string, std::string> stored;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Task<PutOutcome>> puts;
      std::vector<Task<bool>> inserts;
      int contended = 0;
      for (int i = 0; i < kInFlight; ++i) {
        for (Member* member : {&one, &other}) {
          const std::string key = fmt::format("k{}.{}.{}", round, i, member == &one ? 1 : 2);
          stored[key] = "of " + key;
          puts.push_back(member->Put(key, stored[key]));
        }
        if (i % 2 != 0) continue;
        const std::string key = fmt::format("contended{}.{}", round, i);
        stored[key] = "once";
        ++contended;
        for (Member* member : {&one, &other}) inserts.push_back(member->Insert(key, "once"));
      }
      std::vector<Task<Done>> maintains;
      for (Member* member : {&one, &other}) maintains.push_back(member->Maintain());
      for (Task<PutOutcome>& put : puts) put.Start();
      for (Task<Done>& maintain : maintains) maintain.Start();
      for (Task<bool>& insert : inserts) insert.Start();
      const auto done = [](const auto& task) { return task.done(); };
      world.Drive([&] {
        return std::all_of(puts.begin(), puts.end(), done) &&
               std::all_of(inserts.begin(), inserts.end(), done) &&
               std::all_of(maintains.begin(), maintains.end(), done);
      });
      for (Task<PutOutcome>& put : puts) {
        const Result<PutOutcome> end = put.TakeResult();
        if (!end.ok()) return fmt::format("seed {}: {}", seed, end.error().ToString());
      }
      int applied = 0;
      for (Task<bool>& insert : inserts) {
        const Result<bool> end = insert.TakeResult();
        if (!end.ok()) return fmt::format("seed {}: {}", seed, end.error().ToString());
        applied += *end ? 1 : 0;
      }
      if (applied != contended)
        return fmt::format("seed {}: {} inserts of {} keys were applied", seed, applied, contended);
      for (Member* member : {&one, &other, &one, &other}) member->Now(member->Maintain());
    }
    for (const auto& [key, value] : stored) {
      const std::string found = other.Now(other.Get(key));
      if (found != value) return fmt::format("seed {}: {} holds {}", seed, key, found);
    }
    if (one.Now(one.List()).size() != stored.size())
      return fmt::format("seed {}: the cursor miscounts", seed);
    one.Now(one.Verify());
    if (world.state().version() < 3) return "the table has not grown";
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

}  // namespace farside::index::shard
