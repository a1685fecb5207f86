#include "index/sephash/fp_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

namespace farside::index::sephash {

FpTable::FpTable(FpTableKind kind, const Starts& starts, uint32_t entries) : kind_(kind), entries_(entries) {
  if (kind == FpTableKind::kPoints) AddPoints(starts);
  if (kind != FpTableKind::kNaive) return;
  shift_ = static_cast<uint8_t>(std::max<int>(std::bit_width(entries) - 16, 0));
  data_.reserve(starts.size());
  for (const uint32_t start : starts) data_.push_back(static_cast<uint16_t>(start >> shift_));
}

void FpTable::AddPoints(const Starts& starts) {
  int64_t delta = 0;
  for (size_t fp = 0; fp < kFingerprints; ++fp) {
    const int64_t start = starts[fp];
    if (std::abs(StartBy(delta, fp) - start) <= Tolerance()) continue;
    const double wanted = static_cast<double>(start - StartBy(0, fp)) / static_cast<double>(Unit());
    delta = std::clamp<int64_t>(std::lround(wanted), std::numeric_limits<int8_t>::min(),
                                std::numeric_limits<int8_t>::max());
    data_.push_back(PointOf(fp, delta));
  }
  data_.shrink_to_fit();
}

// By the last point that is not behind the fingerprint.
int64_t FpTable::PredictStart(size_t fp) const {
  if (fp == kFingerprints) return entries_;
  const auto later = [](size_t wanted, uint16_t point) { return wanted < point >> 8; };
  const auto point = std::upper_bound(data_.begin(), data_.end(), fp, later);
  const int64_t delta = point == data_.begin() ? 0 : static_cast<int8_t>(*std::prev(point) & 0xff);
  return StartBy(delta, fp);
}

EntryRange FpTable::Predict(uint8_t fp) const {
  int64_t first = 0;
  int64_t end = entries_;
  if (kind_ == FpTableKind::kNaive) {
    first = (int64_t{data_[fp]} << shift_) - 1;
    if (fp + size_t{1} < kFingerprints) end = ((int64_t{data_[fp + 1]} + (shift_ > 0 ? 1 : 0)) << shift_) + 1;
  } else if (kind_ == FpTableKind::kPoints) {
    first = PredictStart(fp) - Tolerance() - 1;
    end = PredictStart(size_t{fp} + 1) + Tolerance() + 1;
  }
  const int64_t most = entries_;
  first = std::clamp<int64_t>(first, 0, most);
  end = std::clamp<int64_t>(end, first, most);
  return {.first = static_cast<uint32_t>(first), .end = static_cast<uint32_t>(end)};
}

size_t FpTable::heap_bytes() const { return data_.capacity() * sizeof(uint16_t); }

}  // namespace farside::index::sephash
