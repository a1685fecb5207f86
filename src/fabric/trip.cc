#include "fabric/trip.h"

#include <fmt/format.h>

#include <algorithm>

namespace farside::fabric {

namespace {

uint64_t RoundTripsTo(NodeId node, std::span<const Verb> verbs) {
  uint64_t round_trips = 1;
  size_t answered = 0;
  bool first = true;
  for (const Verb& verb : verbs) {
    if (verb.at.node != node) continue;
    const bool full = IsAnswered(verb.kind) && answered == kAnsweredVerbsPerRoundTrip;
    if ((verb.fenced && !first) || full) {
      ++round_trips;
      answered = 0;
    }
    if (IsAnswered(verb.kind)) ++answered;
    first = false;
  }
  return round_trips;
}

Error OutOfBounds(const Verb& verb, std::span<const uint64_t> region_bytes) {
  const size_t node = Index(verb.at.node);
  if (node >= region_bytes.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} to node {}, but there are {} nodes: a far pointer is damaged",
                             Name(verb.kind), node, region_bytes.size()));
  }
  const uint64_t size = region_bytes[node];
  if (verb.size > size || verb.at.offset > size - verb.size) {
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("{} of {} bytes at {:#x} leaves the region of node {} ({} bytes): a far pointer is "
                    "damaged",
                    Name(verb.kind), verb.size, verb.at.offset, node, size));
  }
  return Error(ErrorCode::kCorrupt,
               fmt::format("{} at {:#x} of node {} is not aligned to 8 bytes: a far pointer is damaged",
                           Name(verb.kind), verb.at.offset, node));
}

}  // namespace

TripCost CostOf(std::span<const Verb> verbs) {
  // Nearly always one round trip to one node.
  const auto simple = [&verbs](const Verb& verb) { return verb.at.node == verbs[0].at.node && !verb.fenced; };
  if (!verbs.empty() && verbs.size() <= kAnsweredVerbsPerRoundTrip &&
      std::all_of(verbs.begin(), verbs.end(), simple)) {
    return {.trips = 1, .depth = 1};
  }
  TripCost cost;
  for (size_t i = 0; i < verbs.size(); ++i) {
    const NodeId node = verbs[i].at.node;
    const auto same_node = [node](const Verb& verb) { return verb.at.node == node; };
    if (std::any_of(verbs.begin(), verbs.begin() + static_cast<ptrdiff_t>(i), same_node)) continue;
    const uint64_t round_trips = RoundTripsTo(node, verbs);
    cost.trips += round_trips;
    cost.depth = std::max(cost.depth, round_trips);
  }
  return cost;
}

std::optional<Error> CheckBounds(std::span<const Verb> verbs, std::span<const uint64_t> region_bytes) {
  for (const Verb& verb : verbs) {
    if (!IsInBounds(verb, region_bytes)) [[unlikely]]
      return OutOfBounds(verb, region_bytes);
  }
  return std::nullopt;
}

Error LostCompletion(std::span<const Verb> verbs, std::string_view why) {
  const bool mutates =
      std::any_of(verbs.begin(), verbs.end(), [](const Verb& verb) { return Mutates(verb.kind); });
  if (mutates) {
    return Error(
        ErrorCode::kOutcomeUnknown,
        fmt::format("{}; the write may or may not have happened: read it back after reconnecting", why));
  }
  return Error(ErrorCode::kUnavailable, fmt::format("{}; reconnect and retry", why));
}

}  // namespace farside::fabric
