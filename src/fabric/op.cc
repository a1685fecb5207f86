#include "fabric/op.h"

#include <algorithm>
#include <cassert>

namespace farside::fabric {
namespace {

[[maybe_unused]] bool SameNode(std::span<const Verb> verbs) {
  return std::all_of(verbs.begin(), verbs.end(),
                     [&](const Verb& v) { return v.at.node == verbs[0].at.node; });
}

}  // namespace

void Op::CountPosted(const Trip& trip) {
  bool index = false;
  bool maintenance = true;
  for (const Verb& verb : trip.verbs) {
    CountVerb(verb);
    index |= verb.purpose == Purpose::kIndex;
    maintenance &= verb.purpose == Purpose::kMaintenance;
  }

  const TripCost cost = CostOf(trip.verbs);
  assert((trip.order == Order::kTogether || SameNode(trip.verbs)) && "a trip in order goes to one node");
  if (maintenance) {
    tally_.maintenance_trips += cost.trips;
  } else {
    tally_.end_to_end_trips += cost.trips;
    tally_.depth += cost.depth;
    if (index) tally_.index_trips += cost.trips;
  }
}

void Op::CountDetached(std::span<const Verb> verbs) {
  for (const Verb& verb : verbs) CountVerb(verb);
  tally_.detached_trips += CostOf(verbs).trips;
}

Task<Done> FenceEverywhere(Op& op, ClientId victim) {
  const size_t nodes = op.client().region_bytes().size();
  for (size_t first = 0; first < nodes; first += kMaxVerbsPerTrip) {
    Batch batch(op, Order::kTogether);
    for (size_t node = first; node < std::min(nodes, first + kMaxVerbsPerTrip); ++node) {
      batch.Add(FenceVerb(static_cast<NodeId>(node), victim));
    }
    co_await batch;
  }
  co_return Done{};
}

}  // namespace farside::fabric
