// One number for everything that the clients of simulated worlds and their nodes did to each other.
//
// Two builds that post the same verbs in the same order at the same times, and get the same answers, have the
// same digest; any other byte, order or time gives another one. So a refactoring is shown to change no
// behaviour. The text of a Trace is made for people and may be worded anew; nothing of that is in the digest,
// and neither are addresses of this process.
//
// The digest hashes a sequence of records, each with the virtual time, the client and
//   a trip that was posted: order, and of every verb all fields and the bytes it writes
//   a piece of a READ or a WRITE that took effect: where, and its bytes
//   a verb that is done, or never will be: the word that an atomic found
//   a trip that has ended: its error, or the reply to a Call
//   a client that connected, died, lost its connection or fell asleep
//   a node that lost its power
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fabric/address.h"
#include "fabric/sim/flight.h"
#include "fabric/trip.h"

namespace farside::fabric::sim {

class VerbDigest {
 public:
  // What can happen to a client, beside its trips. The numbers are part of the digest.
  enum class ClientEvent : uint8_t { kConnected = 1, kCrashed = 2, kDisconnected = 3, kAsleep = 4 };

  // A digest may go on from one world to the next; Begin says that another one begins.
  void Begin(uint64_t seed);

  void Posted(Nanos now, const Flight& flight, Order order);
  void TookEffect(Nanos now, const Flight& flight, const FlightVerb& verb, const Piece& piece);
  void Finished(Nanos now, const Flight& flight, const FlightVerb& verb);
  void Ended(Nanos now, const Flight& flight);
  void Happened(Nanos now, ClientId client, ClientEvent event);
  void PowerCut(Nanos now, NodeId node);

  uint64_t value() const { return value_; }
  uint64_t verbs() const { return verbs_; }  // posted

 private:
  // The kind of a record. The numbers are part of the digest.
  enum class Kind : uint8_t {
    kBegin = 1,
    kPosted = 2,
    kVerb = 3,
    kTookEffect = 4,
    kFinished = 5,
    kEnded = 6,
    kClient = 7,
    kPowerCut = 8,
  };

  void Add(Kind kind, std::initializer_list<uint64_t> numbers, std::span<const std::byte> bytes = {});

  uint64_t value_ = 0;
  uint64_t verbs_ = 0;
  std::vector<std::byte> record_;  // reused
};

}  // namespace farside::fabric::sim
