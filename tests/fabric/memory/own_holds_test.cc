// What the threads of a node have announced, one by one and in windows.
#include "fabric/memory/own_holds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace farside::fabric::memory {
namespace {

std::set<uint64_t> AllOf(const OwnHold& hold) {
  std::set<uint64_t> stripes;
  for (uint64_t stripe = 0; stripe < StripeTable::kStripes; ++stripe) {
    if (hold.Has(stripe)) stripes.insert(stripe);
  }
  return stripes;
}

TEST(OwnHold, HasWhatWasAnnounced_AndNothingElse) {
  // Given a thread that announces one stripe after the other, all over the table. Expect that one, and then
  // none
  OwnHold hold;
  for (const uint64_t stripe : {0u, 1u, 22u, 23u, 24u, 47u, 48u, 2000u, 4073u, 4094u, 4095u}) {
    SCOPED_TRACE(stripe);
    hold.Announce(stripe);
    EXPECT_EQ(AllOf(hold), std::set<uint64_t>{stripe});
    hold.Retract(stripe);
    EXPECT_EQ(AllOf(hold), std::set<uint64_t>{});
  }
}

TEST(OwnHold, HasAWindow_WhereverItLiesAndInWhateverOrderItIsTaken) {
  // Given windows of the size that a READ has at most, also around the end of the table
  constexpr uint64_t kWindow = OwnHold::kReach + 1;
  for (const uint64_t begin : {uint64_t{0}, uint64_t{100}, StripeTable::kStripes - kWindow / 2,
                               StripeTable::kStripes - 1, StripeTable::kStripes - kWindow}) {
    SCOPED_TRACE(begin);
    std::set<uint64_t> window;
    for (uint64_t i = 0; i < kWindow; ++i) window.insert((begin + i) % StripeTable::kStripes);
    // When they are taken in ascending order, and given back in either. Expect all of them, at every step
    for (const bool backwards : {false, true}) {
      OwnHold hold;
      std::set<uint64_t> taken;
      for (const uint64_t stripe : window) {
        hold.Announce(stripe);
        taken.insert(stripe);
        ASSERT_EQ(AllOf(hold), taken);
      }
      while (!taken.empty()) {
        const uint64_t stripe = backwards ? *taken.rbegin() : *taken.begin();
        hold.Retract(stripe);
        taken.erase(stripe);
        ASSERT_EQ(AllOf(hold), taken);
      }
    }
  }
}

TEST(OwnHolds, HaveWhatOneOfThemHas) {
  // Given two threads. When one of them ends. Expect what the other has
  OwnHolds all;
  OwnHold one;
  OwnHold other;
  all.Add(one);
  all.Add(other);
  one.Announce(3);
  other.Announce(4);
  EXPECT_TRUE(all.Have(3) && all.Have(4));
  EXPECT_FALSE(all.Have(5));
  all.Remove(one);
  EXPECT_FALSE(all.Have(3));
  EXPECT_TRUE(all.Have(4));
}

}  // namespace
}  // namespace farside::fabric::memory
