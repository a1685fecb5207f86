// Clients of a chime table that remember where they found keys, and what others have done to those places
// since.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/engines/chime/hotspot_scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::chime {
namespace {

using fabric::OpKind;
using fabric::OpTally;

class ChimeHotspots : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Keys, ChimeHotspots, testing::Values(true, false),
                         [](const auto& keys) { return keys.param ? "Inline" : "Bytes"; });

TEST_P(ChimeHotspots, AnotherKeyStandsWhereItWas_ItIsNotTakenForIt) {
  // Given a client that remembers the slot of a key, which another has deleted, and put a different key there
  // When the first one reads, updates, puts or deletes the key
  // Expect that it is absent, and that the other key stays as it is
  EXPECT_EQ(AnotherKeyStandsThere(GetParam(), /*again=*/false), "");
}

TEST_P(ChimeHotspots, DeletedAndInsertedAgainBesideIt_ItIsFoundThere) {
  // Given the same, but the key has come back in another slot, with another value
  // When the first one reads, updates, puts or deletes the key
  // Expect that it meets the key as it is now, and that it stands once
  EXPECT_EQ(AnotherKeyStandsThere(GetParam(), /*again=*/true), "");
}

TEST_P(ChimeHotspots, KeyWasMovedInItsLeaf_ItIsFoundThere) {
  // Given a client that remembers all keys of a leaf, and another that moved some of them to make room, and
  // changed some
  // When the first one reads, updates, puts or deletes all of them
  // Expect each of them as it is now, and each once
  EXPECT_EQ(RememberedKeysGoElsewhere(GetParam(), 1), "");
  EXPECT_EQ(RememberedKeysGoElsewhere(GetParam(), 2), "");
}

TEST_P(ChimeHotspots, LeafWasSplit_KeysAreFoundInTheNewOne) {
  // Given the same, but some of them have left for a new leaf
  // When the first one reads, updates, puts or deletes all of them
  // Expect each of them as it is now, and each once
  EXPECT_EQ(RememberedKeysGoElsewhere(GetParam(), 0), "");
}

TEST_P(ChimeHotspots, KeysMoveOrLeaveMeanwhile_NoneIsMissedAndNoChangeIsLost) {
  // Given a client that remembers all keys of a leaf
  // When it reads half of them and updates the others, while another moves or divides them, over many seeds
  // Expect that all are found, and that every update is there afterwards
  for (const size_t moves : {0, 1, 2}) EXPECT_EQ(SpeculationMeetsAMove(100 / kFewer, GetParam(), moves), "");
}

TEST(ChimeHotspots, WhatAClientRemembers_StaysWithinItsBound) { EXPECT_EQ(HotspotsWithABound(), ""); }

TEST_P(ChimeHotspots, KeyThatIsRemembered_CostsOneEntry) {
  // Given a client that has found all keys, with room for them
  // When it looks for them again, and updates them
  // Expect one trip of 16 bytes for each search, and two for each update, which reads as much, and the lock
  World world({.region_bytes = 64 << 20});
  Member member(world, WithHotspots({{"keys", GetParam() ? "inline" : "bytes"}}, 1 << 20));
  constexpr uint64_t kKeys = 2000;
  for (uint64_t i = 0; i < kKeys; ++i) member.Now(member.Put(EightBytes(i * 7919 % 10007), "value of"));
  const auto get_all = [&] {
    for (uint64_t i = 0; i < kKeys; ++i)
      ASSERT_EQ(member.Now(member.Get(EightBytes(i * 7919 % 10007))), "value of");
  };
  // Twice: it forgets what it knew when it grows.
  get_all();
  get_all();
  const OpTally before = member.tally(OpKind::kSearch);
  get_all();
  const OpTally& after = member.tally(OpKind::kSearch);
  const auto each = [](uint64_t now, uint64_t then) {
    return static_cast<double>(now - then) / static_cast<double>(kKeys);
  };
  EXPECT_EQ(each(after.index_trips, before.index_trips), 1.0);
  EXPECT_NEAR(each(after.by_purpose[0].bytes_read, before.by_purpose[0].bytes_read), kEntryBytes,
              2.0);  // but for sets that are full
  for (uint64_t i = 0; i < kKeys; ++i)
    ASSERT_TRUE(member.Now(member.Update(EightBytes(i * 7919 % 10007), "new valu")));
  const OpTally& updates = member.tally(OpKind::kUpdate);
  EXPECT_EQ(each(updates.index_trips, 0), 2.0);
  EXPECT_NEAR(each(updates.by_purpose[0].bytes_read, 0), kEntryBytes + 8, 2.0);
  EXPECT_EQ(world.problem, "");
}

TEST_P(ChimeHotspots, SkewedKeysInATableThatGrows_RarelyCostATripInVain) {
  // Given a client that reads some keys more often than others, and has room for a part of them
  // When another inserts as many keys as there were, between its searches
  // Expect that at most one search in fifty has to look a second time, and that less than half of the bytes
  // are read
  World world({.region_bytes = 64 << 20});
  const OptionMap options = WithHotspots({{"keys", GetParam() ? "inline" : "bytes"}}, 1 << 14);
  Member writer(world, options);
  Member reader(world, options);
  constexpr uint64_t kKeys = 4000;
  const auto key = [](uint64_t i) { return EightBytes(i * 7919 % 10007); };
  for (uint64_t i = 0; i < kKeys; ++i) writer.Now(writer.Put(key(i), "value of"));
  Random random(3);
  for (uint64_t i = 0; i < kKeys; ++i) {
    writer.Now(writer.Put(key(kKeys + i), "value of"));
    for (int read = 0; read < 20; ++read) {
      const uint64_t skewed = random.Below(random.Below(random.Below(random.Below(kKeys) + 1) + 1) + 1);
      ASSERT_EQ(reader.Now(reader.Get(key(skewed))), "value of");
    }
  }
  const OpTally& tally = reader.tally(OpKind::kSearch);
  const auto each = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(tally.operations);
  };
  EXPECT_LE(each(tally.index_trips), 1.02);
  EXPECT_LE(each(tally.by_purpose[0].bytes_read), GetParam() ? 83 : 64);
  RecordProperty("trips", std::to_string(each(tally.index_trips)));
  RecordProperty("bytes", std::to_string(each(tally.by_purpose[0].bytes_read)));
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::chime
