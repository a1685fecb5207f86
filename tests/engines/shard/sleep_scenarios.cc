#include "tests/engines/shard/sleep_scenarios.h"

#include <chrono>
#include <optional>
#include <string>

namespace farside::index::shard {

std::string SplitterFallsAsleep(const KeysOfAUnit& keys, Meanwhile meanwhile) {
  bool more = true;
  for (uint64_t verb = 0; more; ++verb) {
    Stage stage(keys.shape);
    Member& splitter = stage.Enter();
    Member& late = stage.Enter();
    ExpectedValues expected;
    // Those that stay are the last ones, so the split moves them to the front.
    for (int i = 0; i < keys.moving; ++i) expected.Put(stage, splitter, KeyThat(true, i), "old");
    for (int i = 0; i < keys.staying; ++i) expected.Put(stage, splitter, KeyThat(false, i), "old");
    stage.Announce({&splitter, &late});
    stage.Activate();
    stage.Learn(splitter);
    Member& newcomer = stage.Enter();
    if (stage.VersionOf(0) != 1) return "there is nothing to split";

    const std::string splits = KeyThat(false, keys.staying);
    stage.world.Arm(verb, fabric::sim::FaultKind::kSleepBefore);
    std::optional<Task<PutOutcome>> put(splitter.Put(splits, "of splitter"));
    put->Start();
    stage.world.Drive([&] { return put->done() || stage.world.fabric.fault_fired(); });
    more = stage.world.fabric.fault_fired();
    stage.world.Disarm();
    std::string changed = KeyThat(true, 0);
    if (meanwhile == Meanwhile::kInsertsWhatStays) changed = KeyThat(false, keys.staying + 1);
    if (meanwhile == Meanwhile::kChangesWhatStays) changed = KeyThat(false, keys.staying - 1);
    expected.Put(stage, newcomer, changed, "new");
    expected.Check(stage, late, changed);
    stage.world.Drive([&] { return put->done(); });
    const Result<PutOutcome> end = put->TakeResult();
    put.reset();
    if (!end.ok()) stage.world.Complain("the split fails: " + end.error().ToString());
    expected.Holds(splits, "of splitter");
    expected.CheckAll(stage, late);
    expected.CheckAll(stage, newcomer);
    expected.CheckList(stage, newcomer);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("asleep before verb {} of the split: {}", verb, problem);
    if (verb > 200) return "there is no end to it";
  }
  return "";
}

std::string InserterFallsAsleep(Behind behind) {
  const bool full = behind == Behind::kIsFullThenSplit;
  const std::string stays = KeyThat(false, 0);
  const std::string moves = KeyFor([](const KeyHash& hash) {
    return (hash.hash() & 1) == 1 && (hash.number(Candidate::kFirstChoice) & 1) == 0 &&
           (hash.number(Candidate::kSecondChoice) & 1) == 0;
  });
  bool more = true;
  for (int steps = 0; more; ++steps) {
    Stage stage({{"slots", full ? "2" : "8"}, {"overflow_slots", "2"}});
    Member& late = stage.Enter();
    Member& splitter = stage.Enter();
    ExpectedValues expected;
    expected.Put(stage, splitter, stays, "old");
    stage.Announce({&late, &splitter});
    stage.Activate();
    stage.Learn(splitter);
    // It does not expect to have to split anything, and so takes no lock before it looks.
    Member& knower = stage.Enter();
    if (stage.VersionOf(0) != 1) return "there is nothing to split";
    std::optional<Task<bool>> insert(knower.Insert(moves, "of knower"));
    insert->Start();
    for (int step = 0; step < steps && !insert->done(); ++step) stage.world.fabric.Step();
    more = !insert->done();
    stage.world.fabric.Sleep(knower.client().id(), std::chrono::milliseconds(4));
    const bool inserted = late.Now(late.Insert(moves, "of late"));
    if (full) expected.Put(stage, splitter, stays, "new");
    stage.world.Drive([&] { return insert->done(); });
    const Result<bool> other = insert->TakeResult();
    insert.reset();
    if (!other.ok()) stage.world.Complain(other.error().ToString());
    if (other.ok() && *other == inserted)
      stage.world.Complain(fmt::format("{} inserted the key", inserted ? "both" : "neither"));
    expected.Holds(moves, inserted ? "of late" : "of knower");
    expected.CheckAll(stage, late);
    expected.CheckList(stage, knower);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("asleep after {} steps of the insert: {}", steps, problem);
    if (steps > 1000) return "there is no end to it";
  }
  return "";
}

std::string WaiterHoldsNoLock() {
  // The first pause of a waiter. Later ones are longer, so a client that pauses with a lock holds it until
  // the sleeper has woken up.
  constexpr auto kPause = std::chrono::microseconds(500);
  constexpr auto kNap = std::chrono::milliseconds(6);
  Stage stage({{"slots", "1"}, {"overflow_slots", "8"}, {"backoff_us", std::to_string(kPause.count())}});
  Member& sleeper = stage.Enter();
  Member& waiter = stage.Enter();
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
  const std::string of_sleeper = KeyFor(in(1, std::nullopt));
  const std::string of_waiter = KeyFor(in(0, 1), 1);
  const std::string of_writer = KeyFor(in(0, std::nullopt));
  ExpectedValues expected;
  expected.Put(stage, writer, of_sleeper, "old");
  expected.Put(stage, writer, of_writer, "old");
  stage.Announce({&sleeper, &waiter, &writer});

  std::optional<Task<PutOutcome>> first(sleeper.Put(of_sleeper, "of sleeper"));
  first->Start();
  stage.world.Drive([&] { return first->done() || stage.Word(stage.LockAt(1)) != 0; });
  if (first->done()) return "the sleeper never had the lock";
  stage.world.fabric.Sleep(sleeper.client().id(), kNap);
  const Nanos wakes_up = stage.world.fabric.Now() + kNap;
  std::optional<Task<PutOutcome>> second(waiter.Put(of_waiter, "of waiter"));
  second->Start();
  stage.world.Drive([&] { return second->done() || stage.Word(stage.LockAt(0)) != 0; });
  if (second->done()) return "the waiter never had a lock";
  std::optional<Task<PutOutcome>> third(writer.Put(of_writer, "of writer"));
  third->Start();
  stage.world.Drive([&] { return third->done() || stage.world.fabric.Now() >= wakes_up; });
  if (!third->done())
    stage.world.Complain("the writer waits for a client that holds a lock and waits itself");
  stage.world.Drive([&] { return first->done() && second->done() && third->done(); });
  for (auto* put : {&first, &second, &third}) {
    const Result<PutOutcome> end = (*put)->TakeResult();
    if (!end.ok()) stage.world.Complain(end.error().ToString());
    put->reset();
  }
  expected.Holds(of_sleeper, "of sleeper");
  expected.Holds(of_waiter, "of waiter");
  expected.Holds(of_writer, "of writer");
  expected.CheckAll(stage, writer);
  expected.CheckList(stage, waiter);
  return stage.End();
}

}  // namespace farside::index::shard
