// A trip on its way through the timed fabric: its verbs, grouped by node, and what became of them.
//
// What is written is copied when the trip is posted, since a coroutine may be gone before its verbs arrive.
// What is read goes straight to the trip's buffers at the moment the READ takes effect, if its coroutine
// still waits then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/sim/timed/agenda.h"
#include "fabric/trip.h"
#include "fabric/verb.h"

namespace farside::fabric::sim {

class TimedClient;
class TimedTrip;

// The verbs of a timed trip that go to one node. They travel in rounds: a fence, or more READs and atomics
// than a connection may have open, makes the rest wait at the client's card until the answers are there.
struct Leg : TimedEvent {
  TimedTrip* timed_trip = nullptr;
  NodeId node{};
  uint32_t begin = 0;  // the round on its way, as verbs of the timed trip
  uint32_t round_end = 0;
  uint32_t end = 0;  // of all rounds
  // What the round costs; see Measure.
  uint32_t packets = 0;
  uint64_t request_bytes = 0;
  uint64_t answer_bytes = 0;
  // If the round has a Call or a FENCE: how long handlers of the node had flushed when it came there.
  std::optional<Picos> flushed_before;
};

struct TimedVerb {
  Verb verb;
  size_t index = 0;  // in the trip
  size_t at_payload = 0;
};

class TimedTrip : public TimedEvent {
 public:
  // Starts over with a copy of the trip's verbs and of the bytes they write.
  void Load(std::span<const Verb> posted);
  // Sets the next round of a leg, which begins at `begin`, and what it costs.
  void Measure(Leg& leg, uint32_t header_bytes, uint32_t packet_bytes) const;

  std::vector<TimedVerb> verbs;  // grouped by node
  std::vector<Leg> legs;
  std::vector<std::byte> payload;

  std::string reply;           // of a Call
  std::optional<Error> error;  // of its handler
  bool touched = false;        // something has taken effect that may have changed something
  std::optional<NodeId> refused_by;

  ClientId owner{};
  uint32_t compute_node = 0;      // of the owner
  TimedClient* client = nullptr;  // null: the client object is gone
  Trip* trip = nullptr;           // null: no coroutine waits
  size_t legs_under_way = 0;
  // Others of the same client.
  TimedTrip* previous_of_client = nullptr;
  TimedTrip* next_of_client = nullptr;
  uint64_t number = 0;  // over all clients, in the order of posting

 private:
  void Take(const Verb& verb, size_t index);
};

}  // namespace farside::fabric::sim
