#include "fabric/sim/flight.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace farside::fabric::sim {
namespace {

constexpr uint32_t kMostPieces = 64;

uint64_t Lines(const Verb& verb) {
  if (verb.size == 0) return 1;
  return (verb.at.offset + verb.size - 1) / kLineBytes - verb.at.offset / kLineBytes + 1;
}

uint64_t LowBits(uint32_t count) { return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

}  // namespace

Piece FlyingVerb::PieceAt(uint32_t index) const {
  const uint64_t lines = Lines(verb);
  const uint64_t first = verb.at.offset / kLineBytes;
  const uint64_t from_line = first + index * lines / pieces;
  const uint64_t to_line = first + (index + 1) * lines / pieces;
  const uint64_t from = std::max(from_line * kLineBytes, verb.at.offset);
  const uint64_t to = std::min(to_line * kLineBytes, verb.at.offset + verb.size);
  return {.offset = from, .bytes = to - from, .at_buffer = at_buffer + (from - verb.at.offset)};
}

void Flight::Load(Order order, std::span<const Verb> posted, bool ordered_reads, uint64_t first_number) {
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
    FlyingVerb flying;
    flying.verb = verb;
    flying.number = first_number + verbs.size();
    flying.at_buffer = buffer.size();
    if (verb.kind == VerbKind::kRead || verb.kind == VerbKind::kWrite) {
      flying.pieces = static_cast<uint32_t>(std::min<uint64_t>(Lines(verb), kMostPieces));
      buffer.resize(buffer.size() + verb.size);
    } else {
      flying.pieces = 1;
    }
    flying.pending = LowBits(flying.pieces);
    if (verb.kind == VerbKind::kWrite && verb.size > 0) {
      std::memcpy(buffer.data() + flying.at_buffer, verb.from, verb.size);
    }
    if (verb.kind == VerbKind::kCall) request.assign(reinterpret_cast<const char*>(verb.from), verb.size);
    for (size_t earlier = 0; order == Order::kInOrder && earlier < verbs.size(); ++earlier) {
      if (MustPrecede(posted[earlier], verb, ordered_reads)) flying.waits_for |= uint64_t{1} << earlier;
    }
    verbs.push_back(flying);
  }
}

FlyingVerb& Flight::PickEnabled(Random& random) {
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
