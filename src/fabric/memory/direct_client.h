// A client that executes its verbs itself, on its own thread, by loads and stores: what `embedded` and `shm`
// have in common. The verbs of a trip take effect one after the other in posting order, which keeps every
// promise of order and of fences within a trip.
//
// With one operation at a time, a trip ends inside Start. With more, Start only asks for the cache lines and
// Poll executes the trip later, when the lines have come from memory: the operations hide each other's cache
// misses as they hide each other's round trips elsewhere.
//
// A trip that may change something is executed inside the gates of all nodes that it goes to (gate.h). All of
// them are entered before its first verb, so that a trip is refused as a whole. READs take no effect, so no
// fence has to wait for them: looking at the gates is enough.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fork_guard.h"
#include "fabric/client.h"
#include "fabric/memory/gate.h"
#include "fabric/memory/line_memory.h"
#include "fabric/pending.h"
#include "farside/result.h"

namespace farside::fabric::memory {

class DirectClient : public Client {
 public:
  ~DirectClient() override;

  std::span<const uint64_t> region_bytes() const override { return region_bytes_; }
  Nanos Now() const override { return clock_.Now(); }

  bool Start(Trip& trip) override;
  void Abandon(Trip& trip) noexcept override { trips_.Remove(trip); }
  void Detach(Order order, std::span<const Verb> verbs) override;
  // Detached verbs execute at once, and a trip that is abandoned has executed, or never will.
  bool HasUnawaited() const override { return false; }
  uint64_t trips_posted() const override { return 0; }
  bool HasUnawaitedOfFirst(uint64_t /*posted*/) const override { return false; }

  void Start(Timer& timer) override { timers_.Push(timer); }
  void Abandon(Timer& timer) noexcept override { timers_.Remove(timer); }

  bool Poll() override;
  bool orders_reads() const override { return true; }  // it executes verbs one by one
  bool stores_back_failed_cas() const override { return false; }

 protected:
  // How the client reaches one node. Several nodes may have the same gate.
  struct Reach {
    LineMemory* memory;
    Gate* gate;
  };

  // `region_bytes` and `clock` must outlive the client.
  DirectClient(ClientId id, std::span<const uint64_t> region_bytes, const Clock& clock)
      : Client(id),
        region_bytes_(region_bytes),
        clock_(clock),
        real_time_(dynamic_cast<const SteadyClock*>(&clock) != nullptr) {}
  // One per node, before the first trip; memories and gates must outlive the last one.
  void SetReach(std::vector<Reach> reach) { reach_ = std::move(reach); }

  // Executes a Call, inside the gates. An error ends the trip.
  virtual std::optional<Error> Call(Verb& verb) = 0;
  // Cuts a client off from the node of `verb`, and returns when gate/1 holds. Called outside of all gates. An
  // error ends the trip.
  virtual std::optional<Error> Fence(const Verb& verb) = 0;
  // Why the gate of a node was closed. Called outside of all gates. Nothing was changed.
  virtual Error Closed(NodeId node) = 0;
  // Why a line of a node will never be finished by its holder.
  virtual Error Stuck(NodeId node) = 0;

  // From now on every trip fails with this error. The first one stays.
  void Break(Error error);
  bool broken() const { return broken_.has_value(); }
  bool has_trips() const { return !trips_.empty(); }
  // Whether this process is a child of the one that made the client. Then it has none of the memory.
  bool forked() const { return guard_.forked(); }

  // That another client has cut this one off.
  Error Fenced() const;

 private:
  void Rest() const;
  void Execute(Trip& trip);
  std::optional<Error> ExecuteReads(std::span<Verb> verbs);
  std::optional<Error> ExecuteChanges(std::span<Verb> verbs);
  std::optional<Error> ExecuteInsideGates(std::span<Verb> verbs);
  std::optional<Error> ExecuteFence(std::span<Verb> verbs, size_t at);
  // The node whose gate was found closed, if any. The others are entered all the same; LeaveGates leaves
  // them.
  std::optional<NodeId> EnterGates(std::span<const Verb> verbs);
  void LeaveGates(std::span<const Verb> verbs);
  Error LostAt(const Verb& verb, std::span<const Verb> verbs);

  void Prefetch(const Verb& verb) const {
    if (!IsControl(verb.kind)) ReachOf(verb).memory->Prefetch(verb);
  }
  const Reach& ReachOf(const Verb& verb) const { return reach_[Index(verb.at.node)]; }

  const std::span<const uint64_t> region_bytes_;
  const Clock& clock_;
  const bool real_time_;  // the clock is the machine's, so that sleeping lets its time pass
  const ForkGuard guard_;
  std::vector<Reach> reach_;
  std::optional<Error> broken_;
  TripQueue trips_;
  TimerList timers_;
  std::vector<Verb> detached_;  // the copy of the verbs being detached
};

}  // namespace farside::fabric::memory
