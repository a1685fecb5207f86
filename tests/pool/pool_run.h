// Clients of one pool in the simulated world. Each joins, runs its program and leaves; one that is cut off
// comes back as a new client and goes on where its program says; one that dies stays dead.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "pool/members/lock.h"
#include "pool/members/membership.h"

namespace farside::pool {

inline constexpr Nanos kTestLease = std::chrono::microseconds(300);

// A region of zeros is a pool without a superblock, which nothing here looks at.
Geometry SmallGeometry(uint32_t client_slots = 64, uint32_t table_slots = 16);

// All freedom that a seed takes, with delays that a client survives which beats now and then.
fabric::sim::SimOptions PoolChaos(uint64_t seed, bool faults);

fabric::sim::SimOptions PoolCalm();

// What became of a run.
struct RunOutcome {
  std::string problem;        // empty, or what is wrong
  uint64_t script_verbs = 0;  // without the auditor's
  bool fault_fired = false;
};

class PoolRun {
 public:
  using Program = std::function<Task<Done>(Membership&)>;
  using ClientProgram = std::function<Task<Done>(fabric::Client&)>;

  explicit PoolRun(fabric::sim::SimOptions options, const Geometry& geometry = SmallGeometry(),
                   size_t nodes = 1)
      : geometry_(geometry),
        nodes_(nodes),
        by_chance_(options.chaos.has_faults()),
        has_faults_(by_chance_ || options.fault.has_value()),
        world_(WithRegions(std::move(options), geometry, nodes)) {}

  fabric::sim::SimFabric& world() { return world_; }
  const Geometry& geometry() const { return geometry_; }
  size_t nodes() const { return nodes_; }
  bool has_faults() const { return has_faults_; }

  // The first problem counts.
  void Problem(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }
  const std::string& problem() const { return problem_; }

  // Starts a client that joins. `leaves`: it deregisters when its program has ended.
  void Start(Program program, bool leaves = true) {
    StartClient([this, program = std::move(program), leaves](fabric::Client& client) {
      return Live(client, geometry_, program, leaves);
    });
  }
  // Starts one that does everything itself.
  void StartClient(ClientProgram program) {
    actors_.emplace_back();
    actors_.back().program = std::move(program);
    Connect(actors_.back());
  }

  // Until all programs have ended, or, before any step, this is true: then they are gone where they stand.
  void Drive(const std::function<bool()>& until = {}) {
    const uint64_t give_up = world_.events() + kMostEvents;
    size_t running = actors_.size();
    while (running > 0 && !(until && until())) {
      const bool moved = world_.Step();
      running = 0;
      for (Actor& actor : actors_) {
        if (actor.task.has_value()) HandleProgress(actor);
        if (actor.task.has_value()) ++running;
      }
      if (running > 0 && (!moved || world_.events() > give_up)) {
        Problem("stuck: clients wait for ever");
        break;
      }
    }
    actors_.clear();
  }

  // The scripts have ended; whatever comes now is spared further faults.
  RunOutcome EndOfScripts() {
    RunOutcome outcome;
    outcome.script_verbs = world_.verbs_posted();
    outcome.fault_fired = world_.fault_fired();
    world_.StopFaults();
    return outcome;
  }

  uint64_t Word(uint64_t offset, fabric::NodeId node = fabric::NodeId{0}) {
    uint64_t word = 0;
    std::memcpy(&word, world_.memory(node).data() + offset, sizeof(word));
    return word;
  }
  ClientWord SlotWord(uint32_t slot) { return ClientWord(Word(geometry_.client_slot(slot))); }

 private:
  static constexpr uint64_t kMostEvents = 2'000'000;
  static constexpr int kMostLives = 12;

  struct Actor {
    ClientProgram program;
    int lives = 0;
    std::unique_ptr<fabric::Client> client;
    std::optional<Task<Done>> task;  // dies before what it uses
  };

  static fabric::sim::SimOptions WithRegions(fabric::sim::SimOptions options, const Geometry& geometry,
                                             size_t nodes) {
    options.region_bytes.assign(nodes, geometry.region_bytes);
    return options;
  }

  static Task<Done> Live(fabric::Client& client, Geometry geometry, Program program, bool leaves) {
    Membership member(client, fabric::NodeId{0}, geometry, LeaseOptions{.lease = kTestLease});
    fabric::Op op(client, fabric::OpKind::kMaintenance);
    co_await member.Join(op);
    co_await program(member);
    if (leaves) co_await member.Leave(op);
    co_return Done{};
  }

  void Connect(Actor& actor) {
    actor.client = std::move(*world_.Connect());
    actor.task.emplace(actor.program(*actor.client));
    ++actor.lives;
    actor.task->Start();
  }

  static void Disconnect(Actor& actor) {
    actor.task.reset();
    actor.client.reset();
  }

  void HandleProgress(Actor& actor) {
    if (static_cast<fabric::sim::SimClient&>(*actor.client).crashed()) return Disconnect(actor);
    if (!actor.task->done()) return;
    const Result<Done> end = actor.task->TakeResult();
    Disconnect(actor);
    if (end.ok()) return;
    switch (end.error().code()) {
      case ErrorCode::kFenced:
      case ErrorCode::kUnavailable:
      case ErrorCode::kOutcomeUnknown:
        if (!has_faults_) return Problem("cut off for no reason: " + end.error().ToString());
        if (actor.lives < kMostLives) return Connect(actor);
        if (!by_chance_) Problem("cut off again and again: " + end.error().ToString());
        return;  // it stays away
      default: return Problem(end.error().ToString());
    }
  }

  const Geometry geometry_;
  const size_t nodes_;
  const bool by_chance_;
  const bool has_faults_;
  fabric::sim::SimFabric world_;
  std::list<Actor> actors_;
  std::string problem_;
};

// Releases the slots of all clients that died, so that only this member is left. Tells the dead from the slow
// by waiting.
Task<Done> ReleaseDeadSlots(Membership& member);

// Runs `run` (a function from SimOptions to RunOutcome) with every kind of fault at every verb in turn, until
// there is no such verb. Returns the first problem with the fault that it takes; counts the faults that
// happened.
template <class RunOnce>
std::string ForEveryFault(const fabric::sim::SimOptions& options, RunOnce run, uint64_t& faults) {
  using fabric::sim::Fault;
  bool more = true;
  for (uint64_t verb = 0; more; ++verb) {
    more = false;
    for (fabric::sim::FaultKind kind : fabric::sim::kAllFaultKinds) {
      fabric::sim::SimOptions with_fault = options;
      with_fault.fault = Fault{verb, kind};
      const RunOutcome outcome = run(with_fault);
      more |= outcome.script_verbs > verb;
      if (outcome.fault_fired) ++faults;
      if (!outcome.problem.empty()) {
        return "seed " + std::to_string(options.seed) + ", verb " + std::to_string(verb) + ", " +
               std::string(Name(kind)) + ": " + outcome.problem;
      }
    }
  }
  return "";
}

}  // namespace farside::pool
