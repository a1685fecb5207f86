// A client of the embedded fabric. It executes its verbs itself, on its own thread, in posting order, which
// keeps every promise of order and of fences within a trip.
//
// With one operation at a time, a trip ends inside Start. With more, Start only asks for the cache lines and
// Poll executes the trip later, when the lines have come from memory: the operations hide each other's cache
// misses as they hide each other's round trips elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fabric/client.h"
#include "fabric/embedded/gate_registry.h"
#include "fabric/embedded/node.h"
#include "fabric/pending.h"
#include "fabric/service.h"

namespace farside::fabric {

// What all clients of a fabric share. Its nodes and its clock do not change once clients exist.
struct Shared {
  std::vector<uint64_t> region_bytes;  // of each node
  std::vector<std::unique_ptr<Node>> nodes;
  CallTable calls;
  const Clock* clock = nullptr;
  GateRegistry gates;
};

class EmbeddedClient final : public Client {
 public:
  // `shared` must outlive the client.
  EmbeddedClient(Shared& shared, GateRegistry::Registration registration);
  ~EmbeddedClient() override;

  std::span<const uint64_t> region_bytes() const override { return region_bytes_; }
  Nanos Now() const override { return shared_.clock->Now(); }

  bool Start(Trip& trip) override;
  void Abandon(Trip& trip) noexcept override { trips_.Remove(trip); }
  void Detach(Order order, std::span<const Verb> verbs) override;

  void Start(Timer& timer) override { timers_.Push(timer); }
  void Abandon(Timer& timer) noexcept override { timers_.Remove(timer); }

  bool Poll() override;

 private:
  memory::LineMemory& MemoryOf(const Verb& verb) { return shared_.nodes[Index(verb.at.node)]->memory(); }

  void Execute(Trip& trip);
  std::optional<Error> ExecuteInsideGate(std::span<Verb> verbs);
  std::optional<Error> ExecuteCall(Verb& verb);
  bool ExecuteFence(ClientId victim);
  Error Fenced() const;
  // The error of a trip that was cut off by a fence when `done` of it had been executed.
  Error CutOffAfter(std::span<const Verb> done) const;
  bool ResumeDueTimers();

  Shared& shared_;
  const std::span<const uint64_t> region_bytes_;
  const std::shared_ptr<Gate> gate_;
  TripQueue trips_;
  TimerList timers_;
  std::vector<Verb> detached_;  // the copy of the verbs being detached
};

}  // namespace farside::fabric
