// The simulated fabric in performance mode: a whole cluster in one thread, in virtual time, with cards that
// take their time (nic_model.h). Tables run on it unchanged; how fast they are depends on the model and the
// seed, and never on the machine. SimFabric is its sibling for correctness, which uses every freedom of the
// contract and measures nothing.
//
//   auto world = *TimedFabric::Open({.region_bytes = {1 << 30}, .compute_nodes = 2});
//   auto client = *world->Connect();
//   Task<Done> task = Program(*client);
//   task.Start();
//   while (!task.done() && world->Step()) {}
//   fmt::print("{} ns\n", world->Now().count());
//
// The way of a trip, and what it may have to wait for:
//
//   client's processor -> compute card, wire -> memory card: verbs, atomics, wire -> verbs take effect
//   client's processor <- compute card, wire <- memory card: wire                 <-
//
// What is kept (docs/memory-model.md says why):
//   timed/2  The verbs of a round take effect at one instant, in posting order; a fenced verb begins a round
//            of its own, after all answers of the one before. That is more than MustPrecede asks for.
//   timed/3  A verb takes effect after its trip was posted, and before its completion is seen.
//   timed/4  After a FENCE has taken effect on a node, no verb of the victim takes effect there: it is looked
//            at in the instant in which a verb would.
//   timed/5  Everything happens in an order that the seed, the model and the calls decide.
//   timed/6  Handlers of a node take effect one after the other, each when the one before it has ended. What
//            a handler flushes and drains is known only when it has run: it takes effect at one instant, then
//            the time for that passes, then its answer is sent and the next handler begins.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/memory/region.h"
#include "fabric/sim/timed/agenda.h"
#include "fabric/sim/timed/nic.h"
#include "fabric/sim/timed/nic_model.h"
#include "fabric/sim/timed/timed_trip.h"

namespace farside::fabric::sim {

class TimedFabric;

struct TimedOptions {
  uint64_t seed = 1;
  std::vector<uint64_t> region_bytes = {64 * 1024};  // one per memory node; whole lines
  uint32_t compute_nodes = 1;
  // Every machine both computes and lends memory, through one card. As many of the ones as of the others.
  bool colocated = false;
  NicModel model;
};

// How busy a resource was, over the time since the counters were reset.
struct ResourceUse {
  std::string name;  // such as "memory 0 verbs"
  double share = 0;  // of the time; 1: it is what binds
  uint64_t served = 0;
};

class TimedClient final : public Client {
 public:
  TimedClient(TimedFabric& world, ClientId id, uint32_t compute_node);
  ~TimedClient() override;

  std::span<const uint64_t> region_bytes() const override;
  Nanos Now() const override;
  bool Start(Trip& trip) override;
  void Abandon(Trip& trip) noexcept override;
  void Detach(Order order, std::span<const Verb> verbs) override;
  bool HasUnawaited() const override { return unawaited_ > 0; }
  uint64_t trips_posted() const override;
  bool HasUnawaitedOfFirst(uint64_t posted) const override;
  void Start(Timer& timer) override;
  void Abandon(Timer& timer) noexcept override;
  bool Poll() override;  // one step of the whole world
  bool orders_reads() const override { return true; }
  bool stores_back_failed_cas() const override { return false; }

  uint32_t compute_node() const { return compute_node_; }

 private:
  friend class TimedFabric;

  TimedFabric& world_;
  const uint32_t compute_node_;
  Server processor_;             // of its thread
  std::optional<Error> broken_;  // why every later trip fails
  TimedTrip* trips_ = nullptr;
  uint64_t unawaited_ = 0;  // timed trips that no coroutine awaits
};

class TimedFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<TimedFabric>> Open(TimedOptions options);
  ~TimedFabric() override;

  std::string_view name() const override { return "sim"; }
  std::span<const uint64_t> region_bytes() const override { return options_.region_bytes; }
  const NicModel& model() const { return options_.model; }
  uint32_t compute_nodes() const { return options_.compute_nodes; }

  // To the compute nodes in turn, or to the one named.
  Result<std::unique_ptr<Client>> Connect() override;
  Result<std::unique_ptr<Client>> Connect(uint32_t compute_node);
  FlushCounts flushed() const override;
  CallTable& calls() { return calls_; }

  // One event. False: nothing is on its way and no timer is set.
  bool Step();
  Nanos Now() const { return Nanos(now_ / kPicosPerNano); }
  uint64_t events() const { return events_; }
  uint64_t trips_posted() const { return trips_posted_; }

  // What was busy since the last reset; every card, its verbs, its wire both ways, and the atomics of memory
  // nodes.
  std::vector<ResourceUse> Uses() const;
  void ResetUses();

  // A node's bytes, for making a pool before the first client connects, and for tests. Pages come when they
  // are first touched.
  std::span<std::byte> memory(NodeId node) { return nodes_[Index(node)].region.bytes(); }

 private:
  friend class TimedClient;

  struct Node {
    explicit Node(memory::Region lent) : region(std::move(lent)) {}
    memory::Region region;
    AtomicUnit atomics;
    Server processor;
    FlushCounts flushed;
    Picos flushing = 0;         // the time for that, all together
    std::vector<bool> cut_off;  // by number of the client
  };
  struct TimerEvent : TimedEvent {
    TimedClient* client = nullptr;
    Timer* timer = nullptr;  // null: the waiter is gone
  };

  explicit TimedFabric(TimedOptions options);

  void Schedule(TimedEvent& event, Happening what, Picos at);
  Picos Wire();

  // ---- the way of a trip
  TimedTrip& Post(TimedClient& client, std::span<const Verb> verbs);
  void SendRound(Leg& leg, Picos at);
  void ArriveAtNode(Leg& leg);
  void TakeEffect(Leg& leg);
  void SendAnswer(Leg& leg);
  void TakeAnswer(Leg& leg);
  void Reap(TimedTrip& timed_trip);
  void Retire(TimedTrip& timed_trip);
  void Fire(TimerEvent& event);

  // ---- effects
  void Execute(TimedTrip& timed_trip, TimedVerb& timed_verb);
  void ExecuteCall(Node& node, TimedTrip& timed_trip, const TimedVerb& timed_verb);
  static bool IsCutOff(const Node& node, ClientId client);
  Error Refusal(const TimedTrip& timed_trip) const;

  Nic& NicOfCompute(uint32_t compute_node) {
    return nics_[options_.colocated ? compute_node : nodes_.size() + compute_node];
  }

  const TimedOptions options_;
  const NicTimes times_;
  Random random_;
  Agenda agenda_;
  Picos now_ = 0;
  Picos measured_since_ = 0;
  uint64_t events_ = 0;
  uint64_t trips_posted_ = 0;
  uint32_t last_client_ = 0;
  size_t clients_ = 0;

  std::vector<Node> nodes_;
  std::vector<Nic> nics_;  // of the memory nodes; then, unless colocated, of the compute nodes
  CallTable calls_;

  std::deque<TimedTrip> trip_storage_;
  std::vector<TimedTrip*> free_trips_;
  std::deque<TimerEvent> timer_storage_;
  std::vector<TimerEvent*> free_timers_;
};

}  // namespace farside::fabric::sim
