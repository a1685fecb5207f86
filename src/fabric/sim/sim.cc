// The event loop of the simulated world, and its clients. How verbs take effect is in effects.cc, what
// goes wrong in faults.cc.
#include "fabric/sim/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace farside::fabric::sim {

// ---- client ------------------------------------------------------------------------------------------

SimClient::SimClient(SimFabric& world, ClientId id) : Client(id), world_(world) {
  for (const SimNode& node : world_.nodes_) incarnations_.push_back(node.incarnation());
  world_.clients_.push_back(this);
  world_.NoteInDigest(*this, VerbDigest::ClientEvent::kConnected);
}

SimClient::~SimClient() {
  for (Flight* flight : world_.flights_) {
    if (flight->client != this) continue;
    flight->client = nullptr;
    flight->trip = nullptr;
    if (world_.options_.chaos.lose_completion != 0) world_.LeaveToFate(*flight);
  }
  for (TimerEvent& event : world_.timer_storage_) {
    if (event.client == this) event.timer = nullptr;
  }
  std::erase(world_.clients_, this);
}

std::span<const uint64_t> SimClient::region_bytes() const { return world_.region_bytes(); }
Nanos SimClient::Now() const { return world_.now_; }

bool SimClient::Start(Trip& trip) {
  if (crashed_) return false;  // and nothing will resume it
  std::optional<Error> refused = broken_;
  if (!refused.has_value()) refused = CheckBounds(trip.verbs, region_bytes());
  if (refused.has_value()) {
    trip.Fail(std::move(*refused));
    return true;
  }
  Flight& flight = world_.Launch(id(), this, trip.order, trip.verbs);
  flight.trip = &trip;
  trip.backend_data = &flight;
  return false;
}

void SimClient::Abandon(Trip& trip) noexcept {
  auto* flight = static_cast<Flight*>(trip.backend_data);
  if (flight != nullptr) flight->trip = nullptr;
}

void SimClient::Detach(Order order, std::span<const Verb> verbs) {
  if (crashed_ || broken_.has_value() || CheckBounds(verbs, region_bytes()).has_value()) return;
  world_.Launch(id(), this, order, verbs);
}

bool SimClient::orders_reads() const { return world_.options_.chaos.ordered_reads; }
bool SimClient::stores_back_failed_cas() const { return world_.options_.chaos.store_back_failed_cas; }
uint64_t SimClient::trips_posted() const { return world_.trips_posted_; }
bool SimClient::HasUnawaitedOfFirst(uint64_t posted) const {
  return std::any_of(world_.flights_.begin(), world_.flights_.end(), [this, posted](const Flight* flight) {
    return flight->client == this && flight->trip == nullptr && flight->trip_number <= posted;
  });
}

void SimClient::Start(Timer& timer) {
  if (crashed_) return;
  if (world_.free_timers_.empty()) world_.free_timers_.push_back(&world_.timer_storage_.emplace_back());
  TimerEvent& event = *world_.free_timers_.back();
  world_.free_timers_.pop_back();
  event.client = this;
  event.timer = &timer;
  timer.backend_data = &event;
  world_.MakeReady(event, timer.due);
}

void SimClient::Abandon(Timer& timer) noexcept {
  auto* event = static_cast<TimerEvent*>(timer.backend_data);
  if (event != nullptr) event->timer = nullptr;
}

bool SimClient::Poll() { return world_.Step(); }

// ---- world -------------------------------------------------------------------------------------------

SimFabric::SimFabric(SimOptions options) : options_(std::move(options)), random_(options_.seed) {
  for (uint64_t bytes : options_.region_bytes) nodes_.emplace_back(bytes, options_.durable);
  if (options_.digest != nullptr) options_.digest->Begin(options_.seed);
}

SimFabric::~SimFabric() { assert(clients_.empty() && "clients must not outlive the fabric"); }

Result<std::unique_ptr<Client>> SimFabric::Connect() {
  const auto id = static_cast<ClientId>(++last_client_);
  if (tracing()) Say(id, "connects");
  return std::unique_ptr<Client>(std::make_unique<SimClient>(*this, id));
}

FlushCounts SimFabric::flushed() const {
  FlushCounts all;
  for (const SimNode& node : nodes_) all += node.flushed();
  return all;
}

void SimFabric::MakeReady(Event& event, Nanos due) {
  event.due = due;
  event.sequence = ++sequence_;
  if (due <= now_) {
    ready_.push_back(&event);
  } else {
    delayed_.push(&event);
  }
}

Nanos SimFabric::SomeDelay(uint32_t chance) {
  if (chance == 0 || !random_.Chance(chance, kOneIn)) return Nanos(0);
  return Nanos(random_.LogUniform(static_cast<uint64_t>(options_.chaos.longest_delay.count())));
}

bool SimFabric::Step() {
  CutPowerIfDue();
  now_ += options_.chaos.tick;
  ++events_;
  if (ready_.empty()) {
    if (delayed_.empty()) return false;
    now_ = std::max(now_, delayed_.top()->due);
  }
  while (!delayed_.empty() && delayed_.top()->due <= now_) {
    ready_.push_back(delayed_.top());
    delayed_.pop();
  }
  // Out of the list before it happens: what happens may make other things ready.
  const size_t pick = ready_.size() == 1 ? 0 : random_.Below(ready_.size());
  Event& event = *ready_[pick];
  ready_[pick] = ready_.back();
  ready_.pop_back();
  switch (Happen(event)) {
    case Next::kStay: MakeReady(event, now_); break;
    case Next::kLater: MakeReady(event, event.due); break;
    case Next::kGone: break;
  }
  CutPowerIfDue();
  return true;
}

SimFabric::Next SimFabric::Happen(Event& event) {
  if (event.kind == EventKind::kTimer) return Fire(static_cast<TimerEvent&>(event));
  return Move(static_cast<Flight&>(event));
}

SimFabric::Next SimFabric::Fire(TimerEvent& event) {
  if (event.timer != nullptr && event.client->asleep_until_ > now_) {
    event.due = event.client->asleep_until_;
    return Next::kLater;
  }
  Timer* timer = event.timer;
  event.client = nullptr;
  event.timer = nullptr;
  free_timers_.push_back(&event);
  if (timer != nullptr) {
    timer->backend_data = nullptr;
    timer->waiter.resume();
  }
  return Next::kGone;
}

Flight& SimFabric::Launch(ClientId owner, SimClient* client, Order order, std::span<const Verb> verbs) {
  if (free_flights_.empty()) free_flights_.push_back(&flight_storage_.emplace_back());
  Flight& flight = *free_flights_.back();
  free_flights_.pop_back();
  flight.Load(order, verbs, options_.chaos.ordered_reads, verbs_posted_, random_);
  verbs_posted_ += verbs.size();
  for (FlightVerb& verb : flight.verbs) verb.incarnation = client->incarnations_[Index(verb.verb.at.node)];
  flight.owner = owner;
  flight.client = client;
  flight.trip_number = ++trips_posted_;
  flight.causal_floor = client->completed_effect_;
  flight.index = flights_.size();
  flights_.push_back(&flight);
  if (tracing()) {
    std::string text =
        fmt::format("posts trip {}{}:", flight.trip_number, order == Order::kInOrder ? "" : " (together)");
    for (const FlightVerb& verb : flight.verbs)
      text += fmt::format(" #{} {}", verb.number, options_.trace->What(verb.verb));
    Say(owner, text);
  }
  if (options_.digest != nullptr) options_.digest->Posted(now_, flight, order);
  MakeReady(flight, now_ + SomeDelay(options_.chaos.delay_verb));
  return flight;
}

SimFabric::Next SimFabric::Move(Flight& flight) {
  if (RandomFault(flight) || ExactFaultAfter(flight)) return Next::kStay;
  if (flight.held_until > now_) {
    flight.due = flight.held_until;
    return Next::kLater;
  }
  if (flight.Landed()) return Deliver(flight);

  FlightVerb& verb = flight.PickEnabled(random_);
  RandomPowerCut(verb.verb.at.node, Chaos::kStepsPerEvent);
  if (IsRefused(flight, verb)) {
    Refuse(flight, verb.verb.at.node);
    return Next::kStay;
  }
  if (ExactFaultBefore(flight, verb)) return Next::kStay;

  CloseWindows(flight);
  TakeEffect(flight, verb, CrashesMid(verb) || random_.Chance(options_.chaos.tear, kOneIn));
  if (ExactFaultAfter(flight)) return Next::kStay;

  if (!flight.Landed()) return Next::kStay;
  flight.due = now_ + SomeDelay(options_.chaos.delay_answer);
  return Next::kLater;
}

SimFabric::Next SimFabric::Deliver(Flight& flight) {
  SimClient* client = flight.client;
  Trip* trip = flight.trip;
  if (client != nullptr && trip != nullptr && client->asleep_until_ > now_) {
    flight.due = client->asleep_until_;
    return Next::kLater;
  }
  if (client != nullptr && flight.lose_completion) LoseConnection(*client);
  if (client != nullptr && flight.cut) Break(*client);
  if (client == nullptr || trip == nullptr) {
    Retire(flight);
    return Next::kGone;
  }

  if (flight.refused_by.has_value()) {
    flight.error = Refusal(flight);
  } else if (client->broken_.has_value()) {
    const Error lost = LostCompletion(trip->verbs, "the connection was lost in the middle of a trip");
    flight.error = lost.code() == ErrorCode::kOutcomeUnknown ? lost : *client->broken_;
  }
  // A Call that its handler refuses is a round trip like any other.
  client->completed_effect_ = std::max(client->completed_effect_, flight.last_effect);

  if (options_.digest != nullptr) options_.digest->Ended(now_, flight);
  if (flight.error.has_value()) {
    if (tracing())
      Say(flight.owner, fmt::format("trip {} fails: {}", flight.trip_number, flight.error->ToString()));
    trip->Fail(std::move(*flight.error));
  } else {
    if (tracing()) Say(flight.owner, fmt::format("trip {} completes", flight.trip_number));
    for (size_t i = 0; i < flight.verbs.size(); ++i) {
      const FlightVerb& flown = flight.verbs[i];
      Verb& answer = trip->verbs[i];
      answer.old = flown.verb.old;
      if (answer.kind == VerbKind::kRead && answer.size > 0) {
        std::memcpy(answer.into, flight.buffer.data() + flown.at_buffer, answer.size);
      }
      if (answer.kind == VerbKind::kCall) *answer.reply = std::move(flight.reply);
    }
    trip->Succeed();
  }
  Retire(flight);
  trip->Resume();
  return Next::kGone;
}

void SimFabric::Retire(Flight& flight) {
  if (flight.trip != nullptr) flight.trip->backend_data = nullptr;
  flight.trip = nullptr;
  flight.client = nullptr;
  flights_.back()->index = flight.index;
  flights_[flight.index] = flights_.back();
  flights_.pop_back();
  free_flights_.push_back(&flight);
}

SimClient* SimFabric::FindClient(ClientId id) {
  const auto found =
      std::find_if(clients_.begin(), clients_.end(), [id](SimClient* c) { return c->id() == id; });
  return found == clients_.end() ? nullptr : *found;
}

void SimFabric::Say(ClientId client, const std::string& what) { options_.trace->Add(now_, client, what); }

}  // namespace farside::fabric::sim
