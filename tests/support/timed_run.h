// A timed world with its clients, and programs that run until they are told to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "fabric/sim/timed/timed.h"

namespace farside::fabric::sim {

using namespace std::chrono_literals;

// Figures that are easy to add up, and no jitter.
inline NicModel RoundModel() {
  NicModel model;
  model.jitter = 0ns;
  model.memory_verbs_per_second = 40'000'000;   // 25 ns
  model.compute_verbs_per_second = 40'000'000;  // 25 ns
  model.atomics_per_second = 10'000'000;        // 100 ns
  model.atomics_per_second_on_one_word = 2'500'000;
  return model;
}

class TimedRun {
 public:
  explicit TimedRun(TimedOptions options) : world_(std::move(*TimedFabric::Open(std::move(options)))) {}

  TimedFabric& world() { return *world_; }
  Client& Connect() { return Keep(world_->Connect()); }
  Client& Connect(uint32_t compute_node) { return Keep(world_->Connect(compute_node)); }

  Task<Done>& Start(Task<Done> task) {
    tasks_.push_back(std::move(task));
    tasks_.back().Start();
    return tasks_.back();
  }
  // Starts it and runs the world until it has ended.
  Result<Done> Do(Task<Done> task) {
    Task<Done>& started = Start(std::move(task));
    while (!started.done()) {
      if (!world_->Step()) return Error(ErrorCode::kUnavailable, "waits for ever");
    }
    return started.TakeResult();
  }
  void Drain() {
    while (world_->Step()) continue;
  }
  void RunUntil(Nanos time) {
    while (world_->Now() < time && world_->Step()) continue;
  }

 private:
  Client& Keep(Result<std::unique_ptr<Client>> client) {
    clients_.push_back(std::move(*client));
    return *clients_.back();
  }

  const std::unique_ptr<TimedFabric> world_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::list<Task<Done>> tasks_;  // die before the clients they use
};

inline FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(NodeId{node}, offset); }
inline FarAddr Line(uint64_t line, uint16_t node = 0) { return At(line * kLineBytes, node); }

}  // namespace farside::fabric::sim
