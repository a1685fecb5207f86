#include "base/histogram.h"

#include <cassert>
#include <cmath>

namespace farside {

void Histogram::RecordN(uint64_t value, uint64_t times) {
  assert(times <= std::numeric_limits<uint64_t>::max() - count_);
  if (times != 0) Add(value, times);
}

void Histogram::Merge(const Histogram& other) {
  assert(other.count_ <= std::numeric_limits<uint64_t>::max() - count_);
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) buckets_[bucket] += other.buckets_[bucket];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::Mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

uint64_t Histogram::ValueAtQuantile(double quantile) const {
  assert(quantile >= 0 && quantile <= 1);
  if (count_ == 0 || quantile <= 0) return Min();
  if (quantile >= 1) return max_;

  // The rank is the product rounded up. 0.07 * 100 is a little more than 7 in binary, which would give rank
  // 8; from the next smaller double the product cannot pass an integer that the decimal product equals.
  const double product = std::nextafter(quantile, 0.0) * static_cast<double>(count_);
  const auto rank = std::max<uint64_t>(static_cast<uint64_t>(std::ceil(product)), 1);

  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) return std::clamp(EndOf(bucket), min_, max_);
  }
  return max_;  // only if count_ is so large that the product was rounded up to more than it
}

}  // namespace farside
