#include "base/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace farside {
namespace {

constexpr uint64_t kMaxWord = std::numeric_limits<uint64_t>::max();

// The value of the smallest rank that is at least `per_mille` of all, from the data itself.
uint64_t ExactQuantile(const std::vector<uint64_t>& sorted, uint64_t per_mille) {
  const uint64_t rank = std::max<uint64_t>((sorted.size() * per_mille + 999) / 1000, 1);
  return sorted[rank - 1];
}

void ExpectQuantilesWithinABucket(std::vector<uint64_t> data) {
  Histogram histogram;
  for (const uint64_t value : data) histogram.Record(value);
  std::sort(data.begin(), data.end());
  for (uint64_t per_mille = 0; per_mille <= 1000; ++per_mille) {
    const uint64_t exact = ExactQuantile(data, per_mille);
    const uint64_t found = histogram.ValueAtQuantile(static_cast<double>(per_mille) / 1000);
    ASSERT_GE(found, exact) << per_mille << " per mille";
    ASSERT_LE(found - exact, exact / 64) << per_mille << " per mille";
  }
}

// Given nothing. Expect zeros.
TEST(Histogram, EmptyIsAllZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Count(), 0u);
  EXPECT_EQ(histogram.Min(), 0u);
  EXPECT_EQ(histogram.Max(), 0u);
  EXPECT_EQ(histogram.Mean(), 0.0);
  for (const double quantile : {0.0, 0.5, 1.0}) EXPECT_EQ(histogram.ValueAtQuantile(quantile), 0u);
}

// Given one value, of the extreme ones and both sides of every power of two. Expect that very value at every
// quantile, since the end of a bucket is never reported beyond the maximum.
TEST(Histogram, OneValueIsExact) {
  std::vector<uint64_t> values = {0, 1, kMaxWord};
  for (int bit = 1; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    values.insert(values.end(), {power - 1, power, power + 1});
  }
  for (const uint64_t value : values) {
    Histogram histogram;
    histogram.Record(value);
    EXPECT_EQ(histogram.Count(), 1u);
    EXPECT_EQ(histogram.Min(), value);
    EXPECT_EQ(histogram.Max(), value);
    EXPECT_EQ(histogram.Mean(), static_cast<double>(value));
    for (const double quantile : {0.0, 0.001, 0.5, 1.0}) {
      EXPECT_EQ(histogram.ValueAtQuantile(quantile), value);
    }
  }
}

// Given the values 0 .. 127, whose buckets are exact. Expect exact quantiles.
TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 0; value < 128; ++value) histogram.Record(value);
  for (uint64_t value = 0; value < 128; ++value) {
    EXPECT_EQ(histogram.ValueAtQuantile(static_cast<double>(value + 1) / 128), value);
  }
}

// Given the smallest and the largest values together. Expect each in its half, and no overflow of the mean.
TEST(Histogram, HoldsBothEndsOfTheRange) {
  Histogram histogram;
  histogram.RecordN(0, 2);
  histogram.RecordN(kMaxWord, 2);
  EXPECT_EQ(histogram.Min(), 0u);
  EXPECT_EQ(histogram.Max(), kMaxWord);
  EXPECT_EQ(histogram.ValueAtQuantile(0.5), 0u);
  EXPECT_EQ(histogram.ValueAtQuantile(0.51), kMaxWord);
  EXPECT_DOUBLE_EQ(histogram.Mean(), std::ldexp(1.0, 63));
}

// Given both neighbours of every bucket boundary, below a far larger maximum that clamps nothing. Expect
// their quantile to be no smaller than the value, and larger by at most 1/64 of it.
TEST(Histogram, EveryBucketKeepsTheErrorBound) {
  for (int shift = 0; shift < 57; ++shift) {
    for (uint64_t upper_bits = 64; upper_bits < 128; ++upper_bits) {
      const uint64_t first = upper_bits << shift;
      for (const uint64_t value : {first - 1, first}) {
        Histogram histogram;
        histogram.Record(value);
        histogram.Record(kMaxWord);
        const uint64_t found = histogram.ValueAtQuantile(0.5);
        ASSERT_GE(found, value);
        ASSERT_LE(found - value, value / 64);
      }
    }
  }
}

// Given data of different shapes. When quantiles are asked in steps of 0.001. Expect those of the sorted
// data, within the width of a bucket.
TEST(Histogram, QuantilesFollowUniformData) {
  Random random(1);
  std::vector<uint64_t> data(10'000);
  for (uint64_t& value : data) value = random.Between(1'000, 1'000'000);
  ExpectQuantilesWithinABucket(std::move(data));
}

TEST(Histogram, QuantilesFollowDataOfAllMagnitudes) {
  Random random(2);
  std::vector<uint64_t> data(10'000);
  for (uint64_t& value : data) value = random.LogUniform(kMaxWord);
  ExpectQuantilesWithinABucket(std::move(data));
}

TEST(Histogram, QuantilesFollowDataWithARareTail) {
  Random random(3);
  std::vector<uint64_t> data(9'973);  // a prime, so that ranks are no round numbers
  for (uint64_t& value : data) value = random.Chance(1, 500) ? random.Between(1'000'000, 9'000'000) : 2'000;
  ExpectQuantilesWithinABucket(std::move(data));
}

// Given 1 .. 100, all exact. When the quantiles 0.01 .. 1.00 are asked, of which some, such as 0.07, are
// larger as a double than as a decimal. Expect ranks 1 .. 100, none off by one.
TEST(Histogram, DecimalQuantilesHitTheirRank) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 100; ++value) histogram.Record(value);
  for (uint64_t percent = 1; percent <= 100; ++percent) {
    EXPECT_EQ(histogram.ValueAtQuantile(static_cast<double>(percent) / 100), percent);
  }
}

// Given values recorded one by one and the same in bulk. Expect equal answers; recording zero times, none.
TEST(Histogram, RecordNIsManyRecords) {
  Histogram one_by_one;
  Histogram bulk;
  for (int i = 0; i < 1000; ++i) one_by_one.Record(5'000);
  one_by_one.Record(7);
  bulk.RecordN(5'000, 1000);
  bulk.RecordN(7, 1);
  bulk.RecordN(1'000'000, 0);
  bulk.RecordN(0, 0);
  EXPECT_EQ(bulk.Count(), one_by_one.Count());
  EXPECT_EQ(bulk.Min(), 7u);
  EXPECT_EQ(bulk.Max(), 5'000u);
  EXPECT_EQ(bulk.Mean(), one_by_one.Mean());
  EXPECT_EQ(bulk.ValueAtQuantile(0.5), one_by_one.ValueAtQuantile(0.5));
}

// Given data split over two histograms. When they are merged. Expect the answers of one that saw all of it.
TEST(Histogram, MergeIsRecordingIntoOne) {
  Random random(4);
  Histogram left;
  Histogram right;
  Histogram all;
  for (int i = 0; i < 5'000; ++i) {
    const uint64_t value = random.LogUniform(1'000'000'000);
    (random.Chance(1, 3) ? left : right).Record(value);
    all.Record(value);
  }
  left.Merge(right);
  EXPECT_EQ(left.Count(), all.Count());
  EXPECT_EQ(left.Min(), all.Min());
  EXPECT_EQ(left.Max(), all.Max());
  EXPECT_EQ(left.Mean(), all.Mean());
  for (int percent = 0; percent <= 100; ++percent) {
    EXPECT_EQ(left.ValueAtQuantile(percent / 100.0), all.ValueAtQuantile(percent / 100.0));
  }
}

// Given an empty histogram and a filled one. When they are merged either way. Expect the filled one, whose
// minimum is not pulled to 0.
TEST(Histogram, MergeWithEmptyChangesNothing) {
  Histogram filled;
  filled.Record(10);
  filled.Merge(Histogram());
  EXPECT_EQ(filled.Count(), 1u);
  EXPECT_EQ(filled.Min(), 10u);

  Histogram empty;
  empty.Merge(filled);
  EXPECT_EQ(empty.Min(), 10u);
  EXPECT_EQ(empty.Max(), 10u);

  Histogram nothing;
  nothing.Merge(Histogram());
  EXPECT_EQ(nothing.Min(), 0u);
  nothing.Record(3);
  EXPECT_EQ(nothing.Min(), 3u);
}

// Given more values than a double can count. Expect quantiles without overflow or a walk off the end.
TEST(Histogram, CountsBeyondTheExactDoubles) {
  Histogram histogram;
  histogram.RecordN(1, kMaxWord / 2);
  histogram.RecordN(2, kMaxWord / 2 + 1);
  EXPECT_EQ(histogram.Count(), kMaxWord);
  EXPECT_EQ(histogram.ValueAtQuantile(0.25), 1u);
  EXPECT_EQ(histogram.ValueAtQuantile(std::nextafter(1.0, 0.0)), 2u);
}

}  // namespace
}  // namespace farside
