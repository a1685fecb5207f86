// Whatever far memory holds, a client ends: with an answer, or with an error that says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "index/chime/layout.h"
#include "index/chime/node_locks.h"
#include "index/shard/layout.h"
#include "pool/memory/block.h"
#include "pool/region/layout.h"
#include "tests/damage/damaged_pool.h"

namespace farside::damage {
namespace {

using index::chime::Header;
using index::chime::NodeBits;
using index::chime::NodeInfo;
using index::chime::TornReads;
using pool::BlockHeader;

// ---- by chance ---------------------------------------------------------------------------------------

class DamagedPools : public testing::TestWithParam<const char*> {};

// Given a pool of each set of options of an engine. When a few words of it are damaged, and all commands run.
// Expect each to end in time, and no value that was never put. (./dev damage tries as many as are wanted.)
TEST_P(DamagedPools, SomeSeeds_CommandsEndAndNoValueIsWrong) {
  const std::vector<DamagedPool> pools = PoolsOf(GetParam());
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Findings found = pools[seed % pools.size()].Try(seed);
    EXPECT_THAT(found.wrong, testing::IsEmpty()) << "seed " << seed << ": " << found.damage;
    refused += found.refused;
  }
  EXPECT_GT(refused, 0u) << "some damages are seen";
}
INSTANTIATE_TEST_SUITE_P(Engines, DamagedPools,
                         testing::Values("shard", "chime", "sephash", "nessie", "continuity", "reference"),
                         [](const auto& test) { return std::string(test.param); });

// Given seeds whose commands did not end. When they are tried again. Expect them to end.
TEST(DamagedPool, SeedsThatDidNotEnd_End) {
  const std::map<std::string, std::vector<uint64_t>> seeds = {
      {"shard", {112, 556, 793, 1538}},
      {"chime", {44, 107, 289, 442, 6099, 13642, 29409, 101454}},
      {"nessie", {2607}},
      {"sephash", {382}}};
  for (const auto& [engine, of_engine] : seeds) {
    const std::vector<DamagedPool> pools = PoolsOf(engine);
    for (const uint64_t seed : of_engine) {
      const Findings found = pools[seed % pools.size()].Try(seed);
      EXPECT_THAT(found.wrong, testing::IsEmpty()) << engine << " seed " << seed << ": " << found.damage;
    }
  }
}

// Given a pool. When the epoch of a node is so large that it cannot be, and so nothing would ever be past its
// grace. Expect clients to refuse the pool at once, and not to wait when they leave.
TEST(DamagedPool, EpochThatCannotBe_IsRefusedAtOnce) {
  for (const char* const engine : {"shard", "sephash"}) {
    const DamagedPool pool(engine, {});
    Regions regions = pool.regions();
    StoreU64(regions[0].data() + pool::kEpochOffset, ~uint64_t{0});
    const Findings found = pool.TryWith(regions);
    EXPECT_THAT(found.wrong, testing::IsEmpty());
    EXPECT_EQ(found.refused, 3u) << "each of the three clients";
    EXPECT_THAT(found.last_error, testing::HasSubstr("the epoch of node 0"));
  }
}

// ---- continuity --------------------------------------------------------------------------------------

// The undamaged blocks of a pool, wherever there is the first line of one.
std::vector<std::span<std::byte>> BlocksOf(Regions& regions) {
  std::vector<std::span<std::byte>> blocks;
  for (std::vector<std::byte>& region : regions) {
    for (uint64_t offset = 4 * pool::kPage; offset < region.size(); offset += pool::kLine) {
      const std::span<std::byte> rest = std::span(region).subspan(offset);
      const Result<uint64_t> bytes = pool::BlockBytesFromHeader(rest.first(pool::kLine));
      if (!bytes.ok() || *bytes > rest.size()) continue;
      if (pool::DecodeBlock(rest.first(*bytes)).ok()) blocks.push_back(rest.first(*bytes));
    }
  }
  return blocks;
}

// A bit flipped, a byte, a word of any bits, or the line of another block.
void DamageBlock(std::span<std::byte> block, std::span<const std::byte> other, Random& random) {
  BlockHeader header;
  std::memcpy(&header, block.data(), sizeof(header));
  const uint64_t at = random.Below(sizeof(header) + header.key_bytes() + header.value_bytes);
  const uint64_t line = at - at % pool::kLine;
  switch (random.Below(4)) {
    case 0: block[at] ^= std::byte{1} << random.Below(8); break;
    case 1: block[at] = static_cast<std::byte>(random.Next()); break;
    case 2: StoreU64(block.data() + (at & ~uint64_t{7}), random.Next()); break;
    default: std::memcpy(block.data() + line, other.data(), pool::kLine);
  }
}

// Given a continuity table, whose slots have no checksum. When bytes of some of its blocks are damaged.
// Expect errors, and values that were put: those of slots, and those of blocks.
TEST(DamagedContinuity, BytesOfBlocks_NoValueIsWrong) {
  const std::vector<DamagedPool> pools = PoolsOf("continuity");
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const DamagedPool& pool = pools[seed % pools.size()];
    Random random(seed);
    Regions regions = pool.regions();
    const std::vector<std::span<std::byte>> blocks = BlocksOf(regions);
    ASSERT_GT(blocks.size(), 40u);
    for (const std::span<std::byte> block : blocks)
      if (random.Chance(1, 4)) DamageBlock(block, blocks[random.Below(blocks.size())], random);
    const Findings found = pool.TryWith(regions, Damaged::kBlocks);
    EXPECT_THAT(found.wrong, testing::IsEmpty()) << "seed " << seed;
    EXPECT_THAT(found.codes, testing::Contains(ErrorCode::kCorrupt)) << "seed " << seed;
  }
}

// ---- shard -------------------------------------------------------------------------------------------

namespace shard = index::shard;

// The lines of a shard table that look like those of its units: they have a version, and each entry is empty
// or leads to a place in the region.
std::vector<std::span<std::byte>> UnitLinesOf(Regions& regions) {
  std::vector<std::span<std::byte>> lines;
  for (std::vector<std::byte>& region : regions) {
    for (uint64_t offset = 4 * pool::kPage; offset < region.size(); offset += pool::kLine) {
      const std::span<std::byte> bytes = std::span(region).subspan(offset, pool::kLine);
      shard::Line line;
      std::memcpy(&line, bytes.data(), sizeof(line));
      const bool fits = std::all_of(line.entries.begin(), line.entries.end(), [&](shard::Entry entry) {
        return entry.offset() < region.size() && (entry.has_block() || entry.empty() || entry.is_hole());
      });
      if (fits && line.version() != 0) lines.push_back(bytes);
    }
  }
  return lines;
}

// Given a shard table. When its lines, one by one, say that they are of another version, and no lock is held.
// Expect every command to end within a second: no client is splitting the unit, or ever will.
TEST(DamagedShard, VersionsThatFitNothing_UnderFreeLocks_EndWithinASecond) {
  for (const index::OptionMap& options : {index::OptionMap{{"slots", "16"}}, index::OptionMap{}}) {
    const DamagedPool pool("shard", options);
    Regions counted = pool.regions();
    const size_t lines = UnitLinesOf(counted).size();
    ASSERT_GT(lines, 4u);
    uint64_t refused = 0;
    for (size_t i = 0; i < lines; ++i) {
      for (const uint32_t other : {1, 2, 63}) {
        Regions regions = pool.regions();
        const std::span<std::byte> bytes = UnitLinesOf(regions)[i];
        shard::Line line;
        std::memcpy(&line, bytes.data(), sizeof(line));
        line.set_version(line.version() ^ other);
        std::memcpy(bytes.data(), &line, sizeof(line));
        const Findings found = pool.TryWith(regions);
        EXPECT_THAT(found.wrong, testing::IsEmpty()) << "line " << i << ", version ^ " << other;
        EXPECT_LT(found.longest, std::chrono::seconds(1)) << "line " << i << ", version ^ " << other;
        EXPECT_THAT(found.codes, testing::ElementsAre(ErrorCode::kCorrupt))
            << "line " << i << ", version ^ " << other << ": " << found.last_error;
        refused += found.refused;
      }
    }
    EXPECT_GT(refused, lines);
  }
}

// ---- chime -------------------------------------------------------------------------------------------

const index::OptionMap kSmallLeaves = {{"span", "4"}, {"neighbourhood", "2"}, {"fanout", "4"}};

struct LeafPlace {
  size_t node = 0;
  uint64_t offset = 0;
};
// The leaves of a chime table, wherever there is the first line of one.
std::vector<LeafPlace> LeavesOf(const Regions& regions) {
  std::vector<LeafPlace> leaves;
  for (size_t node = 0; node < regions.size(); ++node) {
    for (uint64_t offset = 0; offset < regions[node].size(); offset += pool::kLine) {
      const Header header = index::chime::HeaderOf(std::span(regions[node]).subspan(offset));
      if (NodeInfo(header.info) == NodeInfo::Of(0) && header.heir == 0) leaves.push_back({node, offset});
    }
  }
  return leaves;
}

void ChangeHeader(Regions& regions, const LeafPlace& leaf, const std::function<void(Header&)>& change) {
  std::byte* const at = regions[leaf.node].data() + leaf.offset;
  Header header = index::chime::HeaderOf(std::span(regions[leaf.node]).subspan(leaf.offset));
  change(header);
  std::memcpy(at, &header, sizeof(header));
}

// Given a chime table. When the entries of its leaves name blocks on a memory node that the pool does not
// have. Expect each command to end: drop, too, which retires every block.
TEST(DamagedChime, BlocksOnAbsentNodes_EveryCommandEnds) {
  const DamagedPool pool("chime", kSmallLeaves);
  Regions regions = pool.regions();
  for (const LeafPlace& leaf : LeavesOf(regions)) {
    for (size_t slot = 0; slot < 4; ++slot) {
      std::byte* const ref =
          regions[leaf.node].data() + leaf.offset + index::chime::SlotOffset(slot) + sizeof(uint64_t);
      // One that does not have its size would be READ by a walk.
      const bool has_size = index::chime::BlockRef(LoadU64(ref)).bytes() != 0;
      if (has_size) StoreU64(ref, NodeBits::Set(LoadU64(ref), NodeBits::kMax));
    }
  }
  const Findings found = pool.TryWith(regions);
  EXPECT_THAT(found.wrong, testing::IsEmpty());
  EXPECT_GT(found.refused, 0u);
}

// Given a chime table. When its leaves, one by one, say that entries are on the move, and no lock is held.
// Expect every command to end within a second: no client will ever bring the leaf to rest.
TEST(DamagedChime, OddMovesUnderFreeLocks_EndWithinASecond) {
  const DamagedPool pool("chime", kSmallLeaves);
  for (const LeafPlace& leaf : LeavesOf(pool.regions())) {
    Regions regions = pool.regions();
    ChangeHeader(regions, leaf, [](Header& header) { header.moves |= 1; });
    const Findings found = pool.TryWith(regions);
    EXPECT_THAT(found.wrong, testing::IsEmpty());
    EXPECT_LT(found.longest, std::chrono::seconds(1));
    EXPECT_GT(found.refused, 0u);
    EXPECT_THAT(found.codes, testing::ElementsAre(ErrorCode::kCorrupt)) << found.last_error;
  }
}

// Given a chime table. When leaves end before all keys, and each is its own sibling, or the first one is that
// of all others. Expect every command to end at once.
TEST(DamagedChime, SiblingsInCircles_End) {
  const DamagedPool pool("chime", kSmallLeaves);
  const std::vector<LeafPlace> leaves = LeavesOf(pool.regions());
  for (const bool own : {true, false}) {
    Regions regions = pool.regions();
    for (const LeafPlace& leaf : leaves) {
      const LeafPlace& to = own ? leaf : leaves.front();
      ChangeHeader(regions, leaf, [&](Header& header) {
        header.sibling = index::chime::NodePtr::To(to.node, to.offset, 0).word();
        header.fence_prefix = 1;
        header.fence_ref = index::chime::BoundRef::Short(8).word();
      });
    }
    const Findings found = pool.TryWith(regions);
    EXPECT_THAT(found.wrong, testing::IsEmpty());
    EXPECT_LT(found.longest, std::chrono::seconds(1));
  }
}

// Given a chime table. When all leaves are dead, each the heir of another. Expect every command to end.
TEST(DamagedChime, HeirsInCircles_End) {
  const DamagedPool pool("chime", kSmallLeaves);
  const std::vector<LeafPlace> leaves = LeavesOf(pool.regions());
  Regions regions = pool.regions();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafPlace& to = (i ^ 1) < leaves.size() ? leaves[i ^ 1] : leaves.front();
    ChangeHeader(regions, leaves[i], [&](Header& header) {
      header.heir = index::chime::NodePtr::To(to.node, to.offset, 0).word();
    });
  }
  const Findings found = pool.TryWith(regions);
  EXPECT_THAT(found.wrong, testing::IsEmpty());
  EXPECT_LT(found.longest, std::chrono::seconds(1));
}

// Given READs of a leaf whose entries are on the move. When its lock is held, or `moves` is another number
// each time. Expect no proof of damage, however often; only the same odd number beside a free lock is one.
TEST(DamagedChime, TornReads_ProveDamageOnlyBesideAFreeLock) {
  Header header{};
  header.moves = 7;
  header.lock = 1;
  TornReads held;
  for (int i = 0; i < 100; ++i) held.Note(header);
  EXPECT_FALSE(held.ProveDamage());
  header.lock = 0;
  TornReads moving;
  for (int i = 0; i < 100; ++i) {
    header.moves += i % 3;
    moving.Note(header);
  }
  EXPECT_FALSE(moving.ProveDamage());
  header.moves = 7;
  TornReads stuck;
  for (int i = 0; i < 3; ++i) stuck.Note(header);
  EXPECT_FALSE(stuck.ProveDamage());
  stuck.Note(header);
  EXPECT_TRUE(stuck.ProveDamage());
  EXPECT_EQ(stuck.times(), 4);
}

}  // namespace
}  // namespace farside::damage
