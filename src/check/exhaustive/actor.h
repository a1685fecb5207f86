// A client as its program sees it: connections to far memory, and a record of its operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "check/exhaustive/monitor.h"
#include "check/history.h"
#include "fabric/client.h"
#include "fabric/trip.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::check {

struct Scenario;

namespace exhaustive {

// Where the trips of an actor go.
class Wire {
 public:
  virtual ~Wire() = default;
  // As fabric::Client: true if the trip has ended already. Otherwise it never will.
  virtual bool Start(uint32_t connection, fabric::Trip& trip) = 0;
  virtual void Detach(uint32_t connection, fabric::Order order, std::span<const fabric::Verb> verbs) = 0;
  // An operation of the actor began or ended.
  virtual void Note(const Event& event) = 0;
  // What the actor does from now on follows from `key`, and from what comes.
  virtual void Forget(uint64_t key) = 0;
};

inline constexpr uint32_t kMostActors = 8;
inline constexpr uint32_t kMostConnections = 8;  // of one actor

// Client ids are readable in lock words: 3 is the first connection of client 3, 103 its second one.
constexpr uint32_t ClientNumber(uint32_t actor) { return actor + 1; }
constexpr fabric::ClientId IdOf(uint32_t actor, uint32_t connection) {
  return fabric::ClientId{ClientNumber(actor) + 100 * connection};
}

class Connection;

}  // namespace exhaustive

class Actor {
 public:
  Actor(uint32_t number, const Scenario& scenario, exhaustive::Wire& wire);
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor();

  // The newest connection.
  fabric::Client& client();
  // A new one, with a new id. The old one stays as it is: its verbs may take effect until it is fenced.
  fabric::Client& Reconnect();

  // The record. An operation takes no time between its last trip and its return, nor between its invocation
  // and its first trip: that is the hardest case to explain.
  OpId Invoke(const Call& call);
  void Return(OpId id, Outcome outcome);
  // kOutcomeUnknown: it may have happened. Any other error promises that it has not.
  void Fail(OpId id, const Error& error);

  // A promise: what the program does from here on depends on nothing that it has seen so far, but only on the
  // place in the program, which `place` tells apart from others. Then it does not matter to the search how it
  // came here. For example between two operations of an index that has no cache, or before another attempt.
  void Forget(uint64_t place);

  // ---- for the code that runs programs
  // Lets pauses end. False: nothing is left to wait for.
  bool Poll();
  size_t connections() const { return connections_.size(); }

 private:
  friend class exhaustive::Connection;

  uint32_t NameOf(OpId id) const { return number_ << 16 | static_cast<uint32_t>(id); }

  const uint32_t number_;
  const uint64_t region_bytes_;
  const bool orders_reads_;
  const bool stores_back_failed_cas_;
  exhaustive::Wire& wire_;
  std::vector<std::unique_ptr<exhaustive::Connection>> connections_;
  uint32_t operations_ = 0;  // begun so far
  Nanos now_{};              // private: passes with its own trips and pauses only
  fabric::Timer* timer_ = nullptr;
};

// Runs an operation and records it. An error of it is recorded and passed on.
Task<Done> Recorded(Actor& self, Call call, Task<Outcome> operation);

}  // namespace farside::check
