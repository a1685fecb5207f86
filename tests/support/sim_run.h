// A simulated world with its clients and their programs, and a count of what was seen over many of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "tests/support/sanitized.h"

namespace farside::fabric::sim {

// How many seeds to try; fewer where every step costs several times as much.
constexpr uint64_t Seeds(uint64_t seeds) { return kSanitized ? seeds / 3 : seeds; }

// Always is kOneIn in kOneIn.
inline constexpr uint32_t kAlways = kOneIn;

// What a world is made of; everything that is switched on in it stands in the test.
inline SimOptions Quiet(uint64_t seed, std::vector<uint64_t> region_bytes = {4096}) {
  SimOptions options;
  options.seed = seed;
  options.region_bytes = std::move(region_bytes);
  options.chaos = Chaos::Calm();
  return options;
}
// All freedoms of the contract in a mix that depends on the seed, but nothing goes wrong.
inline SimOptions Free(uint64_t seed, std::vector<uint64_t> region_bytes = {4096}) {
  SimOptions options = Quiet(seed, std::move(region_bytes));
  options.chaos = Chaos::ForSeed(seed, /*faults=*/false);
  options.chaos.ordered_reads = true;
  return options;
}

class SimRun {
 public:
  explicit SimRun(SimOptions options) : world(std::move(options)) {}

  SimFabric world;

  SimClient& Connect() {
    clients_.push_back(std::move(*world.Connect()));
    return static_cast<SimClient&>(*clients_.back());
  }
  // Its tasks must have been dropped before.
  void Disconnect(ClientId id) {
    std::erase_if(clients_, [id](const auto& client) { return client->id() == id; });
  }

  Task<Done>& Start(Task<Done> task) {
    tasks_.push_back(std::move(task));
    tasks_.back().Start();
    return tasks_.back();
  }
  void Drop(const Task<Done>& task) {
    tasks_.remove_if([&task](const Task<Done>& kept) { return &kept == &task; });
  }

  // Until nothing is on its way.
  void Drain() {
    while (world.Step()) continue;
  }
  // Until `task` has ended. False: it waits for ever.
  bool Finish(const Task<Done>& task) {
    while (!task.done()) {
      if (!world.Step()) return false;
    }
    return true;
  }
  // Starts it and runs the world until it has ended.
  Result<Done> Do(Task<Done> task) {
    Task<Done>& started = Start(std::move(task));
    if (!Finish(started)) return Error(ErrorCode::kUnavailable, "waits for ever");
    return started.TakeResult();
  }

  uint64_t Word(FarAddr at) {
    uint64_t word = 0;
    std::memcpy(&word, world.memory(at.node).data() + at.offset, sizeof(word));
    return word;
  }
  void SetWord(FarAddr at, uint64_t word) {
    std::memcpy(world.memory(at.node).data() + at.offset, &word, sizeof(word));
  }

 private:
  std::vector<std::unique_ptr<Client>> clients_;
  std::list<Task<Done>> tasks_;  // die before the clients they use
};

inline FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(NodeId{node}, offset); }
inline FarAddr Line(uint64_t line, uint16_t node = 0) { return At(line * kLineBytes, node); }

// Outcomes seen over many seeds.
class Litmus {
 public:
  void Saw(const std::string& outcome) { ++seen_[outcome]; }
  uint64_t Times(const std::string& outcome) const {
    const auto found = seen_.find(outcome);
    return found == seen_.end() ? 0 : found->second;
  }
  std::string ToString() const {
    std::string text;
    for (const auto& [outcome, times] : seen_) text += outcome + ": " + std::to_string(times) + " times\n";
    return text;
  }

 private:
  std::map<std::string, uint64_t> seen_;
};

}  // namespace farside::fabric::sim

#define EXPECT_SEEN(litmus, outcome) EXPECT_GT((litmus).Times(outcome), 0u) << (litmus).ToString()
#define EXPECT_NEVER_SEEN(litmus, outcome) EXPECT_EQ((litmus).Times(outcome), 0u) << (litmus).ToString()
