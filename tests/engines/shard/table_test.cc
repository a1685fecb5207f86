// A shard table as one or two clients use it: sizes, growth, cursors, statistics, full pools.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/engines/shard/scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::shard {
namespace {

double DetailOf(const TableStats& stats, const std::string& name) {
  for (const auto& [known, value] : stats.details) {
    if (known == name) return value;
  }
  ADD_FAILURE() << "no detail " << name;
  return -1;
}

// Puts keys "<prefix>0" ..., and lets the client sync as often as it wants to.
void Load(Member& member, const std::string& prefix, int keys) {
  for (int i = 0; i < keys; ++i) {
    const std::string key = fmt::format("{}{}", prefix, i);
    member.Now(member.Put(key, "value of " + key));
    if (member.pool().MaintenanceDue()) member.Now(member.Maintain());
  }
}

// The one client of a table leaves, and every byte is accounted for.
void ExpectInOrder(World& world, Member& member) {
  member.Now(member.Verify());
  pool::Reached reached;
  member.Now(member.Walk(reached));
  member.Now(member.Leave());
  member.Now(member.Fsck(reached));
  EXPECT_EQ(world.problem, "");
}

TEST(ShardTable, GrowsFromOneUnitWithItsKeys_AllAreFoundAndMostInLevel1) {
  // Given a table of one unit
  // When 5,000 keys are put
  // Expect that it was resized often, that every key is found, and more than 90 % of them in level 1
  World world({.region_bytes = 16 << 20});
  Member member(world, {{"slots", "64"}, {"overflow_slots", "8"}});
  constexpr int kKeys = 5000;
  Load(member, "k", kKeys);
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = fmt::format("k{}", i);
    ASSERT_EQ(member.Now(member.Get(key)), "value of " + key);
  }
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(stats.records, static_cast<uint64_t>(kKeys));
  EXPECT_GE(DetailOf(stats, "resizes"), 6);
  EXPECT_GT(DetailOf(stats, "share in level 1"), 0.9);
  EXPECT_NEAR(DetailOf(stats, "share in level 1") + DetailOf(stats, "share in level 2") +
                  DetailOf(stats, "share in level 3"),
              1.0, 1e-9);
  EXPECT_LT(DetailOf(stats, "directory bytes"), 1024);
  EXPECT_GE(stats.block_bytes, 64u * kKeys);
  ExpectInOrder(world, member);
}

TEST(ShardTable, EverythingIsDeleted_EveryBlockIsFree) {
  // Given a table with keys in all levels
  // When all of them are deleted
  // Expect that none is found, and that fsck reaches no block of a key
  World world;
  Member member(world, {{"slots", "1"}, {"overflow_slots", "1"}});
  Load(member, "k", 300);
  const TableStats full = member.Now(member.Stats());
  EXPECT_GT(DetailOf(full, "share in level 2"), 0);
  EXPECT_GT(DetailOf(full, "share in level 3"), 0);
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(member.Now(member.Delete(fmt::format("k{}", i))));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(member.Now(member.Get(fmt::format("k{}", i))), "absent");
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(stats.records, 0u);
  EXPECT_EQ(stats.block_bytes, 0u);
  EXPECT_TRUE(member.Now(member.List()).empty());
  ExpectInOrder(world, member);
}

TEST(ShardTable, CursorWhileTheTableGrows_EveryKeyThatStaysIsReturned) {
  // Given a cursor on its way through a table
  // When the table grows three times, and all units are split, before any of its pages
  // Expect that no key is missed
  EXPECT_EQ(CursorWhileTheTableGrows(), "");
}

TEST(ShardTable, WalkWhileTheTableGrows_EveryBlockIsMarked) {
  // Given a walk through a table, which has come to any place
  // When a resize counts, and units are split
  // Expect that no block is missed
  EXPECT_EQ(WalkWhileTheTableGrows(), "");
}

TEST(ShardTable, TwoKeysWithOneTag_AreNotMistakenForEachOther) { EXPECT_EQ(TwoKeysWithOneTag(), ""); }

TEST(ShardTable, KeysAndValuesOfEverySize) {
  // Given keys and values that are empty, of one byte, larger than an entry can say, and as large as can be
  // When they are put, replaced and deleted
  // Expect that they come back as they were
  World world({.region_bytes = uint64_t{224} << 20});
  Member member(world, {});
  const std::vector<std::string> keys = {"", std::string(1, '\0'), std::string(64 * 1024, 'k'), "large"};
  const std::vector<std::string> values = {"", "v", std::string(15 * 64, 'x'), std::string(64 << 20, 'y')};
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(member.Now(member.Get(keys[i])), "absent");
    ASSERT_EQ(member.Now(member.Put(keys[i], values[i])), PutOutcome::kInserted);
    ASSERT_TRUE(member.Now(member.Get(keys[i])) == values[i]) << i;
  }
  EXPECT_EQ(member.Now(member.Stats()).records, keys.size());
  EXPECT_EQ(member.Now(member.List()).size(), keys.size());
  member.Now(member.Verify());
  EXPECT_EQ(world.problem, "");
  const Result<PutOutcome> too_large = member.Try(member.Put("k", std::string((64 << 20) + 1, 'z')));
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().code(), ErrorCode::kInvalidArgument);
  for (const std::string& key : keys) EXPECT_TRUE(member.Now(member.Delete(key)));
  ExpectInOrder(world, member);
}

TEST(ShardTable, SeveralNodes_KeysAreSpreadAndEachPartGrows) {
  // Given a table on three nodes
  // When 1,000 keys are put by one client
  // Expect that another finds and lists all of them, and that each node is in order
  World world({.nodes = 3});
  Member member(world, {{"slots", "8"}, {"overflow_slots", "4"}});
  Member other(world, {{"slots", "8"}, {"overflow_slots", "4"}});
  for (int i = 0; i < 1000; ++i) {
    member.Now(member.Put(fmt::format("k{}", i), std::to_string(i)));
    if (member.pool().MaintenanceDue()) member.Now(member.Maintain());
    if (i % 8 == 0) other.Now(other.Maintain());
  }
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(other.Now(other.Get(fmt::format("k{}", i))), std::to_string(i));
  EXPECT_EQ(other.Now(other.List()).size(), 1000u);
  const TableStats stats = other.Now(other.Stats());
  EXPECT_EQ(stats.records, 1000u);
  EXPECT_GE(DetailOf(stats, "resizes"), 3);
  member.Now(member.Verify());
  EXPECT_EQ(world.problem, "");
}

TEST(ShardTable, PoolIsFull_WhatWasAcknowledgedStaysAndDeletesMakeRoom) {
  // Given a small pool
  // When keys are put until there is no memory left
  // Expect a clear error, every acknowledged key with its value, and room again after deletes
  World world({.region_bytes = 256 * 1024});
  Member member(world, {{"slots", "8"}, {"overflow_slots", "2"}});
  std::map<std::string, std::string> stored;
  std::optional<Error> full;
  for (int i = 0; i < 10'000 && !full.has_value(); ++i) {
    const std::string key = fmt::format("k{}", i);
    const std::string value(i % 100, 'v');
    const Result<PutOutcome> put = member.Try(member.Put(key, value));
    if (put.ok()) stored[key] = value;
    if (!put.ok()) full = put.error();
    if (member.pool().MaintenanceDue()) member.Now(member.Maintain());
  }
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->code(), ErrorCode::kOutOfMemory) << full->ToString();
  EXPECT_GT(stored.size(), 500u);
  for (const auto& [key, value] : stored) ASSERT_EQ(member.Now(member.Get(key)), value);
  member.Now(member.Verify());

  size_t deleted = 0;
  for (auto it = stored.begin(); it != stored.end() && deleted < 200; ++deleted) {
    const Result<bool> gone = member.Try(member.Delete(it->first));
    ASSERT_TRUE(gone.ok() && *gone) << "after " << deleted << " deletes: " << gone.error().ToString();
    it = stored.erase(it);
  }
  for (int round = 0; round < 10; ++round) member.Now(member.Maintain());
  for (int i = 0; i < 100; ++i) {
    const std::string key = fmt::format("again{}", i);
    const Result<PutOutcome> put = member.Try(member.Put(key, "v"));
    ASSERT_TRUE(put.ok()) << i << ": " << put.error().ToString();
    stored[key] = "v";
  }
  for (const auto& [key, value] : stored) ASSERT_EQ(member.Now(member.Get(key)), value);
  ExpectInOrder(world, member);
}

TEST(ShardTable, PoolIsFullWithUnitsToSplit_DeletesGoThrough) {
  // Given a table with chains of level 3 that has grown and whose units are not split yet, and no memory left
  // When keys are deleted, which has to split their units first
  // Expect that it can be done without any memory
  Stage stage({{"slots", "1"}, {"overflow_slots", "1"}}, {.region_bytes = 256 * 1024});
  Member& member = stage.Enter();
  for (int i = 0; i < 60; ++i) member.Now(member.Put(fmt::format("k{}", i), "v"));
  stage.Announce({&member});
  stage.Activate();
  const auto fill = [&](uint64_t bytes) {
    while (member.Try(member.Allocate(bytes)).ok()) continue;
  };
  fill(4096);
  fill(64);
  stage.Learn(member);
  for (int i = 0; i < 60; ++i) {
    const Result<bool> gone = member.Try(member.Delete(fmt::format("k{}", i)));
    ASSERT_TRUE(gone.ok() && *gone) << i << ": " << gone.error().ToString();
    EXPECT_EQ(member.Now(member.Get(fmt::format("k{}", i))), "absent");
  }
  member.Now(member.Verify());
  EXPECT_EQ(stage.world.problem, "");
}

TEST(ShardTable, LocationCache_RepeatedSearchTakesOneTrip) {
  // Given a client with a location cache that has found a key
  // When it looks for the key again, and again after another has replaced it
  // Expect one trip while the location is right, and the new value as soon as there is one
  World world;
  Member member(world, {{"slots", "8"}, {"overflow_slots", "2"}, {"cache", "16"}});
  Member other(world, {{"slots", "8"}, {"overflow_slots", "2"}});
  other.Now(other.Put("k", "old"));
  EXPECT_EQ(member.Now(member.Get("k")), "old");
  const uint64_t before = world.fabric.verbs_posted();
  EXPECT_EQ(member.Now(member.Get("k")), "old");
  EXPECT_EQ(world.fabric.verbs_posted() - before, 2u);  // the line, and the block
  other.Now(other.Put("k", "new"));
  EXPECT_EQ(member.Now(member.Get("k")), "new");
  other.Now(other.Delete("k"));
  EXPECT_EQ(member.Now(member.Get("k")), "absent");
  EXPECT_EQ(world.problem, "");
}

// Trips of a client's changes, blocks included.
uint64_t TripsOfChanges(Member& member) {
  uint64_t trips = 0;
  for (const fabric::OpKind kind :
       {fabric::OpKind::kInsert, fabric::OpKind::kUpdate, fabric::OpKind::kDelete}) {
    for (const fabric::OpOutcome outcome : {fabric::OpOutcome::kDone, fabric::OpOutcome::kRefused})
      trips += member.tally(kind, outcome).end_to_end_trips;
  }
  return trips;
}

TEST(ShardTable, ChangeOfARememberedKey_TakesOneTrip_OfAnOlderOneTwo) {
  // Given a client that remembers where a key is, having seen it since its last sync, or before that
  // When it changes the key in every way
  // Expect one trip where the value does not matter, two where it does or the memory is older, as many as a
  // look takes otherwise
  World world;
  Member member(world, {{"slots", "8"}, {"overflow_slots", "2"}, {"cache", "16"}});
  Member other(world, {{"slots", "8"}, {"overflow_slots", "2"}});
  const auto trips_of = [&](auto task) {
    const uint64_t before = TripsOfChanges(member);
    member.Now(std::move(task));
    return TripsOfChanges(member) - before;
  };
  other.Now(other.Put("k", "of other"));
  member.Now(member.Put("chunk", "of its own"));
  EXPECT_EQ(trips_of(member.Put("k", "cold")), 3u);
  EXPECT_EQ(trips_of(member.Put("k", "put")), 1u);
  EXPECT_EQ(trips_of(member.Update("k", "updated")), 1u);
  EXPECT_EQ(trips_of(member.Insert("k", "refused")), 1u);
  EXPECT_EQ(trips_of(member.CompareAndSet("k", "else", "refused")), 1u);
  EXPECT_EQ(trips_of(member.CompareAndSet("k", "updated", "swapped")), 2u);
  EXPECT_EQ(trips_of(member.Delete("k")), 1u);
  EXPECT_EQ(trips_of(member.Increment("k", 1)), 2u);  // an append
  EXPECT_EQ(trips_of(member.Increment("k", 1)), 2u);
  EXPECT_EQ(trips_of(member.Put("k", "again")), 1u);
  // Another client is faster: the word that the CAS finds is as good as a look.
  other.Now(other.Put("k", "of other"));
  EXPECT_EQ(trips_of(member.Put("k", "late")), 3u);
  const auto pass_epochs = [&] {
    for (int round = 0; round < 2; ++round) {
      member.Now(member.Sync(/*raise=*/true));
      other.Now(other.Sync(/*raise=*/true));
    }
    member.Now(member.Sync());
  };
  pass_epochs();
  EXPECT_EQ(trips_of(member.Put("k", "older")), 2u);
  EXPECT_EQ(trips_of(member.Put("k", "put")), 1u);
  pass_epochs();
  EXPECT_EQ(trips_of(member.Delete("k")), 2u);
  EXPECT_EQ(trips_of(member.Delete("k")), 1u);  // it is absent: a look
  member.Now(member.Verify());
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::shard
