// What goes wrong in the simulated world: by chance, exactly at one verb, or by hand.
#include <fmt/format.h>

#include <algorithm>

#include "fabric/sim/sim.h"

namespace farside::fabric::sim {

std::string_view Name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kCrashBefore: return "crash-before";
    case FaultKind::kCrashMid: return "crash-mid";
    case FaultKind::kCrashAfter: return "crash-after";
    case FaultKind::kLoseCompletion: return "lose-completion";
    case FaultKind::kSleepBefore: return "sleep-before";
    case FaultKind::kSleepAfter: return "sleep-after";
    case FaultKind::kPowerCut: return "power-cut";
  }
  return "?";
}

std::optional<FaultKind> FaultKindFromName(std::string_view name) {
  for (const FaultKind kind : kAllFaultKinds) {
    if (Name(kind) == name) return kind;
  }
  if (Name(FaultKind::kPowerCut) == name) return FaultKind::kPowerCut;
  return std::nullopt;
}

void SimFabric::Break(SimClient& client) {
  if (client.broken_.has_value()) return;
  const auto cut_off = [&](const SimNode& node) { return node.IsCutOff(client.id()); };
  if (std::any_of(nodes_.begin(), nodes_.end(), cut_off)) {
    client.broken_.emplace(ErrorCode::kFenced,
                           "this client was taken for dead and cut off; reconnect as a new client");
  } else {
    client.broken_.emplace(ErrorCode::kUnavailable, "the connection is lost; reconnect as a new client");
  }
}

void SimFabric::LoseConnection(SimClient& client) {
  if (client.broken_.has_value()) return;
  NoteInDigest(client, VerbDigest::ClientEvent::kDisconnected);
  Break(client);
  for (Flight* flight : flights_) {
    if (flight->client == &client) LeaveToFate(*flight);
  }
}

// What becomes of a flight whose connection is gone: it ends where it is, or it goes on, perhaps much later.
void SimFabric::LeaveToFate(Flight& flight) {
  if (random_.Chance(1, 2)) {
    DropAll(flight);
  } else if (random_.Chance(1, 2)) {
    flight.held_until =
        now_ + Nanos(random_.LogUniform(static_cast<uint64_t>(options_.chaos.longest_sleep.count())));
  }
}

// What the client had in flight may still land until it is fenced, or be cut at any point; `cut` is.
void SimFabric::CrashClient(SimClient& client, Flight* cut) {
  if (tracing()) Say(client.id(), "CRASHES");
  NoteInDigest(client, VerbDigest::ClientEvent::kCrashed);
  client.crashed_ = true;
  for (Flight* flight : flights_) {
    if (flight->client != &client) continue;
    if (flight->trip != nullptr) flight->trip->backend_data = nullptr;
    flight->trip = nullptr;
    flight->client = nullptr;
    if (flight == cut) {
      DropAll(*flight);
    } else {
      LeaveToFate(*flight);
    }
  }
  for (TimerEvent& event : timer_storage_) {
    if (event.client != &client) continue;
    if (event.timer != nullptr) event.timer->backend_data = nullptr;
    event.timer = nullptr;
  }
}

void SimFabric::Crash(ClientId id) {
  SimClient* client = FindClient(id);
  if (client != nullptr && !client->crashed_) CrashClient(*client, nullptr);
}

void SimFabric::Sleep(ClientId id, Nanos duration) {
  SimClient* client = FindClient(id);
  if (client == nullptr) return;
  NoteInDigest(*client, VerbDigest::ClientEvent::kAsleep);
  client->asleep_until_ = std::max(client->asleep_until_, now_ + duration);
  if (tracing()) Say(id, fmt::format("falls asleep for {} ns", duration.count()));
}

void SimFabric::Hold(ClientId id, NodeId node, Nanos duration) {
  for (Flight* flight : flights_) {
    if (flight->owner != id || flight->held_until > now_) continue;
    for (const FlightVerb& verb : flight->verbs) {
      if (verb.verb.at.node == node) flight->held_until = now_ + duration;
    }
  }
  if (tracing()) Say(id, fmt::format("what it has in flight to node {} is held up", Index(node)));
}

void SimFabric::RestartNode(NodeId node, bool keep_memory) {
  SimNode& restarted = nodes_[Index(node)];
  restarted.StopHandler();
  for (Flight* flight : flights_) Refuse(*flight, node);
  restarted.Restart(keep_memory);
  if (tracing())
    Say(ClientId::kNone,
        fmt::format("node {} restarts{}", Index(node), keep_memory ? "" : ", its memory lost"));
}

// INVARIANT sim/6. What is in flight to the node is refused, as at any restart, and atomics that are between
// their steps there go either way before anything is lost.
void SimFabric::CutPower(NodeId node) {
  SimNode& cut = nodes_[Index(node)];
  cut.StopHandler();
  for (Flight* flight : flights_) Refuse(*flight, node);
  const size_t fallen_back = cut.RestartAfterPowerCut(random_);
  ++power_cuts_;
  if (options_.digest != nullptr) options_.digest->PowerCut(now_, node);
  if (tracing())
    Say(ClientId::kNone,
        fmt::format("node {} loses its power; {} words fall back to older values", Index(node), fallen_back));
  if (on_power_up_) on_power_up_(node, cut.memory());
}

void SimFabric::CutPowerIfDue() {
  if (!power_cut_due_.has_value()) return;
  const NodeId node = *power_cut_due_;
  power_cut_due_.reset();
  CutPower(node);
}

// Draws once in `events_per_chance` as often as `power_cut` says.
void SimFabric::RandomPowerCut(NodeId node, uint32_t events_per_chance) {
  const Chaos& chaos = options_.chaos;
  if (chaos.power_cut == 0 || power_cuts_by_chance_ == chaos.most_power_cuts) return;
  if (power_cut_due_.has_value() || !nodes_[Index(node)].durable()) return;
  if (!random_.Chance(chaos.power_cut, kOneIn * events_per_chance)) return;
  ++power_cuts_by_chance_;
  power_cut_due_ = node;
}

// After a step, before it is counted.
void SimFabric::ExactPowerCut(NodeId node) {
  if (!options_.fault.has_value() || fault_fired_) return;
  if (options_.fault->kind != FaultKind::kPowerCut || options_.fault->verb != handler_steps_) return;
  fault_fired_ = true;
  power_cut_due_ = node;
}

void SimFabric::StopFaults() {
  options_.chaos.crash = options_.chaos.lose_completion = options_.chaos.sleep = 0;
  options_.chaos.power_cut = 0;
  options_.fault.reset();
}

// True if something happened instead of the flight's next step.
bool SimFabric::RandomFault(Flight& flight) {
  const Chaos& chaos = options_.chaos;
  if (!chaos.has_client_faults() || faults_by_chance_ == chaos.most_faults) return false;
  SimClient* client = flight.client;
  if (client == nullptr || flight.trip == nullptr || client->broken_.has_value()) return false;
  uint64_t roll = random_.Below(kOneIn);
  if (roll >= chaos.crash + chaos.lose_completion + chaos.sleep) return false;
  ++faults_by_chance_;
  if (roll < chaos.crash) {
    CrashClient(*client, nullptr);
    return true;
  }
  roll -= chaos.crash;
  if (roll < chaos.lose_completion) {
    if (tracing())
      Say(flight.owner, fmt::format("loses its connection; trip {} goes unanswered", flight.trip_number));
    LoseConnection(*client);
    if (client->asleep_until_ > now_) return true;  // it hears when it wakes
    // The client hears now that the connection is gone; what is in flight goes on without it.
    Trip* trip = flight.trip;
    trip->Fail(LostCompletion(trip->verbs, "the connection was lost in the middle of a trip"));
    trip->backend_data = nullptr;
    flight.trip = nullptr;
    trip->Resume();
    return true;
  }
  roll -= chaos.lose_completion;
  if (roll < chaos.sleep) {
    Sleep(client->id(), Nanos(random_.LogUniform(static_cast<uint64_t>(chaos.longest_sleep.count()))));
    // Perhaps it fell asleep before its device had all of the trip.
    if (random_.Chance(1, 2)) flight.held_until = client->asleep_until_;
  }
  return false;
}

// True if something happened instead of the verb taking effect.
bool SimFabric::ExactFaultBefore(Flight& flight, FlightVerb& verb) {
  if (!options_.fault.has_value() || fault_fired_ || options_.fault->verb != verb.number) return false;
  if (flight.client == nullptr || verb.Started()) return false;
  switch (options_.fault->kind) {
    case FaultKind::kCrashBefore:
      fault_fired_ = true;
      CrashClient(*flight.client, &flight);
      return true;
    case FaultKind::kSleepBefore:
      fault_fired_ = true;
      Sleep(flight.owner, options_.chaos.longest_sleep);
      flight.held_until = now_ + options_.chaos.longest_sleep;
      return true;
    case FaultKind::kLoseCompletion:
      fault_fired_ = true;
      flight.lose_completion = true;
      return false;
    case FaultKind::kCrashMid:
    case FaultKind::kCrashAfter:
    case FaultKind::kSleepAfter:
    case FaultKind::kPowerCut: return false;
  }
  return false;
}

// True if the client died. Looked at after every step of a flight, and before the next one: meanwhile another
// client may have finished the verb (see CloseWindows and TakeEffectOnWord).
bool SimFabric::ExactFaultAfter(Flight& flight) {
  if (!options_.fault.has_value() || fault_fired_ || flight.client == nullptr) return false;
  if (options_.fault->kind == FaultKind::kPowerCut) return false;
  const FlightVerb* verb = flight.Find(options_.fault->verb);
  if (verb == nullptr || verb->dropped) return false;
  const bool done = flight.IsDone(*verb);
  switch (options_.fault->kind) {
    case FaultKind::kCrashMid:
      if (done || !verb->Started()) return false;
      fault_fired_ = true;
      CrashClient(*flight.client, &flight);
      return true;
    case FaultKind::kCrashAfter:
      if (!done) return false;
      fault_fired_ = true;
      CrashClient(*flight.client, &flight);
      return true;
    case FaultKind::kSleepAfter:
      if (!done) return false;
      fault_fired_ = true;
      Sleep(flight.owner, options_.chaos.longest_sleep);
      return false;
    case FaultKind::kCrashBefore:
    case FaultKind::kLoseCompletion:
    case FaultKind::kSleepBefore:
    case FaultKind::kPowerCut: return false;
  }
  return false;
}

// Whether this verb is to be taken apart, so that its client can die in the middle.
bool SimFabric::CrashesMid(const FlightVerb& verb) const {
  return options_.fault.has_value() && options_.fault->kind == FaultKind::kCrashMid &&
         options_.fault->verb == verb.number && !fault_fired_;
}

}  // namespace farside::fabric::sim
