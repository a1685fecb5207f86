#include "fabric/sim/flight.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace farside::fabric::sim {
namespace {

constexpr uint32_t kMostPieces = 64;

// What appears at once: a line, or only a word if the WRITE says that it is unreachable.
uint64_t GrainBytes(const Verb& verb) { return verb.unreachable ? 8 : kLineBytes; }

uint64_t Grains(const Verb& verb) {
  if (verb.size == 0) return 1;
  const uint64_t bytes = GrainBytes(verb);
  return (verb.at.offset + verb.size - 1) / bytes - verb.at.offset / bytes + 1;
}

uint64_t LowBits(uint32_t count) { return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

}  // namespace

Piece FlightVerb::PieceAt(uint32_t index) const {
  const uint64_t bytes = GrainBytes(verb);
  const uint64_t grains = Grains(verb);
  // The first grain may begin before the access, and the first cut come before it.
  const auto start_of = [&](uint64_t piece) {
    uint64_t skipped = piece;
    if (grains > pieces && piece > 0) skipped = ((piece - 1) * grains + shift) / (pieces - 1);
    return std::max((verb.at.offset / bytes + skipped) * bytes, verb.at.offset);
  };
  const uint64_t end = verb.at.offset + verb.size;
  const uint64_t from = start_of(index);
  const uint64_t to = index + 1 == pieces ? end : std::min(start_of(index + 1), end);
  return {.offset = from, .bytes = to - from, .at_buffer = at_buffer + (from - verb.at.offset)};
}

void Flight::Load(Order order, std::span<const Verb> posted, bool ordered_reads, uint64_t first_number,
                  Random& random) {
  verbs.clear();
  buffer.clear();
  request.clear();
  reply.clear();
  error.reset();
  touched = cut = lose_completion = false;
  refused_by.reset();
  held_until = Nanos(0);
  client = nullptr;
  trip = nullptr;
  last_effect = 0;
  done_ = 0;

  assert(posted.size() <= kMaxVerbsPerTrip);
  for (const Verb& verb : posted) {
    FlightVerb verb_in_flight;
    verb_in_flight.verb = verb;
    verb_in_flight.number = first_number + verbs.size();
    verb_in_flight.at_buffer = buffer.size();
    if (verb.kind == VerbKind::kRead || verb.kind == VerbKind::kWrite) {
      const uint64_t grains = Grains(verb);
      verb_in_flight.pieces = static_cast<uint32_t>(std::min<uint64_t>(grains, kMostPieces));
      if (grains > kMostPieces) verb_in_flight.shift = random.Below(grains);
      buffer.resize(buffer.size() + verb.size);
    } else {
      verb_in_flight.pieces = 1;
    }
    verb_in_flight.pending = LowBits(verb_in_flight.pieces);
    if (verb.kind == VerbKind::kWrite && verb.size > 0) {
      std::memcpy(buffer.data() + verb_in_flight.at_buffer, verb.from, verb.size);
    }
    assert((verb.kind != VerbKind::kCall || posted.size() == 1) && "a Call stands alone");
    if (verb.kind == VerbKind::kCall) request.assign(reinterpret_cast<const char*>(verb.from), verb.size);
    for (size_t earlier = 0; order == Order::kInOrder && earlier < verbs.size(); ++earlier) {
      if (MustPrecede(posted[earlier], verb, ordered_reads))
        verb_in_flight.waits_for |= uint64_t{1} << earlier;
    }
    verbs.push_back(verb_in_flight);
  }
}

FlightVerb& Flight::PickEnabled(Random& random) {
  uint64_t enabled = 0;
  for (size_t i = 0; i < verbs.size(); ++i) {
    if ((done_ >> i & 1) == 0 && (verbs[i].waits_for & ~done_) == 0) enabled |= uint64_t{1} << i;
  }
  assert(enabled != 0);
  const int count = std::popcount(enabled);
  uint64_t skip = count == 1 ? 0 : random.Below(static_cast<uint64_t>(count));
  while (skip-- > 0) enabled &= enabled - 1;
  return verbs[static_cast<size_t>(std::countr_zero(enabled))];
}

}  // namespace farside::fabric::sim
