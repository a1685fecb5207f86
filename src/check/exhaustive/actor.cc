#include "check/exhaustive/actor.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/hash.h"
#include "check/exhaustive/scenario.h"

namespace farside::check {

namespace exhaustive {

// Time follows from what the program does, so that it is the same whenever the program runs again.
class Connection final : public fabric::Client {
 public:
  Connection(Actor& actor, uint32_t number)
      : fabric::Client(IdOf(actor.number_, number)), actor_(actor), number_(number) {}

  std::span<const uint64_t> region_bytes() const override { return {&actor_.region_bytes_, 1}; }
  Nanos Now() const override { return actor_.now_; }

  bool Start(fabric::Trip& trip) override {
    actor_.now_ += kTripTime;
    return actor_.wire_.Start(number_, trip);
  }
  void Abandon(fabric::Trip&) noexcept override {}
  void Detach(fabric::Order order, std::span<const fabric::Verb> verbs) override {
    actor_.wire_.Detach(number_, order, verbs);
  }

  void Start(fabric::Timer& timer) override {
    assert(actor_.timer_ == nullptr && "a program does one thing at a time");
    actor_.timer_ = &timer;
  }
  void Abandon(fabric::Timer& timer) noexcept override {
    if (actor_.timer_ == &timer) actor_.timer_ = nullptr;
  }
  bool Poll() override { return actor_.Poll(); }
  bool orders_reads() const override { return actor_.orders_reads_; }
  bool stores_back_failed_cas() const override { return actor_.stores_back_failed_cas_; }
  // No scenario has a pool, whose epochs would have to wait for detached verbs.
  bool HasUnawaited() const override { return false; }
  uint64_t trips_posted() const override { return 0; }
  bool HasUnawaitedOfFirst(uint64_t /*posted*/) const override { return false; }

 private:
  static constexpr Nanos kTripTime{2000};

  Actor& actor_;
  const uint32_t number_;
};

}  // namespace exhaustive

using exhaustive::Event;
using exhaustive::EventKind;

namespace {

constexpr Nanos kTimePerOperation{1'000'000'000};  // more than any takes

}  // namespace

Actor::Actor(uint32_t number, const Scenario& scenario, exhaustive::Wire& wire)
    : number_(number),
      region_bytes_(scenario.region_bytes),
      orders_reads_(scenario.freedoms.promise_ordered_reads),
      stores_back_failed_cas_(scenario.freedoms.store_back_failed_cas),
      wire_(wire) {
  Reconnect();
}

Actor::~Actor() = default;

fabric::Client& Actor::client() { return *connections_.back(); }

fabric::Client& Actor::Reconnect() {
  const auto number = static_cast<uint32_t>(connections_.size());
  connections_.push_back(std::make_unique<exhaustive::Connection>(*this, number));
  return client();
}

OpId Actor::Invoke(const Call& call) {
  const OpId id{operations_++};
  Event event{.kind = EventKind::kInvoke, .operation = NameOf(id)};
  event.call.client = static_cast<int>(exhaustive::ClientNumber(number_));
  event.call.kind = call.kind;
  event.call.key = call.key;
  event.call.value = call.value;
  event.call.expected = call.expected;
  event.call.delta = call.delta;
  wire_.Note(event);
  return id;
}

void Actor::Return(OpId id, Outcome outcome) {
  wire_.Note({.kind = EventKind::kReturn, .operation = NameOf(id), .outcome = std::move(outcome)});
}

void Actor::Fail(OpId id, const Error& error) {
  const bool unknown = error.code() == ErrorCode::kOutcomeUnknown;
  wire_.Note({.kind = unknown ? EventKind::kLoseAnswer : EventKind::kRefuse,
              .operation = NameOf(id),
              .why = unknown ? "" : error.ToString()});
}

// The time must not tell how the program came here either.
void Actor::Forget(uint64_t place) {
  now_ = std::max(now_, kTimePerOperation * operations_);
  const uint64_t here[] = {number_, place, operations_, connections_.size()};
  wire_.Forget(Hash64(std::as_bytes(std::span(here))));
}

bool Actor::Poll() {
  if (timer_ == nullptr) return false;
  fabric::Timer& due = *std::exchange(timer_, nullptr);
  now_ = std::max(now_, due.due);
  due.waiter.resume();
  return true;
}

Task<Done> Recorded(Actor& self, Call call, Task<Outcome> operation) {
  const OpId id = self.Invoke(call);
  Result<Outcome> outcome = co_await operation.Outcome();
  if (!outcome.ok()) {
    self.Fail(id, outcome.error());
    co_return outcome.error();
  }
  self.Return(id, std::move(*outcome));
  co_return Done{};
}

}  // namespace farside::check
