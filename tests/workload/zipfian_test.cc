#include "workload/zipfian.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace farside::workload {
namespace {

constexpr int kDraws = 1'000'000;

double SumOneByOne(uint64_t n, double theta) {
  double sum = 0;
  for (uint64_t i = n; i > 0; --i) sum += std::pow(static_cast<double>(i), -theta);
  return sum;
}

std::vector<int> Count(const Zipfian& zipfian, uint64_t seed) {
  Random random(seed);
  std::vector<int> counts(zipfian.items());
  for (int i = 0; i < kDraws; ++i) ++counts[zipfian.Draw(random)];
  return counts;
}

TEST(Zeta, IsTheSumOneByOne) {
  // Given numbers of terms below and above what is summed one by one. Expect the sum, to many digits.
  for (const uint64_t n : {1u, 2u, 999u, 1000u, 1001u, 5000u, 1'000'000u}) {
    for (const double theta : {0.2, 0.5, 0.99}) {
      EXPECT_NEAR(Zeta(n, theta) / SumOneByOne(n, theta), 1, 1e-11) << n << " terms, theta " << theta;
    }
  }
}

TEST(Zipfian, TheFirstTwoRanksHaveExactlyTheirShare) {
  // Given 1000 items. When many ranks are drawn. Expect ranks 0 and 1 as often as the formula says, within
  // five standard deviations of chance.
  const Zipfian zipfian(1000);
  const std::vector<int> counts = Count(zipfian, 7);
  const double zeta = SumOneByOne(1000, Zipfian::kTheta);
  for (const int rank : {0, 1}) {
    const double share = std::pow(rank + 1, -Zipfian::kTheta) / zeta;
    EXPECT_NEAR(counts[rank], kDraws * share, 5 * std::sqrt(kDraws * share)) << "rank " << rank;
  }
}

TEST(Zipfian, RanksFollowTheFormula) {
  // Given 1000 items. When many ranks are drawn. Expect each rank, on its own near the front and together
  // with its neighbours further behind, near what the formula says. The method is a curve in place of a sum:
  // a sixth off at the worst place, rank 2.
  const Zipfian zipfian(1000);
  const std::vector<int> counts = Count(zipfian, 8);
  const double zeta = SumOneByOne(1000, Zipfian::kTheta);
  for (size_t first = 2; first < 1000; first *= 2) {
    double expected = 0;
    double seen = 0;
    for (size_t rank = first; rank < std::min<size_t>(2 * first, 1000); ++rank) {
      expected += kDraws * std::pow(static_cast<double>(rank + 1), -Zipfian::kTheta) / zeta;
      seen += counts[rank];
    }
    EXPECT_NEAR(seen / expected, 1, first == 2 ? 0.2 : 0.1) << "ranks from " << first;
  }
  EXPECT_GT(counts[999], 0);
}

TEST(Zipfian, AFewItemsAreAllDrawn) {
  // Given one to five items. When many ranks are drawn. Expect all of them, the first most often.
  for (uint64_t items = 1; items <= 5; ++items) {
    const std::vector<int> counts = Count(Zipfian(items), items);
    for (uint64_t rank = 0; rank < items; ++rank) {
      EXPECT_GT(counts[rank], 0) << rank << " of " << items;
      EXPECT_LE(counts[rank], counts[0]);
    }
  }
}

TEST(Zipfian, GrowingIsTheSameAsBeingMadeSo) {
  // Given items that grow from 10 to 5000 in steps, and 5000 from the start. When both draw with one seed.
  // Expect the same.
  Zipfian grown(10);
  for (const uint64_t n : {11, 500, 499, 5000}) grown.Grow(n);
  const Zipfian made(5000);
  Random one(3);
  Random two(3);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(grown.Draw(one), made.Draw(two));
}

TEST(Scramble, IsAPermutation) {
  // Given numbers of items around powers of two. Expect that every item comes exactly once.
  for (const uint64_t n : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097, 100'000}) {
    const Scramble scramble(n);
    std::vector<int> seen(n);
    for (uint64_t rank = 0; rank < n; ++rank) {
      const uint64_t place = scramble(rank);
      ASSERT_LT(place, n);
      ++seen[place];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int64_t>(n)) << n << " items";
  }
}

TEST(Scramble, PopularRanksAreSpread) {
  // Given 100,000 items. When the first 1000 ranks are mapped. Expect some in each tenth of the items: 100 on
  // average.
  const Scramble scramble(100'000);
  std::vector<int> tenths(10);
  for (uint64_t rank = 0; rank < 1000; ++rank) ++tenths[scramble(rank) / 10'000];
  for (const int count : tenths) EXPECT_NEAR(count, 100, 50);
}

}  // namespace
}  // namespace farside::workload
