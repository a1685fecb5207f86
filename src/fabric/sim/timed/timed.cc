// The event loop of the timed fabric, the way of a trip through it, and its clients. How verbs take effect is
// in timed_effects.cc.
#include "fabric/sim/timed/timed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace farside::fabric::sim {
namespace {

Picos ToPicos(Nanos time) { return time.count() * kPicosPerNano; }

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Status CheckShape(const TimedOptions& options) {
  const size_t nodes = options.region_bytes.size();
  if (nodes < 1 || nodes > kMostNodes) {
    return Refuse(fmt::format("{} memory nodes were asked for; 1 to {} are possible", nodes, kMostNodes));
  }
  if (options.compute_nodes < 1 || options.compute_nodes > kMostNodes) {
    return Refuse(fmt::format("{} compute nodes were asked for; 1 to {} are possible", options.compute_nodes,
                              kMostNodes));
  }
  if (options.colocated && options.compute_nodes != nodes) {
    return Refuse(
        fmt::format("{} compute nodes cannot stand on the machines of {} memory nodes; ask for as many, or "
                    "for machines of their own",
                    options.compute_nodes, nodes));
  }
  for (const uint64_t bytes : options.region_bytes) {
    if (bytes == 0 || bytes % kLineBytes != 0) {
      return Refuse(fmt::format("a region has {} bytes; choose a multiple of {}", bytes, kLineBytes));
    }
  }
  return Check(options.model);
}

}  // namespace

// ---- client ------------------------------------------------------------------------------------------

TimedClient::TimedClient(TimedFabric& world, ClientId id, uint32_t compute_node)
    : Client(id, Distance::kFar), world_(world), compute_node_(compute_node) {
  ++world_.clients_;
}

// What it has in flight still takes effect, unless it is fenced.
TimedClient::~TimedClient() {
  for (TimedTrip* timed_trip = trips_; timed_trip != nullptr; timed_trip = timed_trip->next_of_client) {
    timed_trip->client = nullptr;
    timed_trip->trip = nullptr;
  }
  for (TimedFabric::TimerEvent& event : world_.timer_storage_) {
    if (event.client == this) event.timer = nullptr;
  }
  --world_.clients_;
}

std::span<const uint64_t> TimedClient::region_bytes() const { return world_.region_bytes(); }
Nanos TimedClient::Now() const { return world_.Now(); }

bool TimedClient::Start(Trip& trip) {
  std::optional<Error> refused = broken_;
  if (!refused.has_value()) refused = CheckBounds(trip.verbs, region_bytes());
  if (refused.has_value()) {
    trip.Fail(std::move(*refused));
    return true;
  }
  TimedTrip& timed_trip = world_.Post(*this, trip.verbs);
  timed_trip.trip = &trip;
  trip.backend_data = &timed_trip;
  return false;
}

void TimedClient::Abandon(Trip& trip) noexcept {
  auto* timed_trip = static_cast<TimedTrip*>(trip.backend_data);
  if (timed_trip == nullptr) return;
  timed_trip->trip = nullptr;
  ++unawaited_;
}

void TimedClient::Detach(Order /*order*/, std::span<const Verb> verbs) {
  if (broken_.has_value() || CheckBounds(verbs, region_bytes()).has_value()) return;
  world_.Post(*this, verbs);
  ++unawaited_;
}

uint64_t TimedClient::trips_posted() const { return world_.trips_posted_; }

bool TimedClient::HasUnawaitedOfFirst(uint64_t posted) const {
  if (unawaited_ == 0) return false;
  for (const TimedTrip* one = trips_; one != nullptr; one = one->next_of_client) {
    if (one->trip == nullptr && one->number <= posted) return true;
  }
  return false;
}

void TimedClient::Start(Timer& timer) {
  if (world_.free_timers_.empty()) world_.free_timers_.push_back(&world_.timer_storage_.emplace_back());
  TimedFabric::TimerEvent& event = *world_.free_timers_.back();
  world_.free_timers_.pop_back();
  event.client = this;
  event.timer = &timer;
  timer.backend_data = &event;
  world_.Schedule(event, Happening::kTimer, ToPicos(timer.due));
}

void TimedClient::Abandon(Timer& timer) noexcept {
  auto* event = static_cast<TimedFabric::TimerEvent*>(timer.backend_data);
  if (event != nullptr) event->timer = nullptr;
}

bool TimedClient::Poll() { return world_.Step(); }

// ---- world -------------------------------------------------------------------------------------------

Result<std::unique_ptr<TimedFabric>> TimedFabric::Open(TimedOptions options) {
  if (Status good = CheckShape(options); !good.ok()) return good.error();
  std::unique_ptr<TimedFabric> fabric(new TimedFabric(std::move(options)));
  for (const uint64_t bytes : fabric->options_.region_bytes) {
    Result<memory::Region> region = memory::Region::Anonymous(bytes);
    if (!region.ok()) return region.error();
    fabric->nodes_.emplace_back(std::move(*region));
  }
  const size_t own_cards = fabric->options_.colocated ? 0 : fabric->options_.compute_nodes;
  fabric->nics_.resize(fabric->nodes_.size() + own_cards);
  return fabric;
}

TimedFabric::TimedFabric(TimedOptions options)
    : options_(std::move(options)), times_(options_.model), random_(options_.seed) {}

TimedFabric::~TimedFabric() { assert(clients_ == 0 && "clients must not outlive the fabric"); }

Result<std::unique_ptr<Client>> TimedFabric::Connect() {
  return Connect(last_client_ % options_.compute_nodes);
}

Result<std::unique_ptr<Client>> TimedFabric::Connect(uint32_t compute_node) {
  if (compute_node >= options_.compute_nodes) {
    return Refuse(fmt::format("there is no compute node {}: there are {}, counted from 0", compute_node,
                              options_.compute_nodes));
  }
  if (last_client_ == std::numeric_limits<uint32_t>::max()) {
    return Error(ErrorCode::kUnavailable, "all client ids were given out; open the fabric anew");
  }
  const auto id = static_cast<ClientId>(++last_client_);
  return std::unique_ptr<Client>(std::make_unique<TimedClient>(*this, id, compute_node));
}

FlushCounts TimedFabric::flushed() const {
  FlushCounts all;
  for (const Node& node : nodes_) all += node.flushed;
  return all;
}

void TimedFabric::Schedule(TimedEvent& event, Happening what, Picos at) {
  event.what = what;
  event.at = at;
  agenda_.Add(event);
}

bool TimedFabric::Step() {
  TimedEvent* const event = agenda_.Take();
  if (event == nullptr) return false;
  ++events_;
  now_ = std::max(now_, event->at);
  switch (event->what) {
    case Happening::kPosted:
      for (Leg& leg : static_cast<TimedTrip*>(event)->legs) SendRound(leg, event->at);
      break;
    case Happening::kAtNode: ArriveAtNode(static_cast<Leg&>(*event)); break;
    case Happening::kTakesEffect: TakeEffect(static_cast<Leg&>(*event)); break;
    case Happening::kFlushed: SendAnswer(static_cast<Leg&>(*event)); break;
    case Happening::kAnswered: TakeAnswer(static_cast<Leg&>(*event)); break;
    case Happening::kReaped: Reap(static_cast<TimedTrip&>(*event)); break;
    case Happening::kTimer: Fire(static_cast<TimerEvent&>(*event)); break;
  }
  return true;
}

void TimedFabric::Fire(TimerEvent& event) {
  Timer* const timer = event.timer;
  event.client = nullptr;
  event.timer = nullptr;
  free_timers_.push_back(&event);
  if (timer == nullptr) return;
  timer->backend_data = nullptr;
  timer->waiter.resume();
}

// ---- the way of a trip ---------------------------------------------------------------------------------

Picos TimedFabric::Wire() {
  const Picos half = ToPicos(options_.model.round_trip) / 2;
  const Picos jitter = ToPicos(options_.model.jitter);
  return jitter == 0 ? half : half + static_cast<Picos>(random_.Below(static_cast<uint64_t>(jitter) + 1));
}

TimedTrip& TimedFabric::Post(TimedClient& client, std::span<const Verb> verbs) {
  if (free_trips_.empty()) free_trips_.push_back(&trip_storage_.emplace_back());
  TimedTrip& timed_trip = *free_trips_.back();
  free_trips_.pop_back();
  timed_trip.Load(verbs);
  timed_trip.trip = nullptr;
  timed_trip.client = &client;
  timed_trip.owner = client.id();
  timed_trip.compute_node = client.compute_node_;
  timed_trip.previous_of_client = nullptr;
  timed_trip.next_of_client = client.trips_;
  if (client.trips_ != nullptr) client.trips_->previous_of_client = &timed_trip;
  client.trips_ = &timed_trip;
  timed_trip.number = ++trips_posted_;

  const NicModel& model = options_.model;
  const Nanos work = static_cast<int64_t>(timed_trip.legs.size()) * model.post_trip +
                     static_cast<int64_t>(verbs.size()) * model.post_verb;
  Schedule(timed_trip, Happening::kPosted, client.processor_.Serve(now_, ToPicos(work), ToPicos(work)));
  return timed_trip;
}

// By now the client may be gone; its card is not.
void TimedFabric::SendRound(Leg& leg, Picos at) {
  leg.timed_trip->Measure(leg, options_.model.header_bytes, options_.model.packet_bytes);
  Nic& nic = NicOfCompute(leg.timed_trip->compute_node);
  const Picos processed = nic.Process(at, leg.packets, times_.compute_verb);
  const Picos sent = nic.Send(at, times_.OnWire(leg.request_bytes));
  Schedule(leg, Happening::kAtNode, std::max(processed, sent) + Wire());
}

void TimedFabric::ArriveAtNode(Leg& leg) {
  Node& node = nodes_[Index(leg.node)];
  Nic& nic = nics_[Index(leg.node)];
  Picos ready = nic.Receive(leg.at, times_.OnWire(leg.request_bytes));
  // The whole round is here; its first verb came as much earlier as the client's card took for the others.
  const Picos first = leg.at - (static_cast<Picos>(leg.packets) - 1) * times_.compute_verb;
  ready = std::max(ready, nic.Process(first, leg.packets, times_.memory_verb));
  leg.flushed_before.reset();
  for (uint32_t i = leg.begin; i < leg.round_end; ++i) {
    const Verb& verb = leg.timed_trip->verbs[i].verb;
    if (IsAtomic(verb.kind)) ready = std::max(ready, node.atomics.Execute(first, verb.at.offset, times_));
    if (IsControl(verb.kind)) {
      const Picos work = ToPicos(options_.model.call);
      ready = std::max(ready, node.processor.Serve(ready, work, work));
      leg.flushed_before = node.flushing;
    }
  }
  Schedule(leg, Happening::kTakesEffect, ready);
}

void TimedFabric::TakeEffect(Leg& leg) {
  TimedTrip& timed_trip = *leg.timed_trip;
  Node& node = nodes_[Index(leg.node)];
  // INVARIANT timed/6. Handlers that have ended since this came to the node took longer than was known then.
  if (const Picos late = node.flushing - leg.flushed_before.value_or(node.flushing); late > 0) {
    leg.flushed_before = node.flushing;
    return Schedule(leg, Happening::kTakesEffect, leg.at + late);
  }
  const Picos flushing_before = node.flushing;
  for (uint32_t i = leg.begin; i < leg.round_end; ++i) {
    // INVARIANT timed/4. Looked at for every verb, since a client may fence itself.
    if (IsCutOff(node, timed_trip.owner)) {
      timed_trip.refused_by = leg.node;
      leg.round_end = leg.end;  // what would follow is not sent
      break;
    }
    Execute(timed_trip, timed_trip.verbs[i]);
  }
  const Picos flushing = node.flushing - flushing_before;
  if (flushing == 0) return SendAnswer(leg);
  node.processor.Extend(leg.at, flushing);
  Schedule(leg, Happening::kFlushed, leg.at + flushing);
}

void TimedFabric::SendAnswer(Leg& leg) {
  const TimedTrip& timed_trip = *leg.timed_trip;
  const uint64_t answer = leg.answer_bytes + timed_trip.reply.size();
  const Picos sent = nics_[Index(leg.node)].Send(leg.at, times_.OnWire(answer));
  Schedule(leg, Happening::kAnswered, sent + Wire());
}

void TimedFabric::TakeAnswer(Leg& leg) {
  TimedTrip& timed_trip = *leg.timed_trip;
  const uint64_t answer = leg.answer_bytes + timed_trip.reply.size();
  const Picos received = NicOfCompute(timed_trip.compute_node).Receive(leg.at, times_.OnWire(answer));
  if (leg.round_end < leg.end) {
    leg.begin = leg.round_end;
    return SendRound(leg, received);
  }
  if (--timed_trip.legs_under_way > 0) return;
  if (timed_trip.trip == nullptr && !timed_trip.refused_by.has_value()) return Retire(timed_trip);
  // Reaped also if no coroutine waits but the client has to hear that it was refused.
  Picos reaped = received;
  if (timed_trip.client != nullptr) {
    const Picos work = ToPicos(options_.model.completion) * static_cast<Picos>(timed_trip.legs.size());
    reaped = timed_trip.client->processor_.Serve(received, work, work);
  }
  Schedule(timed_trip, Happening::kReaped, reaped);
}

void TimedFabric::Reap(TimedTrip& timed_trip) {
  std::optional<Error> error = std::move(timed_trip.error);
  if (timed_trip.refused_by.has_value() && timed_trip.client != nullptr) {
    error = Refusal(timed_trip);
    if (!timed_trip.client->broken_.has_value()) {
      timed_trip.client->broken_ =
          Error(ErrorCode::kFenced,
                fmt::format("client {} was fenced: it was taken for dead; reconnect as a new client",
                            Number(timed_trip.owner)));
    }
  }
  Trip* const trip = timed_trip.trip;
  if (trip == nullptr) return Retire(timed_trip);
  if (error.has_value()) {
    trip->Fail(std::move(*error));
  } else {
    if (trip->verbs.front().kind == VerbKind::kCall) *trip->verbs.front().reply = std::move(timed_trip.reply);
    trip->Succeed();
  }
  Retire(timed_trip);
  trip->Resume();
}

void TimedFabric::Retire(TimedTrip& timed_trip) {
  if (TimedClient* const client = timed_trip.client; client != nullptr) {
    if (timed_trip.trip == nullptr) --client->unawaited_;
    if (timed_trip.next_of_client != nullptr)
      timed_trip.next_of_client->previous_of_client = timed_trip.previous_of_client;
    (timed_trip.previous_of_client != nullptr ? timed_trip.previous_of_client->next_of_client
                                              : client->trips_) = timed_trip.next_of_client;
  }
  if (timed_trip.trip != nullptr) timed_trip.trip->backend_data = nullptr;
  timed_trip.trip = nullptr;
  timed_trip.client = nullptr;
  free_trips_.push_back(&timed_trip);
}

// ---- what was busy -------------------------------------------------------------------------------------

std::vector<ResourceUse> TimedFabric::Uses() const {
  const Picos elapsed = now_ - measured_since_;
  std::vector<ResourceUse> uses;
  const auto add = [&](std::string name, const Server& server) {
    const double share =
        elapsed == 0 ? 0 : static_cast<double>(server.Busy(now_)) / static_cast<double>(elapsed);
    uses.push_back({std::move(name), share, server.served()});
  };
  for (size_t i = 0; i < nics_.size(); ++i) {
    const bool of_memory = i < nodes_.size();
    const std::string name = of_memory ? fmt::format("{} {}", options_.colocated ? "machine" : "memory", i)
                                       : fmt::format("compute {}", i - nodes_.size());
    add(name + " verbs", nics_[i].verbs);
    add(name + " out", nics_[i].out);
    add(name + " in", nics_[i].in);
    if (!of_memory) continue;
    add(name + " atomics", nodes_[i].atomics.unit());
    add(name + " hottest word", nodes_[i].atomics.HottestWord(now_));
    add(name + " processor", nodes_[i].processor);
  }
  return uses;
}

void TimedFabric::ResetUses() {
  measured_since_ = now_;
  for (Nic& nic : nics_) {
    for (Server* server : {&nic.verbs, &nic.out, &nic.in}) server->ResetUse(now_);
  }
  for (Node& node : nodes_) {
    node.atomics.ResetUse(now_);
    node.processor.ResetUse(now_);
  }
}

}  // namespace farside::fabric::sim
