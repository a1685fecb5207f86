// Where a client found keys last: what is remembered, what goes, and how much memory it takes.
#include "index/chime/hotspots.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"

namespace farside::index::chime {
namespace {

uint64_t HashOf(uint64_t key) { return Hash64(std::as_bytes(std::span(&key, 1))); }
Spot SpotOf(uint64_t key) { return {.leaf = NodePtr::To(key % 64, (key + 1) * 1088, 0), .slot = key % 64}; }

TEST(ChimeHotspotTable, WhatWasRemembered_IsFoundUntilItIsForgotten) {
  // Given keys with their spots, few enough for all of them
  // When they are looked for, remembered elsewhere, forgotten, and all cleared
  // Expect what was said last of each
  Hotspots hotspots(1 << 20);
  EXPECT_FALSE(hotspots.Find(HashOf(1)).has_value());
  for (uint64_t key = 0; key < 50; ++key) hotspots.Remember(HashOf(key), SpotOf(key), hotspots.clears());
  for (uint64_t key = 0; key < 50; ++key) {
    const std::optional<Spot> found = hotspots.Find(HashOf(key));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->leaf, SpotOf(key).leaf);
    EXPECT_EQ(found->slot, SpotOf(key).slot);
  }
  EXPECT_FALSE(hotspots.Find(HashOf(50)).has_value());
  EXPECT_EQ(hotspots.size(), 50u);
  hotspots.Remember(HashOf(7), SpotOf(63), hotspots.clears());
  EXPECT_EQ(hotspots.Find(HashOf(7))->slot, 63u);
  hotspots.Forget(HashOf(7));
  EXPECT_FALSE(hotspots.Find(HashOf(7)).has_value());
  EXPECT_EQ(hotspots.size(), 49u);
  hotspots.Forget(HashOf(7));
  EXPECT_EQ(hotspots.size(), 49u);
  hotspots.Clear();
  EXPECT_EQ(hotspots.size(), 0u);
  for (uint64_t key = 0; key < 50; ++key) EXPECT_FALSE(hotspots.Find(HashOf(key)).has_value());
}

TEST(ChimeHotspotTable, WhatWasFoundBeforeAllWasCleared_IsNotRememberedAfterwards) {
  // Given a client that has begun to look for a key
  // When all is cleared before it has found it, because leaves may be another client's by now
  // Expect that what it has found is not remembered; and that what is found from then on is
  Hotspots hotspots(1 << 20);
  const uint64_t began = hotspots.clears();
  hotspots.Clear();
  hotspots.Remember(HashOf(1), SpotOf(1), began);
  EXPECT_FALSE(hotspots.Find(HashOf(1)).has_value());
  hotspots.Remember(HashOf(1), SpotOf(1), hotspots.clears());
  EXPECT_TRUE(hotspots.Find(HashOf(1)).has_value());
}

TEST(ChimeHotspotTable, ExtremePlaces_ComeBackAsTheyWere) {
  // Given the last line of the last node, the last slot, and a hash of ones
  // Expect exactly that
  Hotspots hotspots(64);
  const Spot last{.leaf = NodePtr(LineBits::kMask | NodeBits::kMask), .slot = kMostSpan - 1};
  hotspots.Remember(~uint64_t{0}, last, hotspots.clears());
  EXPECT_EQ(hotspots.Find(~uint64_t{0})->leaf, last.leaf);
  EXPECT_EQ(hotspots.Find(~uint64_t{0})->slot, last.slot);
  EXPECT_FALSE(hotspots.Find(0).has_value());
}

TEST(ChimeHotspotTable, Bytes_GrowWithWhatIsRememberedUpToTheBound) {
  // Given bounds of many sizes
  // When far more keys are remembered than there is room for
  // Expect that bytes never exceed the bound, come close to it, and are few before there are keys; and none
  // for a bound of 0
  for (const uint64_t most : {0, 1, 63, 64, 1000, 1 << 12, 50'000, 1 << 20}) {
    Hotspots hotspots(most);
    EXPECT_EQ(hotspots.enabled(), most >= 64);
    EXPECT_EQ(hotspots.bytes(), 0u);
    uint64_t at_first = 0;
    for (uint64_t key = 0; key < 200'000; ++key) {
      hotspots.Remember(HashOf(key), SpotOf(key), hotspots.clears());
      ASSERT_LE(hotspots.bytes(), most);
      ASSERT_LE(hotspots.size() * 8, hotspots.bytes());
      if (key == 0) at_first = hotspots.bytes();
    }
    EXPECT_LE(at_first, 4096u);
    EXPECT_GE(hotspots.bytes(), most < 64 ? 0 : most * 8 / 10);
    EXPECT_GE(hotspots.size() * 10, hotspots.bytes());
  }
}

TEST(ChimeHotspotTable, KeysThatAreUsedOften_StayWhenOthersPassThrough) {
  // Given a few keys that are used again and again, in a table of little room
  // When many others come once each in between
  // Expect that the few are still found; and when no client uses them any more, that others take their place
  Hotspots hotspots(4096);
  constexpr uint64_t kHot = 100;
  uint64_t next = 1000;
  uint64_t found = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    for (uint64_t key = 0; key < kHot; ++key) {
      const bool known = hotspots.Find(HashOf(key)).has_value();
      if (!known) hotspots.Remember(HashOf(key), SpotOf(key), hotspots.clears());
      if (round >= kRounds / 2) found += known ? 1 : 0;
    }
    for (int i = 0; i < 200; ++i, ++next) hotspots.Remember(HashOf(next), SpotOf(next), hotspots.clears());
  }
  EXPECT_GE(found, kHot * kRounds / 2 * 95 / 100);
  // Other keys become hot.
  found = 0;
  for (int round = 0; round < 600; ++round) {
    for (uint64_t key = 5000; key < 5000 + 4 * kHot; ++key) {
      const bool known = hotspots.Find(HashOf(key)).has_value();
      if (!known) hotspots.Remember(HashOf(key), SpotOf(key), hotspots.clears());
      if (round == 599) found += known ? 1 : 0;
    }
  }
  EXPECT_GE(found, 4 * kHot * 80 / 100);
}

TEST(ChimeHotspotTable, KeysThatAreUsedOnce_AreNotRememberedForLong) {
  // Given a table of little room, and keys that are all used once
  // When many of them were looked for in vain
  // Expect that few of the later ones are remembered; and when some keys are used often, that they are found
  // again
  Hotspots hotspots(4096);
  const auto use = [&](uint64_t key) {
    const bool known = hotspots.Find(HashOf(key)).has_value();
    if (!known) hotspots.Remember(HashOf(key), SpotOf(key), hotspots.clears());
    return known;
  };
  for (uint64_t key = 0; key < 10'000; ++key) use(key);
  hotspots.Clear();
  for (uint64_t key = 10'000; key < 10'320; ++key) use(key);
  EXPECT_LE(hotspots.size(), 20u);
  uint64_t found = 0;
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t key = 0; key < 100; ++key) {
      const bool known = use(key);
      if (round >= 1900) found += known ? 1 : 0;
    }
  }
  EXPECT_GE(found, 100 * 100 * 95 / 100u);
}

TEST(ChimeHotspotTable, KeysThatWereNeverRemembered_AreRarelyTakenForOthers) {
  // Given a table that is full
  // When many keys are looked for that it does not know
  // Expect a guess for few of them: a fingerprint has 16 bits, and a set 7 of them
  Hotspots hotspots(1 << 18);
  for (uint64_t key = 0; key < 100'000; ++key) hotspots.Remember(HashOf(key), SpotOf(key), hotspots.clears());
  uint64_t guesses = 0;
  constexpr uint64_t kKeys = 200'000;
  for (uint64_t key = 0; key < kKeys; ++key)
    guesses += hotspots.Find(HashOf(1'000'000 + key)).has_value() ? 1 : 0;
  EXPECT_LE(guesses, kKeys / 4000);
}

}  // namespace
}  // namespace farside::index::chime
