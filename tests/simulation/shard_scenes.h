// Scenes for the shard table: what a few clients do to each other, step by step, where chance would need too long.
//
// Each returns what went wrong, or nothing. They are played with and without planted bugs.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/shard_world.h"

namespace farside::index::shard {

using fabric::sim::FaultKind;

inline std::vector<FaultKind> DeathsAtAVerb() {
  return {FaultKind::kCrashBefore, FaultKind::kCrashMid, FaultKind::kCrashAfter};
}

// What the keys of a scene are known to hold. One whose writer died holds one of two values.
class Ledger {
 public:
  void Put(Stage& stage, Member& member, const std::string& key, const std::string& value) {
    const Result<PutOutcome> put = member.Try(member.Put(key, value));
    if (!put.ok()) stage.world.Complain("put of " + key + ": " + put.error().ToString());
    known_[key] = {value, value};
  }
  void Delete(Stage& stage, Member& member, const std::string& key) {
    const Result<bool> deleted = member.Try(member.Delete(key));
    if (!deleted.ok()) stage.world.Complain("delete of " + key + ": " + deleted.error().ToString());
    known_[key] = {"absent", "absent"};
  }
  // Somebody died while it put.
  void MayHold(const std::string& key, const std::string& value) {
    if (!known_.contains(key)) known_[key].first = "absent";
    known_[key].second = value;
  }
  void Holds(const std::string& key, const std::string& value) { known_[key] = {value, value}; }
  void HoldsOneOf(const std::string& key, const std::string& one, const std::string& other) {
    known_[key] = {one, other};
  }
  void Check(Stage& stage, Member& member, const std::string& key) {
    const Result<std::string> found = member.Try(member.Get(key));
    if (!found.ok()) return stage.world.Complain("get of " + key + ": " + found.error().ToString());
    auto& [one, other] = known_[key];
    if (*found != one && *found != other) {
      stage.world.Complain(
          fmt::format("{} holds {}, not {}{}", key, *found, one, one == other ? "" : " or " + other));
    }
    one = other = *found;
  }
  void CheckAll(Stage& stage, Member& member) {
    for (const auto& [key, values] : known_) Check(stage, member, key);
  }
  // Every key once, with what it holds, and nothing else.
  void CheckList(Stage& stage, Member& member) {
    const Result<std::multimap<std::string, std::string>> all = member.Try(member.List());
    if (!all.ok()) return stage.world.Complain("cursor: " + all.error().ToString());
    size_t present = 1;  // Stage::kSeed
    for (const auto& [key, values] : known_) {
      const auto [from, to] = all->equal_range(key);
      const size_t count = std::distance(from, to);
      const bool absent = values.first == "absent";
      if (count != (absent ? 0 : 1))
        stage.world.Complain(fmt::format("the cursor returns {} {} times", key, count));
      if (count == 1 && from->second != values.first && from->second != values.second)
        stage.world.Complain(fmt::format("the cursor says that {} holds {}", key, from->second));
      present += absent ? 0 : 1;
    }
    if (all->size() != present)
      stage.world.Complain(fmt::format("the cursor returns {} records, not {}", all->size(), present));
  }

 private:
  std::map<std::string, std::pair<std::string, std::string>> known_;
};

struct SplitOptions {
  OptionMap shape = {{"slots", "8"}, {"overflow_slots", "2"}};
  uint32_t version = 1;  // when the keys are put; the units are split from there
  uint32_t behind = 1;   // resizes until they are split
  int keys = 4;
};

// Keys of one unit of level 1; a client that wants to put one of them dies at some verb, and so at some point of the split.
// One survivor knows the new version, one only that it was announced. Every verb in turn, every way to die.
inline std::string OwnerDiesInASplit(const SplitOptions& options) {
  for (const FaultKind kind : DeathsAtAVerb()) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      Stage stage(options.shape);
      Member& owner = stage.Enter();
      Member& writer = stage.Enter();
      Member& late = stage.Enter();
      stage.GrowTo(options.version);
      const uint64_t units = uint64_t{1} << (options.version - 1);
      const auto key_of = [&](bool moves, int nth) {
        return KeyFor(
            [&](const KeyHash& hash) {
              return (hash.hash() & (units - 1)) == 0 && ((hash.hash() & units) != 0) == moves;
            },
            nth);
      };
      Ledger ledger;
      for (int i = 0; i < options.keys; ++i) ledger.Put(stage, writer, key_of(i % 2 == 0, i / 2), "old");
      stage.GrowTo(options.version + options.behind - 1);
      stage.Announce({&owner, &writer, &late});
      stage.Activate();
      stage.Learn(owner);
      stage.Learn(writer);

      const uint64_t first = stage.world.fabric.verbs_posted();
      stage.world.Arm(verb, kind);
      const std::string stays = key_of(false, 0);
      owner.RunOrDie(owner.Put(stays, "dying"));
      more = owner.crashed() ||
             stage.world.fabric.verbs_posted() > first + verb;  // not every verb can be cut in two
      stage.world.Disarm();
      ledger.MayHold(stays, "dying");
      stage.Kill(owner);
      // A key that moves can be written as soon as the new unit is; whoever has heard of less must see it.
      ledger.Put(stage, writer, key_of(true, 0), "new");
      ledger.Check(stage, late, key_of(true, 0));
      ledger.CheckAll(stage, late);
      ledger.CheckAll(stage, writer);
      ledger.CheckList(stage, late);
      ledger.Put(stage, late, stays, "last");
      ledger.CheckAll(stage, writer);
      ledger.CheckList(stage, writer);
      const std::string problem = stage.End();
      if (!problem.empty()) return fmt::format("{} verb {} of the put: {}", Name(kind), verb, problem);
      if (verb > 200) return "there is no end to it";
    }
  }
  return "";
}

// Two clients want to write to the same unit: one who knows the new version, and so splits it, and one who only knows that it
// was announced. A third one reads. One of them may die, at any verb.
inline std::string TwoMeetInASplit(OptionMap shape, uint64_t seeds) {
  constexpr uint64_t kMostVerbs = 60;
  for (uint64_t run = 0; run < seeds * kMostVerbs; ++run) {
    const uint64_t seed = run / kMostVerbs + 1;
    WorldOptions options{.seed = seed};
    if (seed > 1) options.chaos = fabric::sim::Chaos::ForSeed(seed, false);
    options.chaos.ordered_reads = true;
    Stage stage(shape, options);
    Member& owner = stage.Enter();
    Member& late = stage.Enter();
    Member& reader = stage.Enter();
    const auto key_of = [](bool moves, int nth) {
      return KeyFor([=](const KeyHash& hash) { return ((hash.hash() & 1) != 0) == moves; }, nth);
    };
    Ledger ledger;
    for (int i = 0; i < 3; ++i) ledger.Put(stage, owner, key_of(i % 2 == 1, i), "old");
    stage.Announce({&owner, &late, &reader});
    stage.Activate();
    stage.Learn(owner);

    const std::string of_owner = key_of(run % 2 == 0, 7);
    const std::string of_late = run % 5 == 0 ? of_owner : key_of(run % 4 < 2, 8);
    const std::string read = key_of(true, 1);
    stage.world.Arm(run % kMostVerbs, DeathsAtAVerb()[run % 3]);
    std::optional<Task<PutOutcome>> put(owner.Put(of_owner, "of owner"));
    std::optional<Task<PutOutcome>> late_put(late.Put(of_late, "of late"));
    std::optional<Task<std::string>> get(reader.Get(read));
    put->Start();
    late_put->Start();
    get->Start();
    const auto over = [](const auto& task, const Member& member) { return task->done() || member.crashed(); };
    stage.world.Drive([&] { return over(put, owner) && over(late_put, late) && over(get, reader); });
    stage.world.Disarm();
    const auto note = [&](auto& task, const Member& member, const std::string& key, const char* value) {
      ledger.MayHold(key, value);
      if (member.crashed()) return;
      if (!task->done()) return stage.world.Complain("the put of " + key + " never ends");
      const Result<PutOutcome> done = task->TakeResult();
      if (!done.ok()) return stage.world.Complain("put of " + key + ": " + done.error().ToString());
      ledger.Holds(key, value);
    };
    note(put, owner, of_owner, "of owner");
    note(late_put, late, of_late, "of late");
    if (of_owner == of_late) ledger.HoldsOneOf(of_owner, "of owner", "of late");
    if (!reader.crashed() && get->done()) {
      const Result<std::string> found = get->TakeResult();
      if (!found.ok() || *found != "old") stage.world.Complain("the reader missed a key: " + read);
    }
    put.reset();
    late_put.reset();
    get.reset();
    Member& survivor = stage.Enter();
    ledger.CheckAll(stage, survivor);
    ledger.CheckList(stage, survivor);
    for (Member* member : {&owner, &late, &reader}) {
      if (member->crashed()) stage.Kill(*member);
    }
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {} verb {}: {}", seed, run % kMostVerbs, problem);
  }
  return "";
}

// A resize was announced, so changes are made under locks. Somebody dies with the lock of a unit; somebody else wants to put a
// key that overflows into level 2 of that unit, and holds another lock already.
inline std::string DeadOwnerOfASecondLock() {
  Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});
  Member& owner = stage.Enter();
  Member& writer = stage.Enter();
  stage.GrowTo(2);
  const auto in = [](uint64_t unit, std::optional<uint64_t> choice) {
    return [=](const KeyHash& hash) {
      const auto at = [&](Place place) { return hash.number(place) & 1; };
      return at(Place::kLevel1) == unit && (!choice.has_value() || (at(Place::kFirstChoice) == *choice &&
                                                                    at(Place::kSecondChoice) == *choice));
    };
  };
  Ledger ledger;
  ledger.Put(stage, writer, KeyFor(in(0, std::nullopt)), "old");
  ledger.Put(stage, writer, KeyFor(in(1, std::nullopt)), "old");
  stage.Announce({&owner, &writer});
  const std::string held = KeyFor(in(1, std::nullopt));
  // The READ of the view with the block; the CAS of the lock.
  const uint64_t lock_at = stage.LockAt(1);
  std::optional<Task<PutOutcome>> put(owner.Put(held, "dying"));
  put->Start();
  stage.world.Drive([&] { return put->done() || stage.Word(lock_at) != 0; });
  if (stage.Word(lock_at) == 0) return "the owner never had the lock";
  stage.world.fabric.Crash(owner.client().id());
  put.reset();
  ledger.MayHold(held, "dying");
  stage.Kill(owner);

  const std::string overflows = KeyFor(in(0, 1), 1);
  ledger.Put(stage, writer, overflows, "new");
  ledger.CheckAll(stage, writer);
  return stage.End();
}

enum class Resizing { kAnnounces, kActivates };

inline Task<Done> LookThrice(Member& member) {
  for (int round = 0; round < 3; ++round) {
    co_await member.Sync();
    co_await member.Get("looks");
  }
  co_return Done{};
}

// Somebody resizes the table and dies at some verb: while it prepares the segment or announces it, or while it makes it count.
// Every verb in turn, every way to die; others carry on.
inline std::string GrowerDies(Resizing what) {
  for (const FaultKind kind : DeathsAtAVerb()) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      Stage stage({{"slots", "2"}, {"overflow_slots", "2"}});
      Member& writer = stage.Enter();
      Ledger ledger;
      for (const char* key : {"a", "b", "c", "d", "e"}) ledger.Put(stage, writer, key, "old");
      stage.GrowTo(2);
      Member& dying = stage.Enter("0.000001");
      if (what == Resizing::kActivates) {
        stage.Announce({&writer, &dying});
        stage.WaitForGraceOf(dying);
      }
      const StateWord before = stage.world.state();
      const uint64_t first = stage.world.fabric.verbs_posted();
      stage.world.Arm(verb, kind);
      dying.RunOrDie(LookThrice(dying));
      more = dying.crashed() || stage.world.fabric.verbs_posted() > first + verb;
      stage.world.Disarm();
      if (!more && stage.world.state().Progress() <= before.Progress()) return "it did not resize anything";
      stage.Kill(dying);
      ledger.CheckAll(stage, writer);
      ledger.Put(stage, writer, "b", "new");
      stage.GrowTo(4);
      ledger.Put(stage, writer, "f", "new");
      ledger.CheckAll(stage, writer);
      ledger.CheckList(stage, writer);
      const std::string problem = stage.End();
      if (!problem.empty()) return fmt::format("{} verb {} of the resize: {}", Name(kind), verb, problem);
    }
  }
  return "";
}

enum class CarefulChange { kUpdate, kAppend, kFillHole, kToLevel2, kToLevel3, kDelete, kDeleteFromLevel3 };

// While a resize is announced, somebody changes a key, and so holds a lock; it dies at some verb. Every verb in turn, every way
// to die; the next writers of the unit take over, before the resize counts and after.
inline std::string CarefulWriterDies(CarefulChange change) {
  const int keys_before[] = {4, 4, 8, 8, 12, 4, 14};
  for (const FaultKind kind : DeathsAtAVerb()) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      Stage stage({{"slots", "8"}, {"overflow_slots", "2"}});
      Member& dying = stage.Enter();
      Member& writer = stage.Enter();
      Ledger ledger;
      const auto key = [](int i) { return fmt::format("k{}", i); };
      const int keys = keys_before[static_cast<size_t>(change)] - 1;  // and the seed
      for (int i = 0; i < keys; ++i) ledger.Put(stage, writer, key(i), "old");
      if (change == CarefulChange::kFillHole) ledger.Delete(stage, writer, key(1));
      stage.Announce({&dying, &writer});

      const bool is_old = change == CarefulChange::kUpdate || change == CarefulChange::kDelete ||
                          change == CarefulChange::kDeleteFromLevel3;
      const bool deletes = is_old && change != CarefulChange::kUpdate;
      const std::string changed = key(is_old ? keys - 1 : 20);
      const uint64_t first = stage.world.fabric.verbs_posted();
      stage.world.Arm(verb, kind);
      if (deletes) {
        dying.RunOrDie(dying.Delete(changed));
      } else {
        dying.RunOrDie(dying.Put(changed, "dying"));
      }
      more = dying.crashed() || stage.world.fabric.verbs_posted() > first + verb;
      stage.world.Disarm();
      ledger.MayHold(changed, deletes ? "absent" : "dying");
      stage.Kill(dying);
      ledger.CheckAll(stage, writer);
      ledger.Put(stage, writer, key(0), "new");
      ledger.Put(stage, writer, key(21), "new");
      ledger.CheckAll(stage, writer);
      ledger.Put(stage, writer, changed, "new");
      stage.Activate();
      stage.LearnAll();
      ledger.Delete(stage, writer, key(2));
      ledger.Put(stage, writer, key(22), "newest");
      ledger.CheckAll(stage, writer);
      ledger.CheckList(stage, writer);
      const std::string problem = stage.End();
      if (!problem.empty()) return fmt::format("{} verb {} of the change: {}", Name(kind), verb, problem);
    }
  }
  return "";
}

// A writer waits for a lock that a dead client has left, and meanwhile finds another one dead and sweeps after it. What it is about
// to write is neither free nor reachable then. Every verb of the first one's death in turn.
inline std::string WriterSweepsWhileItWaits() {
  bool more = true;
  for (uint64_t verb = 0; more; ++verb) {
    Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});  // so inserts take the lock
    Member& idle = stage.Enter();
    Member& owner = stage.Enter();
    Member& writer = stage.Enter();
    const auto key = [](int i) { return fmt::format("k{}", i); };
    Ledger ledger;
    ledger.Put(stage, idle, key(0), "old");
    for (int i = 1; i < 4; ++i) ledger.Put(stage, writer, key(i), "old");
    stage.Kill(idle);
    for (int round = 0; round < 5; ++round) {
      writer.Now(writer.Maintain());
      writer.Now(writer.Pause(std::chrono::milliseconds(1)));
    }
    const uint64_t first = stage.world.fabric.verbs_posted();
    stage.world.Arm(verb, FaultKind::kCrashAfter);
    owner.RunOrDie(owner.Put(key(5), "dying"));
    more = owner.crashed() || stage.world.fabric.verbs_posted() > first + verb;
    stage.world.Disarm();
    ledger.MayHold(key(5), "dying");
    stage.Kill(owner);
    // A sweep waits for the others to move on.
    Task<PutOutcome> put = writer.Put(key(10), "new");
    put.Start();
    for (int round = 0; round < 1'000'000 && !put.done(); ++round) stage.SyncGrower();
    if (!put.done()) return "the writer waits for ever";
    const Result<PutOutcome> outcome = put.TakeResult();
    if (!outcome.ok()) return outcome.error().ToString();
    ledger.Holds(key(10), "new");
    for (int i = 20; i < 24; ++i) ledger.Put(stage, writer, key(i), "newer");
    ledger.CheckAll(stage, writer);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("verb {} of the put: {}", verb, problem);
  }
  return "";
}

// Two keys whose entries look the same but for where their blocks are.
inline std::string TwoKeysWithOneTag() {
  Stage stage({{"slots", "2"}, {"overflow_slots", "2"}});
  Member& member = stage.Enter();
  const auto same = [](Place place) {
    return [=](const KeyHash& hash) {
      return TagOf({}, hash.number(place), 1) == TagOf({}, HashOf("k0").number(place), 1);
    };
  };
  Ledger ledger;
  ledger.Put(stage, member, "k0", "zero");
  ledger.Put(stage, member, KeyFor(same(Place::kLevel1), 1), "one");
  ledger.CheckAll(stage, member);
  ledger.Delete(stage, member, "k0");
  ledger.CheckAll(stage, member);
  ledger.Put(stage, member, "k1", "fills");
  ledger.Put(stage, member, "k0", "to level 2");
  ledger.Put(stage, member, KeyFor(same(Place::kFirstChoice), 1), "beside it");
  ledger.CheckAll(stage, member);
  return stage.End();
}

// Each of two clients holds the lock that the other one needs to put its key into level 2.
inline std::string EachNeedsTheLockOfTheOther() {
  Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});
  Member& one = stage.Enter();
  Member& other = stage.Enter();
  stage.GrowTo(2);
  const auto in = [](uint64_t unit) {
    return [=](const KeyHash& hash) {
      return (hash.number(Place::kLevel1) & 1) == unit && (hash.number(Place::kFirstChoice) & 1) != unit &&
             (hash.number(Place::kSecondChoice) & 1) != unit;
    };
  };
  Ledger ledger;
  for (uint64_t unit = 0; unit < 2; ++unit) ledger.Put(stage, one, KeyFor(in(unit)), "old");
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
  for (uint64_t unit = 0; unit < 2; ++unit) ledger.Holds(KeyFor(in(unit), 1), "new");
  ledger.CheckAll(stage, one);
  ledger.CheckList(stage, other);
  return stage.End();
}

// A cursor goes from page to page while the table grows three times and units are split behind and before it.
inline std::string CursorWhileTheTableGrows() {
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

class BlocksReached final : public pool::Reach {
 public:
  void Mark(fabric::FarAddr, uint64_t) override {}
  void MarkBlock(fabric::FarAddr block, uint64_t) override { blocks.insert(block.offset); }
  std::set<uint64_t> blocks;
};

// Somebody walks through the table, and falls asleep on the way; meanwhile a resize counts, and units are split.
inline std::string WalkWhileTheTableGrows() {
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

// A client has cached where a key is. Its block is replaced, reused for the same key, and so named by the same entry again, when
// the client reads both at once on a fabric that samples READs in any order.
inline std::string CachedBlockIsReused(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = false;
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
    reader.Now(reader.Get("k"));
    writer.Now(writer.Put("k", "older!"));
    move_on();
    std::optional<Task<PutOutcome>> put(writer.Put("k", "newest"));
    std::optional<Task<std::string>> get(reader.Get("k"));
    put->Start();
    get->Start();
    stage.world.Drive([&] { return put->done() && get->done(); });
    const Result<std::string> found = get->TakeResult();
    put.reset();
    get.reset();
    if (!found.ok()) return fmt::format("seed {}: {}", seed, found.error().ToString());
    if (*found != "older!" && *found != "newest")
      return fmt::format("seed {}: the reader found {}", seed, *found);
    const std::string problem = stage.End();
    if (!problem.empty()) return problem;
  }
  return "";
}

// Two insert one key at once: one who only knows that a resize was announced, into level 2, because the bucket is full; the other
// perhaps when a third one has split the bucket, which has unused slots then.
inline std::string TwoInsertAKeyWhileAThirdSplits(uint64_t seeds) {
  const std::string stays = KeyFor([](const KeyHash& hash) { return (hash.hash() & 1) == 0; });
  const std::string moves = KeyFor([](const KeyHash& hash) {
    return (hash.hash() & 1) == 1 && (hash.number(Place::kFirstChoice) & 1) == 0 &&
           (hash.number(Place::kSecondChoice) & 1) == 0;
  });
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = true;
    Stage stage({{"slots", "1"}, {"overflow_slots", "1"}}, options);
    Member& late = stage.Enter();
    Member& splitter = stage.Enter();
    Member& knower = stage.Enter();
    Ledger ledger;
    ledger.Put(stage, splitter, stays, "old");
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
    if (!first.ok() || !second.ok() || !split.ok()) return "somebody gave up";
    if (*first == *second)
      return fmt::format("seed {}: {} inserted the key", seed, *first ? "both" : "nobody");
    ledger.Holds(stays, "new");
    ledger.Holds(moves, *first ? "of late" : "of knower");
    ledger.CheckAll(stage, late);
    ledger.CheckList(stage, knower);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

// Two clients, each with many operations in flight, put distinct keys, and all of them one key, while the table grows under them.
// Operations of one client share what it knows of the table, so each may find that others have learned more.
inline std::string ManyOperationsInFlight(uint64_t seeds, const std::string& burst) {
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
    std::map<std::string, std::string> stored;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Task<PutOutcome>> puts;
      std::vector<Task<bool>> inserts;
      const std::string contended = fmt::format("contended{}", round);
      for (int i = 0; i < kInFlight; ++i) {
        for (Member* member : {&one, &other}) {
          const std::string key = fmt::format("k{}.{}.{}", round, i, member == &one ? 1 : 2);
          stored[key] = "of " + key;
          puts.push_back(member->Put(key, stored[key]));
          if (i % 4 == 0) inserts.push_back(member->Insert(contended, "once"));
        }
      }
      stored[contended] = "once";
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
      if (applied != 1)
        return fmt::format("seed {}: {} of the inserts of one key were applied", seed, applied);
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
