#include "tests/engines/chime/turn_scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <vector>

#include "tests/engines/chime/world.h"

namespace farside::index::chime {
namespace {

const OptionMap kOptions = {{"keys", "inline"}};

// Leaves out no moment of the four updates, whose trips take some steps each.
constexpr int kMostSteps = 80;

std::string DestroyAfter(size_t destroyed, int steps) {
  World world;
  Member member(world, kOptions);
  Member other(world, kOptions);
  for (uint64_t i = 0; i < 5; ++i) member.Now(member.Put(EightBytes(i), "original"));
  std::list<Task<bool>> updates;
  for (uint64_t i = 0; i < 4; ++i) updates.push_back(member.Update(EightBytes(i), "replaced"));
  for (Task<bool>& update : updates) update.Start();
  const auto victim = std::next(updates.begin(), static_cast<std::ptrdiff_t>(destroyed));
  for (int step = 0; step < steps && !victim->done(); ++step) world.fabric.Step();
  // The first one takes the lock by a trip of its own.
  if (destroyed == 0 || victim->done()) return "";
  updates.erase(victim);
  world.Drive([&] { return std::all_of(updates.begin(), updates.end(), [](auto& u) { return u.done(); }); });
  for (Task<bool>& update : updates) {
    const Result<bool> updated = update.TakeResult();
    if (!updated.ok()) return updated.error().ToString();
  }
  if (!member.Now(member.Update(EightBytes(4), "replaced"))) return "a key is lost";
  for (uint64_t i = 0; i < 5; ++i) {
    const std::string got = other.Now(other.Get(EightBytes(i)));
    if (got != "replaced" && i != destroyed) return fmt::format("key {} is {}", i, got);
    if (!other.Now(other.Update(EightBytes(i), "the last"))) return "a key is lost";
  }
  return world.problem;
}

}  // namespace

std::string SuccessorIsDestroyed() {
  for (size_t destroyed = 1; destroyed < 4; ++destroyed) {
    for (int steps = 0; steps < kMostSteps; ++steps) {
      const std::string wrong = DestroyAfter(destroyed, steps);
      if (!wrong.empty())
        return fmt::format("update {} is destroyed after {} steps: {}", destroyed, steps, wrong);
    }
  }
  return "";
}

std::string OthersHaveTheirTurn() {
  constexpr uint64_t kInFlight = 16;
  constexpr uint64_t kUpdates = 4000;
  World world;
  Member member(world, kOptions);
  Member other(world, kOptions);
  for (uint64_t i = 0; i <= kInFlight; ++i) member.Now(member.Put(EightBytes(i), "original"));
  other.Now(other.Get(EightBytes(0)));
  std::vector<Task<bool>> updates;
  uint64_t begun = 0;
  const auto begin = [&](uint64_t i) { return member.Update(EightBytes(i), fmt::format("{:08}", ++begun)); };
  for (uint64_t i = 0; i < kInFlight; ++i) updates.push_back(begin(i));
  for (Task<bool>& update : updates) update.Start();
  Task<bool> change = other.Update(EightBytes(kInFlight), "replaced");
  change.Start();
  while (!change.done() && begun < kUpdates) {
    world.fabric.Step();
    for (uint64_t i = 0; i < kInFlight; ++i) {
      if (!updates[i].done()) continue;
      updates[i] = begin(i);
      updates[i].Start();
    }
  }
  if (!change.done()) return fmt::format("another client waits for {} updates", begun);
  world.Drive([&] { return std::all_of(updates.begin(), updates.end(), [](auto& u) { return u.done(); }); });
  return world.problem;
}

std::string InsertsOfOneLeaf(int seeds) {
  for (int seed = 1; seed <= seeds; ++seed) {
    World world({.seed = static_cast<uint64_t>(seed),
                 .chaos = fabric::sim::Chaos::ForSeed(static_cast<uint64_t>(seed), /*faults=*/false)});
    Member one(world, kOptions);
    Member two(world, kOptions);
    std::list<Task<PutOutcome>> puts;
    for (uint64_t i = 0; i < 24; ++i)
      puts.push_back((i % 3 == 0 ? two : one).Put(EightBytes(i), fmt::format("{:08}", i)));
    for (Task<PutOutcome>& put : puts) put.Start();
    world.Drive([&] { return std::all_of(puts.begin(), puts.end(), [](auto& put) { return put.done(); }); });
    for (uint64_t i = 0; i < 24; ++i) {
      const std::string got = one.Now(one.Get(EightBytes(i)));
      if (got != fmt::format("{:08}", i)) return fmt::format("seed {}: key {} is {}", seed, i, got);
    }
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

}  // namespace farside::index::chime
