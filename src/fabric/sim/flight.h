// A trip on its way through the simulated world: which parts of which verbs have taken effect, and
// which may do so next.
//
// A verb takes effect piece by piece: a READ or a WRITE in lines, in any order (a WRITE that claims to be
// unreachable, in words); an atomic at once, or in two steps (fetch, store back). A piece may take effect
// when every verb that must precede its own is done. The bytes on the way live here, so that nothing points
// into a coroutine that may be gone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/sim/event.h"
#include "fabric/trip.h"
#include "fabric/verb.h"

namespace farside::fabric::sim {

class SimClient;

// A range of bytes of a node's region, and where they stand in the flight's buffer.
struct Piece {
  uint64_t offset = 0;
  size_t bytes = 0;
  size_t at_buffer = 0;
};

struct FlightVerb {
  Verb verb;
  uint64_t number = 0;       // over all clients, in the order of posting
  uint64_t incarnation = 0;  // of the node to which its client is connected
  uint64_t waits_for = 0;    // bit i: the i-th verb of the trip must be done first
  uint64_t pending = 0;      // bit i: the i-th piece has not taken effect
  uint32_t pieces = 0;
  uint64_t shift = 0;    // moves the cuts between pieces, where there are more lines than pieces
  bool fetched = false;  // an atomic between its two steps; a Call whose handler has run
  bool dropped = false;  // it has not taken effect, or not as a whole, and never will
  size_t at_buffer = 0;  // its bytes in the flight's buffer
  uint64_t window = 0;   // event at which the first piece was sampled; 0: no window is open

  // Lines are the pieces; an access of more than 64 lines is cut into 64 runs of them, anew each time, so
  // that any two neighbours may be taken apart.
  Piece PieceAt(uint32_t index) const;
  bool Started() const { return std::popcount(pending) != static_cast<int>(pieces) || fetched; }
};

class Flight : public Event {
 public:
  Flight() : Event(EventKind::kFlight) {}

  // Starts over with a copy of the trip's verbs and of the bytes they write.
  void Load(Order order, std::span<const Verb> posted, bool ordered_reads, uint64_t first_number,
            Random& random);

  // A verb that may take effect now, chosen by `random`; the flight must not be Landed().
  FlightVerb& PickEnabled(Random& random);
  // The verb with this number, or null.
  FlightVerb* Find(uint64_t number) {
    const uint64_t position = number - verbs.front().number;
    return position < verbs.size() ? &verbs[position] : nullptr;
  }
  // Called when the pieces of `verb` are all done, or will never be.
  void Finish(FlightVerb& verb) { done_ |= uint64_t{1} << (&verb - verbs.data()); }
  bool IsDone(const FlightVerb& verb) const { return (done_ >> (&verb - verbs.data()) & 1) != 0; }
  // Every verb has taken effect or never will.
  bool Landed() const { return std::popcount(done_) == static_cast<int>(verbs.size()); }

  std::vector<FlightVerb> verbs;
  std::vector<std::byte> buffer;
  std::string request;  // of a Call
  std::string reply;
  std::optional<Error> error;  // the answer of a handler
  bool touched = false;        // some piece has taken effect that may have changed something
  bool cut = false;            // some verb will never take effect
  std::optional<NodeId> refused_by;
  bool lose_completion = false;
  Nanos held_until{};  // nothing of it happens before

  ClientId owner{};
  SimClient* client = nullptr;  // null: the client object is gone
  Trip* trip = nullptr;         // null: no coroutine waits
  uint64_t trip_number = 0;
  uint64_t causal_floor = 0;  // last event of a trip that its client had seen completed before posting this
  uint64_t last_effect = 0;
  size_t index = 0;  // in the world's list of flights

 private:
  uint64_t done_ = 0;
};

}  // namespace farside::fabric::sim
