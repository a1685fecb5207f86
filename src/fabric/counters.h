// What far memory cost: trips, verbs and bytes, per client, kind of operation and purpose.
//
// Index trips and end-to-end trips are kept apart and never mixed: an index trip carries at least one
// verb of purpose kIndex; an end-to-end trip carries anything but maintenance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/verb.h"

namespace farside::fabric {

// What an operation was: an upsert ends as an insert or as an update.
enum class OpKind : uint8_t { kSearch, kInsert, kUpdate, kDelete, kScan, kMaintenance };
inline constexpr size_t kOpKinds = 6;
std::string_view Name(OpKind kind);

enum class OpOutcome : uint8_t {
  kDone,     // found, inserted, updated, deleted
  kRefused,  // absent, or for an insert: already there
  kFailed,   // ended with an error
};
inline constexpr size_t kOpOutcomes = 3;
std::string_view Name(OpOutcome outcome);

struct VerbTally {
  std::array<uint64_t, kVerbKinds> verbs{};
  uint64_t bytes_read = 0;     // from far memory to the client
  uint64_t bytes_written = 0;  // from the client to far memory
  uint64_t failed_cas = 0;
};

struct OpTally {
  uint64_t operations = 0;
  uint64_t index_trips = 0;
  uint64_t end_to_end_trips = 0;
  uint64_t maintenance_trips = 0;
  uint64_t detached_trips = 0;  // posted without a waiter
  uint64_t depth = 0;           // trips one after another; trips to several nodes at once count as one
  uint64_t retries = 0;
  std::array<VerbTally, kPurposes> by_purpose{};

  void Add(const OpTally& other);
  uint64_t Verbs() const;
};

class Counters {
 public:
  void Add(OpKind kind, OpOutcome outcome, const OpTally& tally) { at(kind, outcome).Add(tally); }
  void Add(const Counters& other);

  OpTally& at(OpKind kind, OpOutcome outcome) {
    return tallies_[static_cast<size_t>(kind)][static_cast<size_t>(outcome)];
  }
  const OpTally& at(OpKind kind, OpOutcome outcome) const {
    return tallies_[static_cast<size_t>(kind)][static_cast<size_t>(outcome)];
  }
  // Over all kinds and outcomes.
  OpTally Total() const;

 private:
  std::array<std::array<OpTally, kOpOutcomes>, kOpKinds> tallies_{};
};

}  // namespace farside::fabric
