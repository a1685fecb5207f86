// A histogram of latencies (or sizes) in fixed memory, after HdrHistogram: buckets are linear within a
// power of two and double from one power to the next.
//
//   values          bucket width   buckets
//   0 .. 127        1              128       exact
//   128 .. 255      2              64
//   256 .. 511      4              64
//   ...
//   2^63 .. 2^64-1  2^57           64
//
// INVARIANT: a bucket is at most 1/64 as wide as its smallest value. So a quantile is too large by at most
// 1.6 %, and never too small.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace farside {

// Owned by one thread; merge those of several threads afterwards. The 30 kB are inside the object: nothing
// is ever allocated, so keep it in something long-lived rather than in a coroutine frame.
class Histogram {
 public:
  void Record(uint64_t value) { Add(value, 1); }
  void RecordN(uint64_t value, uint64_t times);  // as if recorded that often, which may be never
  void Merge(const Histogram& other);

  // Exact. All 0 if nothing was recorded.
  uint64_t Count() const { return count_; }
  uint64_t Min() const { return count_ == 0 ? 0 : min_; }
  uint64_t Max() const { return max_; }
  double Mean() const;

  // The smallest recorded value that at least the fraction `quantile` (0 .. 1) of all values does not
  // exceed, rounded up to the end of its bucket. 0 gives the minimum and 1 the maximum, both exactly. An
  // empty histogram gives 0.
  uint64_t ValueAtQuantile(double quantile) const;

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr int kSubBucketBits = 6;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBucketBits;
  static constexpr size_t kBuckets = (64 - kSubBucketBits + 1) * kSubBuckets;

  // A value's upper bits, the leading one and six more, choose the bucket; `shift` lower bits are dropped.
  static constexpr size_t BucketOf(uint64_t value) {
    const size_t shift = std::max<size_t>(std::bit_width(value), kSubBucketBits + 1) - (kSubBucketBits + 1);
    return shift * kSubBuckets + static_cast<size_t>(value >> shift);
  }
  // The largest value in a bucket.
  static constexpr uint64_t EndOf(size_t bucket) {
    const size_t shift = std::max<size_t>(bucket / kSubBuckets, 1) - 1;
    const uint64_t upper_bits = bucket - shift * kSubBuckets;
    return ((upper_bits + 1) << shift) - 1;  // wraps to the largest word in the last bucket, as it should
  }

  void Add(uint64_t value, uint64_t times) {
    static_assert(BucketOf(std::numeric_limits<uint64_t>::max()) == kBuckets - 1);
    buckets_[BucketOf(value)] += times;
    count_ += times;
    sum_ += Wide{value} * times;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;  // sum of buckets_
  Wide sum_ = 0;        // of the exact values; 2^64 of the largest ones fit
  uint64_t min_ = std::numeric_limits<uint64_t>::max();
  uint64_t max_ = 0;
};

}  // namespace farside
