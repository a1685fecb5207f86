// The simulated fabric: a whole cluster in one thread, in virtual time, decided by one seed.
//
// Every trip is taken apart into the smallest pieces that the contract lets take effect separately, and a
// seeded random choice says which piece of which trip happens next. The freedom used is listed in Chaos;
// exact faults in Fault. The owner of a client drives it:
//
//   SimFabric world({.seed = 7, .region_bytes = {4096}});
//   auto client = *world.Connect();
//   Task<Done> task = Program(*client);
//   task.Start();
//   while (!task.done() && world.Step()) {}
//
// What is kept (docs/memory-model.md says why):
//   sim/1  Pieces of one trip posted InOrder respect MustPrecede, and lines and words are whole.
//   sim/2  While a READ of at most 1 KiB inside a page is being sampled, no other client sees one trip
//          complete and has another take effect. Kept by finishing the READ first (CloseWindows).
//   sim/3  Atomics on one word exclude each other, in one step or in two.
//   sim/4  After a FENCE has taken effect on a node, no piece of the victim takes effect there.
//   sim/5  A completion is delivered only when every verb of the trip has taken effect.
//   sim/6  After a power cut each word of a durable node has one of the values that it had since it was last
//          durable, and nothing that was in flight to the node takes effect any more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/sim/chaos.h"
#include "fabric/sim/fault.h"
#include "fabric/sim/flight.h"
#include "fabric/sim/node.h"
#include "fabric/sim/trace.h"
#include "fabric/sim/verb_digest.h"

namespace farside::fabric::sim {

class SimFabric;

struct SimOptions {
  uint64_t seed = 1;
  std::vector<uint64_t> region_bytes = {64 * 1024};
  bool durable = false;  // every node: what its handlers flush and drain survives a power cut
  Chaos chaos;
  std::optional<Fault> fault;
  Trace* trace = nullptr;  // slow; for reports
  VerbDigest* digest = nullptr;
};

class SimClient final : public Client {
 public:
  SimClient(SimFabric& world, ClientId id);
  ~SimClient() override;

  std::span<const uint64_t> region_bytes() const override;
  Nanos Now() const override;
  bool Start(Trip& trip) override;
  void Abandon(Trip& trip) noexcept override;
  void Detach(Order order, std::span<const Verb> verbs) override;
  bool HasUnawaited() const override { return HasUnawaitedOfFirst(trips_posted()); }
  uint64_t trips_posted() const override;
  bool HasUnawaitedOfFirst(uint64_t posted) const override;
  bool orders_reads() const override;
  bool stores_back_failed_cas() const override;
  void Start(Timer& timer) override;
  void Abandon(Timer& timer) noexcept override;
  bool Poll() override;  // one step of the whole world

  // Dead: nothing of it runs any more. Its owner destroys its tasks, then the client.
  bool crashed() const { return crashed_; }

 private:
  friend class SimFabric;

  SimFabric& world_;
  std::vector<uint64_t> incarnations_;  // of the nodes, when it connected
  std::optional<Error> broken_;         // why every later trip fails
  bool crashed_ = false;
  Nanos asleep_until_{0};
  uint64_t completed_effect_ = 0;  // last event of the trips it has seen completed
};

class SimFabric final : public Fabric {
 public:
  explicit SimFabric(SimOptions options);
  ~SimFabric() override;

  std::string_view name() const override { return "sim"; }
  std::span<const uint64_t> region_bytes() const override { return options_.region_bytes; }
  Result<std::unique_ptr<Client>> Connect() override;
  FlushCounts flushed() const override;
  CallTable& calls() { return calls_; }

  // One event. False: nothing is on its way and no timer is set.
  bool Step();
  Nanos Now() const { return now_; }

  // ---- faults by hand
  void Crash(ClientId client);
  void Sleep(ClientId client, Nanos duration);
  // What the client has in flight to the node stays on the way for as long.
  void Hold(ClientId client, NodeId node, Nanos duration);
  void RestartNode(NodeId node, bool keep_memory);
  // Of a durable node: the handler that runs stops where it is, what is not durable survives or does not, and
  // the node restarts.
  void CutPower(NodeId node);
  // Called when a node has its power back, before it serves clients, with what has survived. What it stores
  // is durable.
  using OnPowerUp = std::function<void(NodeId node, std::span<std::byte> survived)>;
  void set_on_power_up(OnPowerUp on_power_up) { on_power_up_ = std::move(on_power_up); }
  // The one exact fault, if it has not happened yet.
  void set_fault(Fault fault) { options_.fault = fault; }
  // No further faults by chance; the freedom of the contract stays.
  void StopFaults();

  // ---- what happened
  uint64_t verbs_posted() const { return verbs_posted_; }
  uint64_t events() const { return events_; }
  bool fault_fired() const { return fault_fired_; }
  size_t flights() const { return flights_.size(); }
  uint64_t power_cuts() const { return power_cuts_; }
  // Of handlers of durable nodes: stores, flushes and drains that have happened.
  uint64_t handler_steps() const { return handler_steps_; }

  // A node's bytes as they are now, for tests.
  std::span<std::byte> memory(NodeId node) { return nodes_[Index(node)].memory(); }

 private:
  friend class SimClient;

  // ---- events
  void MakeReady(Event& event, Nanos due);
  Nanos SomeDelay(uint32_t chance);
  enum class Next : uint8_t { kStay, kGone, kLater };
  Next Happen(Event& event);
  Next Move(Flight& flight);
  Next Fire(TimerEvent& event);

  // ---- flights
  Flight& Launch(ClientId owner, SimClient* client, Order order, std::span<const Verb> verbs);
  void TakeEffect(Flight& flight, FlightVerb& verb, bool one_piece);
  void TakeEffectOnWord(Flight& flight, FlightVerb& verb);
  void TakeEffectByCpu(Flight& flight, FlightVerb& verb);
  bool StepHandler(NodeId node);
  void TakeEffectOfFence(Flight& flight, FlightVerb& verb);
  void CloseWindows(const Flight& flight);
  void FinishVerb(Flight& flight, FlightVerb& verb);
  void Drop(Flight& flight, FlightVerb& verb);
  void DropAll(Flight& flight);
  void Refuse(Flight& flight, NodeId node);
  bool IsRefused(const Flight& flight, const FlightVerb& verb) const;
  Error Refusal(const Flight& flight) const;
  Next Deliver(Flight& flight);
  void Retire(Flight& flight);

  // ---- faults
  bool RandomFault(Flight& flight);
  bool ExactFaultBefore(Flight& flight, FlightVerb& verb);
  bool ExactFaultAfter(Flight& flight);
  bool CrashesMid(const FlightVerb& verb) const;
  void RandomPowerCut(NodeId node, uint32_t events_per_chance);
  void ExactPowerCut(NodeId node);
  // When the event in which it is due has ended.
  void CutPowerIfDue();
  void Break(SimClient& client);
  void LoseConnection(SimClient& client);
  void LeaveToFate(Flight& flight);
  void CrashClient(SimClient& client, Flight* cut);
  SimClient* FindClient(ClientId client);

  void Say(ClientId client, const std::string& what);
  bool tracing() const { return options_.trace != nullptr; }
  void NoteInDigest(const SimClient& client, VerbDigest::ClientEvent event) {
    if (options_.digest != nullptr) options_.digest->Happened(now_, client.id(), event);
  }

  SimOptions options_;
  Random random_;
  Nanos now_{0};
  uint64_t events_ = 0;
  uint64_t effects_ = 0;  // counts pieces that took effect; orders windows and floors
  uint64_t sequence_ = 0;
  uint64_t verbs_posted_ = 0;
  uint64_t trips_posted_ = 0;
  uint32_t last_client_ = 0;
  bool fault_fired_ = false;
  uint32_t faults_by_chance_ = 0;
  uint64_t handler_steps_ = 0;
  uint64_t power_cuts_ = 0;
  uint32_t power_cuts_by_chance_ = 0;
  std::optional<NodeId> power_cut_due_;
  OnPowerUp on_power_up_;

  std::vector<SimNode> nodes_;
  std::vector<SimClient*> clients_;
  CallTable calls_;

  std::vector<Event*> ready_;
  std::priority_queue<Event*, std::vector<Event*>, LaterFirst> delayed_;

  std::deque<Flight> flight_storage_;
  std::vector<Flight*> free_flights_;
  std::vector<Flight*> flights_;
  std::deque<TimerEvent> timer_storage_;
  std::vector<TimerEvent*> free_timers_;
  struct OpenWindow {
    Flight* flight;
    FlightVerb* verb;
  };
  std::vector<OpenWindow> windows_;
};

}  // namespace farside::fabric::sim
