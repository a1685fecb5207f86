#include "tests/engines/shard/race_scenarios.h"

#include <string>

namespace farside::index::shard {

std::string KeyIsInsertedBeforeItsUnitIsSplit(uint64_t seeds) {
  constexpr int kUntilItLooksFirst = 40;
  const auto of_unit = [](uint64_t unit) {
    return [=](const KeyHash& hash) { return (hash.hash() & 1) == unit; };
  };
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = true;
    Stage stage({{"slots", "8"}, {"overflow_slots", "2"}}, options);
    Member& late = stage.Enter();
    Member& knower = stage.Enter();
    stage.GrowTo(2);
    ExpectedValues expected;
    for (uint64_t unit = 0; unit < 2; ++unit) expected.Put(stage, late, KeyFor(of_unit(unit)), "old");
    stage.Announce({&late, &knower});
    stage.Activate();
    stage.Learn(knower);
    for (int i = 0; i < kUntilItLooksFirst; ++i) expected.Put(stage, knower, KeyFor(of_unit(1)), "new");

    const std::string key = KeyFor(of_unit(0), 1);
    Task<bool> one = late.Insert(key, "of late");
    Task<bool> other = knower.Insert(key, "of knower");
    other.Start();
    for (uint64_t step = 0; step < seed % 8; ++step) stage.world.fabric.Step();
    one.Start();
    stage.world.Drive([&] { return one.done() && other.done(); });
    const Result<bool> first = one.TakeResult();
    const Result<bool> second = other.TakeResult();
    if (!first.ok() || !second.ok()) return "a client gave up";
    if (*first == *second)
      return fmt::format("seed {}: {} inserted the key", seed, *first ? "both" : "neither");
    expected.Holds(key, *first ? "of late" : "of knower");
    expected.CheckAll(stage, late);
    expected.CheckList(stage, knower);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

std::string LineIsSplitWhileItIsFilled(uint64_t seeds) {
  constexpr uint64_t kSteps = 24;  // of one, before the next begins
  const uint64_t lines_unit = HashOf(Stage::kSeed).hash() & 1;
  const auto fits = [=](const KeyHash& hash) {
    return (hash.number(Candidate::kLevel1) & 1) != lines_unit &&
           (hash.number(Candidate::kFirstChoice) & 1) == lines_unit &&
           (hash.number(Candidate::kSecondChoice) & 1) == lines_unit;
  };
  // Two keys with one tag: the client that inserts the second has to read the block of the first, which takes
  // time.
  const std::string fills = KeyFor(fits);
  const auto tag = [](const KeyHash& hash) { return TagOf({}, hash.number(Candidate::kLevel1), 2); };
  const std::string key =
      KeyFor([&](const KeyHash& hash) { return fits(hash) && tag(hash) == tag(HashOf(fills)); }, 1);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = true;
    Stage stage({{"slots", "1"}, {"overflow_slots", "8"}}, options);
    Member& late = stage.Enter();
    Member& splitter = stage.Enter();
    stage.GrowTo(2);
    ExpectedValues expected;
    expected.Put(stage, late, fills, "old");
    stage.Announce({&late, &splitter});
    stage.Activate();
    stage.Learn(splitter);

    Task<PutOutcome> insert = late.Put(key, "in level 2");
    Task<Done> learn = LookThrice(late);
    Task<PutOutcome> split = splitter.Put(Stage::kSeed, "grows");
    insert.Start();
    for (uint64_t step = 0; step < seed % kSteps; ++step) stage.world.fabric.Step();
    learn.Start();
    for (uint64_t step = 0; step < seed / kSteps % kSteps; ++step) stage.world.fabric.Step();
    split.Start();
    stage.world.Drive([&] { return insert.done() && learn.done() && split.done(); });
    if (!insert.TakeResult().ok() || !learn.TakeResult().ok() || !split.TakeResult().ok())
      return fmt::format("seed {}: a client gave up", seed);
    expected.Holds(key, "in level 2");
    expected.CheckAll(stage, late);
    expected.CheckList(stage, splitter);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

std::string DirectoryIsReadWhileAResizeIsAnnounced(uint64_t seeds) {
  uint64_t announcements = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = true;
    Stage stage({{"slots", "2"}, {"overflow_slots", "2"}}, options);
    Member& growing = stage.Enter("0.000001");
    Member& reader = stage.Enter();
    stage.SyncGrower();  // which reports its record: a reason to grow
    Task<Done> announce = LookThrice(growing);
    Task<std::string> read = reader.Get(Stage::kSeed);
    announce.Start();
    stage.world.Drive([&] { return announce.done() || stage.world.state().phase() == Phase::kPreparing; });
    for (uint64_t step = 0; step < seed % 64; ++step) stage.world.fabric.Step();
    read.Start();
    stage.world.Drive([&] { return announce.done() && read.done(); });
    announcements += stage.world.state().Progress() > StateWord::Steady(1).Progress() ? 1 : 0;
    const Result<Done> announced = announce.TakeResult();
    const Result<std::string> found = read.TakeResult();
    if (!announced.ok()) return fmt::format("seed {}: {}", seed, announced.error().ToString());
    if (!found.ok()) return fmt::format("seed {}: {}", seed, found.error().ToString());
    if (*found != "grows") return fmt::format("seed {}: the reader found {}", seed, *found);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return announcements > 0 ? "" : "nothing was announced";
}

}  // namespace farside::index::shard
