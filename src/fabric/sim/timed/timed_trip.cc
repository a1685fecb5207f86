#include "fabric/sim/timed/timed_trip.h"

#include <algorithm>
#include <cassert>

namespace farside::fabric::sim {
namespace {

// The words of an atomic on the wire: what it compares and swaps, and what was there.
constexpr uint64_t kAtomicRequestBytes = 16;
constexpr uint64_t kWordBytes = 8;

uint64_t RequestBytes(const Verb& verb) {
  if (IsAtomic(verb.kind)) return kAtomicRequestBytes;
  return verb.kind == VerbKind::kRead ? 0 : verb.size;
}

// Of a READ or an atomic; everything else is acknowledged without data.
uint64_t AnswerBytes(const Verb& verb) { return verb.kind == VerbKind::kRead ? verb.size : kWordBytes; }

}  // namespace

void TimedTrip::Load(std::span<const Verb> posted) {
  assert(!posted.empty() && posted.size() <= kMaxVerbsPerTrip);
  verbs.clear();
  legs.clear();
  payload.clear();
  reply.clear();
  error.reset();
  touched = false;
  refused_by.reset();

  // Nearly always one node. If not: by node, in the order in which the trip names them.
  uint64_t taken = 0;
  for (size_t first = 0; first < posted.size(); ++first) {
    if ((taken >> first & 1) != 0) continue;
    Leg& leg = legs.emplace_back();
    leg.timed_trip = this;
    leg.node = posted[first].at.node;
    leg.begin = static_cast<uint32_t>(verbs.size());
    for (size_t i = first; i < posted.size(); ++i) {
      if (posted[i].at.node != leg.node) continue;
      taken |= uint64_t{1} << i;
      Take(posted[i], i);
    }
    leg.end = static_cast<uint32_t>(verbs.size());
  }
  legs_under_way = legs.size();
}

void TimedTrip::Take(const Verb& verb, size_t index) {
  verbs.push_back({verb, index, payload.size()});
  if (verb.kind == VerbKind::kWrite || verb.kind == VerbKind::kCall) {
    payload.insert(payload.end(), verb.from, verb.from + verb.size);
  }
}

// The rounds are those that CostOf counts.
void TimedTrip::Measure(Leg& leg, uint32_t header_bytes, uint32_t packet_bytes) const {
  leg.packets = 0;
  leg.request_bytes = 0;
  leg.answer_bytes = 0;
  size_t answered = 0;
  uint32_t i = leg.begin;
  for (; i < leg.end; ++i) {
    const Verb& verb = verbs[i].verb;
    const bool asks = IsAnswered(verb.kind);
    const bool full = asks && answered == kAnsweredVerbsPerRoundTrip;
    if (i != leg.begin && (verb.fenced || full)) break;
    if (asks) ++answered;
    const auto packets =
        static_cast<uint32_t>(std::max<uint64_t>(1, (verb.size + packet_bytes - 1) / packet_bytes));
    leg.packets += packets;
    const bool many_requests = verb.kind != VerbKind::kRead;
    leg.request_bytes += RequestBytes(verb) + uint64_t{header_bytes} * (many_requests ? packets : 1);
    if (asks) leg.answer_bytes += AnswerBytes(verb) + uint64_t{header_bytes} * packets;
  }
  leg.round_end = i;
  // One acknowledgement is for all before it, and an answer is one too.
  if (!IsAnswered(verbs[i - 1].verb.kind)) leg.answer_bytes += header_bytes;
}

}  // namespace farside::fabric::sim
