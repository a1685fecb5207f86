#include "tests/engines/shard/death_scenarios.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace farside::index::shard {

namespace {

std::vector<FaultKind> DeathsAtAVerb() {
  return {FaultKind::kCrashBefore, FaultKind::kCrashMid, FaultKind::kCrashAfter};
}

}  // namespace

std::string OwnerDiesInASplit(const SplitOptions& options) {
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
      ExpectedValues expected;
      for (int i = 0; i < options.keys; ++i) expected.Put(stage, writer, key_of(i % 2 == 0, i / 2), "old");
      stage.GrowTo(options.version + options.behind - 1);
      stage.Announce({&owner, &writer, &late});
      stage.Activate();
      stage.Learn(owner);
      stage.Learn(writer);

      const std::string stays = key_of(false, 0);
      more = owner.RunAndDieAt(verb, kind, owner.Put(stays, "dying"));
      expected.MayHold(stays, "dying");
      stage.Kill(owner);
      // A key that moves can be written as soon as the new unit is; a client that has heard of less must see
      // it.
      expected.Put(stage, writer, key_of(true, 0), "new");
      expected.Check(stage, late, key_of(true, 0));
      expected.CheckAll(stage, late);
      expected.CheckAll(stage, writer);
      expected.CheckList(stage, late);
      expected.Put(stage, late, stays, "last");
      expected.CheckAll(stage, writer);
      expected.CheckList(stage, writer);
      const std::string problem = stage.End();
      if (!problem.empty()) return fmt::format("{} verb {} of the put: {}", Name(kind), verb, problem);
      if (verb > 200) return "there is no end to it";
    }
  }
  return "";
}

std::string TwoMeetInASplit(OptionMap shape, uint64_t seeds) {
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
    ExpectedValues expected;
    for (int i = 0; i < 3; ++i) expected.Put(stage, owner, key_of(i % 2 == 1, i), "old");
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
      expected.MayHold(key, value);
      if (member.crashed()) return;
      if (!task->done()) return stage.world.Complain("the put of " + key + " never ends");
      const Result<PutOutcome> done = task->TakeResult();
      if (!done.ok()) return stage.world.Complain("put of " + key + ": " + done.error().ToString());
      expected.Holds(key, value);
    };
    note(put, owner, of_owner, "of owner");
    note(late_put, late, of_late, "of late");
    if (of_owner == of_late) expected.HoldsOneOf(of_owner, "of owner", "of late");
    if (!reader.crashed() && get->done()) {
      const Result<std::string> found = get->TakeResult();
      if (!found.ok() || *found != "old") stage.world.Complain("the reader missed a key: " + read);
    }
    put.reset();
    late_put.reset();
    get.reset();
    Member& survivor = stage.Enter();
    expected.CheckAll(stage, survivor);
    expected.CheckList(stage, survivor);
    for (Member* member : {&owner, &late, &reader}) {
      if (member->crashed()) stage.Kill(*member);
    }
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {} verb {}: {}", seed, run % kMostVerbs, problem);
  }
  return "";
}

std::string DeadOwnerOfASecondLock() {
  Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});
  Member& owner = stage.Enter();
  Member& writer = stage.Enter();
  stage.GrowTo(2);
  const auto in = [](uint64_t unit, std::optional<uint64_t> choice) {
    return [=](const KeyHash& hash) {
      const auto at = [&](Candidate candidate) { return hash.number(candidate) & 1; };
      return at(Candidate::kLevel1) == unit &&
             (!choice.has_value() ||
              (at(Candidate::kFirstChoice) == *choice && at(Candidate::kSecondChoice) == *choice));
    };
  };
  ExpectedValues expected;
  expected.Put(stage, writer, KeyFor(in(0, std::nullopt)), "old");
  expected.Put(stage, writer, KeyFor(in(1, std::nullopt)), "old");
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
  expected.MayHold(held, "dying");
  stage.Kill(owner);

  const std::string overflows = KeyFor(in(0, 1), 1);
  expected.Put(stage, writer, overflows, "new");
  expected.CheckAll(stage, writer);
  return stage.End();
}

std::string GrowerDies(Resizing what) {
  for (const FaultKind kind : DeathsAtAVerb()) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      Stage stage({{"slots", "2"}, {"overflow_slots", "2"}});
      Member& writer = stage.Enter();
      ExpectedValues expected;
      for (const char* key : {"a", "b", "c", "d", "e"}) expected.Put(stage, writer, key, "old");
      stage.GrowTo(2);
      Member& dying = stage.Enter("0.000001");
      if (what == Resizing::kActivates) {
        stage.Announce({&writer, &dying});
        stage.WaitForGraceOf(dying);
      }
      const StateWord before = stage.world.state();
      more = dying.RunAndDieAt(verb, kind, LookThrice(dying));
      if (!more && stage.world.state().Progress() <= before.Progress()) return "it did not resize anything";
      stage.Kill(dying);
      expected.CheckAll(stage, writer);
      expected.Put(stage, writer, "b", "new");
      stage.GrowTo(4);
      expected.Put(stage, writer, "f", "new");
      expected.CheckAll(stage, writer);
      expected.CheckList(stage, writer);
      const std::string problem = stage.End();
      if (!problem.empty()) return fmt::format("{} verb {} of the resize: {}", Name(kind), verb, problem);
    }
  }
  return "";
}

std::string CarefulWriterDies(CarefulChange change) {
  const int keys_before[] = {4, 4, 8, 8, 12, 4, 14};
  for (const FaultKind kind : DeathsAtAVerb()) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      Stage stage({{"slots", "8"}, {"overflow_slots", "2"}});
      Member& dying = stage.Enter();
      Member& writer = stage.Enter();
      ExpectedValues expected;
      const auto key = [](int i) { return fmt::format("k{}", i); };
      const int keys = keys_before[static_cast<size_t>(change)] - 1;  // and the seed
      for (int i = 0; i < keys; ++i) expected.Put(stage, writer, key(i), "old");
      if (change == CarefulChange::kFillHole) expected.Delete(stage, writer, key(1));
      stage.Announce({&dying, &writer});

      const bool is_old = change == CarefulChange::kUpdate || change == CarefulChange::kDelete ||
                          change == CarefulChange::kDeleteFromLevel3;
      const bool deletes = is_old && change != CarefulChange::kUpdate;
      const std::string changed = key(is_old ? keys - 1 : 20);
      more = deletes ? dying.RunAndDieAt(verb, kind, dying.Delete(changed))
                     : dying.RunAndDieAt(verb, kind, dying.Put(changed, "dying"));
      expected.MayHold(changed, deletes ? "absent" : "dying");
      stage.Kill(dying);
      expected.CheckAll(stage, writer);
      expected.Put(stage, writer, key(0), "new");
      expected.Put(stage, writer, key(21), "new");
      expected.CheckAll(stage, writer);
      expected.Put(stage, writer, changed, "new");
      stage.Activate();
      stage.LearnAll();
      expected.Delete(stage, writer, key(2));
      expected.Put(stage, writer, key(22), "newest");
      expected.CheckAll(stage, writer);
      expected.CheckList(stage, writer);
      const std::string problem = stage.End();
      if (!problem.empty()) return fmt::format("{} verb {} of the change: {}", Name(kind), verb, problem);
    }
  }
  return "";
}

std::string WriterSweepsWhileItWaits() {
  bool more = true;
  for (uint64_t verb = 0; more; ++verb) {
    Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});  // so inserts take the lock
    Member& idle = stage.Enter();
    Member& owner = stage.Enter();
    Member& writer = stage.Enter();
    const auto key = [](int i) { return fmt::format("k{}", i); };
    ExpectedValues expected;
    expected.Put(stage, idle, key(0), "old");
    for (int i = 1; i < 4; ++i) expected.Put(stage, writer, key(i), "old");
    stage.Kill(idle);
    for (int round = 0; round < 5; ++round) {
      writer.Now(writer.Maintain());
      writer.Now(writer.Pause(std::chrono::milliseconds(1)));
    }
    more = owner.RunAndDieAt(verb, FaultKind::kCrashAfter, owner.Put(key(5), "dying"));
    expected.MayHold(key(5), "dying");
    stage.Kill(owner);
    // A sweep waits for the others to move on.
    Task<PutOutcome> put = writer.Put(key(10), "new");
    put.Start();
    for (int round = 0; round < 1'000'000 && !put.done(); ++round) stage.SyncGrower();
    if (!put.done()) return "the writer waits for ever";
    const Result<PutOutcome> outcome = put.TakeResult();
    if (!outcome.ok()) return outcome.error().ToString();
    expected.Holds(key(10), "new");
    for (int i = 20; i < 24; ++i) expected.Put(stage, writer, key(i), "newer");
    expected.CheckAll(stage, writer);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("verb {} of the put: {}", verb, problem);
  }
  return "";
}

}  // namespace farside::index::shard
