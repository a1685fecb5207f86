#include "fabric/counters.h"

namespace farside::fabric {

std::string_view Name(OpKind kind) {
  switch (kind) {
    case OpKind::kSearch: return "search";
    case OpKind::kInsert: return "insert";
    case OpKind::kUpdate: return "update";
    case OpKind::kDelete: return "delete";
    case OpKind::kScan: return "scan";
    case OpKind::kMaintenance: return "maintenance";
  }
  return "?";
}

std::string_view Name(OpOutcome outcome) {
  switch (outcome) {
    case OpOutcome::kDone: return "done";
    case OpOutcome::kRefused: return "refused";
    case OpOutcome::kFailed: return "failed";
  }
  return "?";
}

// Called once per operation. A tally is never added to itself, and __restrict lets the compiler know.
void OpTally::Add(const OpTally& __restrict other) {
  operations += other.operations;
  index_trips += other.index_trips;
  end_to_end_trips += other.end_to_end_trips;
  maintenance_trips += other.maintenance_trips;
  detached_trips += other.detached_trips;
  depth += other.depth;
  retries += other.retries;
#pragma GCC unroll 3
  for (size_t i = 0; i < kPurposes; ++i) {
    const VerbTally& added = other.by_purpose[i];
    VerbTally& sum = by_purpose[i];
#pragma GCC unroll 8
    for (size_t kind = 0; kind < kVerbKinds; ++kind) sum.verbs[kind] += added.verbs[kind];
    sum.bytes_read += added.bytes_read;
    sum.bytes_written += added.bytes_written;
    sum.failed_cas += added.failed_cas;
  }
}

uint64_t OpTally::Verbs() const {
  uint64_t count = 0;
  for (const VerbTally& tally : by_purpose) {
    for (uint64_t of_kind : tally.verbs) count += of_kind;
  }
  return count;
}

void Counters::Add(const Counters& other) {
  for (size_t kind = 0; kind < kOpKinds; ++kind) {
    for (size_t outcome = 0; outcome < kOpOutcomes; ++outcome) {
      tallies_[kind][outcome].Add(other.tallies_[kind][outcome]);
    }
  }
}

OpTally Counters::Total() const {
  OpTally total;
  for (const auto& outcomes : tallies_) {
    for (const OpTally& tally : outcomes) total.Add(tally);
  }
  return total;
}

}  // namespace farside::fabric
