#include "fabric/sim/verb_digest.h"

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::fabric::sim {
namespace {

uint64_t Time(Nanos now) { return static_cast<uint64_t>(now.count()); }

// The bytes that the verb writes or sends; none of the others.
std::span<const std::byte> PayloadOf(const Flight& flight, const FlightVerb& verb_in_flight) {
  if (verb_in_flight.verb.kind == VerbKind::kWrite)
    return std::span(flight.buffer).subspan(verb_in_flight.at_buffer, verb_in_flight.verb.size);
  if (verb_in_flight.verb.kind == VerbKind::kCall) return AsBytes(flight.request);
  return {};
}

}  // namespace

void VerbDigest::Begin(uint64_t seed) { Add(Kind::kBegin, {seed}); }

void VerbDigest::Posted(Nanos now, const Flight& flight, Order order) {
  Add(Kind::kPosted, {Time(now), Number(flight.owner), flight.trip_number, static_cast<uint64_t>(order)});
  for (const FlightVerb& verb_in_flight : flight.verbs) {
    const Verb& verb = verb_in_flight.verb;
    Add(Kind::kVerb,
        {verb_in_flight.number, static_cast<uint64_t>(verb.kind), static_cast<uint64_t>(verb.purpose),
         verb.fenced, verb.unreachable, verb.call.engine, verb.call.operation, Index(verb.at.node),
         verb.at.offset, verb.size, verb.expect, verb.desired, verb.compare_mask, verb.swap_mask, verb.hint},
        PayloadOf(flight, verb_in_flight));
  }
  verbs_ += flight.verbs.size();
}

void VerbDigest::TookEffect(Nanos now, const Flight& flight, const FlightVerb& verb, const Piece& piece) {
  Add(Kind::kTookEffect,
      {Time(now), Number(flight.owner), verb.number, Index(verb.verb.at.node), piece.offset},
      std::span(flight.buffer).subspan(piece.at_buffer, piece.bytes));
}

void VerbDigest::Finished(Nanos now, const Flight& flight, const FlightVerb& verb) {
  const uint64_t found = IsAtomic(verb.verb.kind) ? verb.verb.old : 0;
  Add(Kind::kFinished, {Time(now), Number(flight.owner), verb.number, found, verb.dropped});
}

void VerbDigest::Ended(Nanos now, const Flight& flight) {
  const uint64_t error = flight.error.has_value() ? 1 + static_cast<uint64_t>(flight.error->code()) : 0;
  Add(Kind::kEnded, {Time(now), Number(flight.owner), flight.trip_number, error}, AsBytes(flight.reply));
}

void VerbDigest::Happened(Nanos now, ClientId client, ClientEvent event) {
  Add(Kind::kClient, {Time(now), Number(client), static_cast<uint64_t>(event)});
}

void VerbDigest::PowerCut(Nanos now, NodeId node) { Add(Kind::kPowerCut, {Time(now), Index(node)}); }

// The number of bytes is part of the record, so that no two sequences of records have the same bytes.
void VerbDigest::Add(Kind kind, std::initializer_list<uint64_t> numbers, std::span<const std::byte> bytes) {
  record_.resize((2 + numbers.size()) * sizeof(uint64_t));
  std::byte* at = record_.data();
  const auto put = [&at](uint64_t number) {
    StoreU64(at, number);
    at += sizeof(number);
  };
  put(static_cast<uint64_t>(kind));
  put(bytes.size());
  for (const uint64_t number : numbers) put(number);
  record_.insert(record_.end(), bytes.begin(), bytes.end());
  value_ = Hash64(record_, value_);
}

}  // namespace farside::fabric::sim
