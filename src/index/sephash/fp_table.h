// Where the entries of each fingerprint begin in a MainSegment, as a client remembers it: the FPTable of the
// paper (section 4.4.2).
//
// Naive: the first entry of each fingerprint. Record points: fingerprints are spread evenly, so the first
// entry of fingerprint f of n entries is near n * f / 256; a point corrects that from its fingerprint on.
// What a table predicts is checked by the entries that are read: it may be wrong, and costs a trip then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/sephash/layout.h"

namespace farside::index::sephash {

enum class FpTableKind : uint8_t { kNone, kNaive, kPoints };

// Entries first ... end - 1 of a MainSegment.
struct EntryRange {
  uint32_t first = 0;
  uint32_t end = 0;

  uint32_t size() const { return end - first; }
  friend bool operator==(const EntryRange&, const EntryRange&) = default;
};

using Starts = std::array<uint32_t, kFingerprints>;

class FpTable {
 public:
  FpTable() = default;
  FpTable(FpTableKind kind, const Starts& starts, uint32_t entries);

  // The entries that are worth reading for a fingerprint. Of a naive table: exactly those that have it, with
  // one more at each end, as far as there are any.
  EntryRange Predict(uint8_t fp) const;
  uint32_t entries() const { return entries_; }
  // Memory of this table beside its own fields.
  size_t heap_bytes() const;

 private:
  // A record point, in 16 bits: the fingerprint from which on it counts, and the correction. The paper has 5
  // bits for the correction; here it has 8, and counts quarters of the entries that a fingerprint has.
  static constexpr uint16_t PointOf(size_t fp, int64_t delta) {
    return static_cast<uint16_t>(fp << 8 | static_cast<uint8_t>(delta));
  }

  void AddPoints(const Starts& starts);
  int64_t Unit() const { return entries_ < 4 * kFingerprints ? 1 : entries_ / (4 * kFingerprints); }
  // Half of the entries that a fingerprint has: how wrong a point may be.
  int64_t Tolerance() const { return entries_ / (2 * kFingerprints) + 1; }
  int64_t StartBy(int64_t delta, size_t fp) const {
    return static_cast<int64_t>(uint64_t{entries_} * fp / kFingerprints) + delta * Unit();
  }
  int64_t PredictStart(size_t fp) const;

  FpTableKind kind_ = FpTableKind::kNone;
  uint8_t shift_ = 0;  // naive: low bits that are left out, if there are more entries than 16 bits can count
  uint32_t entries_ = 0;
  std::vector<uint16_t> data_;  // naive: starts; points: those that are needed, as many as there are
};

}  // namespace farside::index::sephash
