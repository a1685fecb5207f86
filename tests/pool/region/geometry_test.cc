#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "pool/region/layout.h"
#include "pool/region/superblock.h"

namespace farside::pool {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

// What holds of every geometry that a pool may have.
void ExpectWellFormed(const Geometry& g) {
  SCOPED_TRACE(::testing::Message() << g.region_bytes << " bytes, " << g.client_slots << " clients, "
                                    << g.table_slots << " tables, chunks of " << g.chunk_bytes);
  // Areas start on pages, in this order, and do not overlap.
  EXPECT_EQ(g.registry(), kPage);
  EXPECT_GE(g.catalog(), g.client_slot(g.client_slots - 1) + kLine);
  EXPECT_GE(g.chunk_table(), g.table_entry(g.table_slots - 1) + kTableEntryBytes);
  EXPECT_GE(g.first_chunk(), g.chunk_word(g.chunks() - 1) + sizeof(ChunkWord));
  for (const uint64_t start : {g.catalog(), g.chunk_table(), g.first_chunk(), g.chunk(g.chunks() - 1)}) {
    EXPECT_EQ(start % kPage, 0u);
  }
  // They stay inside, and leave out less than a chunk and a page of its table.
  ASSERT_GT(g.chunks(), 0u);
  const uint64_t end = g.chunk(g.chunks() - 1) + g.chunk_bytes;
  EXPECT_LE(end, g.region_bytes);
  EXPECT_LT(g.region_bytes - end, g.chunk_bytes + kPage);
  // Every chunk is found by its first and its last byte, and nothing else is a chunk.
  for (const uint64_t chunk : {uint64_t{0}, g.chunks() / 2, g.chunks() - 1}) {
    EXPECT_EQ(g.chunk_of(g.chunk(chunk)), chunk);
    EXPECT_EQ(g.chunk_of(g.chunk(chunk) + g.chunk_bytes - 1), chunk);
  }
  EXPECT_EQ(g.chunk_of(0), g.chunks());
  EXPECT_EQ(g.chunk_of(g.first_chunk() - 1), g.chunks());
  EXPECT_EQ(g.chunk_of(end), g.chunks());
  EXPECT_EQ(g.chunk_of(~uint64_t{0}), g.chunks());
}

TEST(Geometry, OfManySizes_IsWellFormed) {
  // Given regions of every number of pages up to 8 MiB, and of all sizes up to an exabyte.
  // When each is planned with random options.
  // Expect a well-formed geometry, or a refusal that names a larger size.
  Random random(0x6e0);
  std::vector<uint64_t> sizes;
  for (uint64_t pages = 0; pages <= 8 * kMiB / kPage; ++pages) sizes.push_back(pages * kPage);
  for (int i = 0; i < 5000; ++i) sizes.push_back(random.LogUniform(uint64_t{1} << 60));

  for (const uint64_t bytes : sizes) {
    FormatOptions options;
    if (random.Chance(1, 2)) {
      options.client_slots = static_cast<uint32_t>(random.Between(1, kMaxClientSlots));
      options.table_slots = static_cast<uint32_t>(1 + random.LogUniform(100'000));
      options.chunk_bytes = kMinChunkBytes << random.Below(20);
    }
    const Result<Geometry> geometry = PlanGeometry(bytes, options);
    if (!geometry.ok()) {
      EXPECT_EQ(geometry.error().code(), ErrorCode::kInvalidArgument);
      continue;
    }
    EXPECT_EQ(geometry->region_bytes, bytes / kPage * kPage);
    EXPECT_EQ(geometry->client_slots, options.client_slots);
    EXPECT_EQ(geometry->table_slots, options.table_slots);
    EXPECT_TRUE(std::has_single_bit(geometry->chunk_bytes));
    EXPECT_GE(geometry->chunk_bytes, kMinChunkBytes);
    EXPECT_LE(geometry->chunk_bytes, options.chunk_bytes);
    ExpectWellFormed(*geometry);
    if (HasFailure()) return;
  }
}

TEST(Geometry, ChunksShrinkWithTheRegion) {
  const auto chunk_bytes = [](uint64_t region_bytes) { return PlanGeometry(region_bytes, {})->chunk_bytes; };
  EXPECT_EQ(chunk_bytes(64 * kKiB), 4 * kKiB);
  EXPECT_EQ(chunk_bytes(1 * kMiB), 4 * kKiB);
  EXPECT_EQ(chunk_bytes(16 * kMiB), 32 * kKiB);
  EXPECT_EQ(chunk_bytes(32 * kMiB), 64 * kKiB);
  EXPECT_EQ(chunk_bytes(64 * kMiB), 128 * kKiB);
  EXPECT_EQ(chunk_bytes(256 * kMiB), 512 * kKiB);
  EXPECT_EQ(chunk_bytes(257 * kMiB), 1 * kMiB);
  EXPECT_EQ(chunk_bytes(1024 * kGiB), 1 * kMiB);
}

TEST(Geometry, NothingButTablesAndChunksTakesRoom) {
  // 1 GiB in chunks of 1 MiB: one of them is lost to everything else.
  EXPECT_EQ(PlanGeometry(kGiB, {})->chunks(), 1023u);
}

TEST(Geometry, TooSmall_NamesTheSmallestThatWorks) {
  EXPECT_EQ(
      PlanGeometry(47 * kKiB, {}).error().ToString(),
      "kInvalidArgument: 47KiB is too small for a pool of 64 client slots and 64 table slots; it takes at "
      "least 48KiB");
  EXPECT_FALSE(PlanGeometry(0, {}).ok());
  EXPECT_FALSE(PlanGeometry(48 * kKiB - 1, {}).ok());
  EXPECT_EQ(PlanGeometry(48 * kKiB, {})->chunks(), 1u);

  // Whatever the options, the size that is named works, and no smaller one does.
  Random random(0x5ca1e);
  for (int i = 0; i < 1000; ++i) {
    const FormatOptions options{.client_slots = static_cast<uint32_t>(random.Between(1, kMaxClientSlots)),
                                .table_slots = static_cast<uint32_t>(1 + random.LogUniform(100'000))};
    const uint64_t least = RoundUp(kPage + options.client_slots * kLine, kPage) +
                           RoundUp(options.table_slots * kTableEntryBytes, kPage) + 2 * kPage;
    EXPECT_FALSE(PlanGeometry(least - 1, options).ok());
    EXPECT_TRUE(PlanGeometry(least, options).ok());
  }
}

TEST(Geometry, OptionsThatMakeNoSense_AreRefused) {
  const auto error = [](const FormatOptions& options) {
    return PlanGeometry(kGiB, options).error().ToString();
  };
  EXPECT_EQ(error({.client_slots = 0}), "kInvalidArgument: a pool has 1 to 4096 client slots, not 0");
  EXPECT_EQ(error({.client_slots = 4097}), "kInvalidArgument: a pool has 1 to 4096 client slots, not 4097");
  EXPECT_EQ(error({.table_slots = 0}), "kInvalidArgument: a pool has 1 to 131072 table slots, not 0");
  EXPECT_EQ(error({.table_slots = 131'073}),
            "kInvalidArgument: a pool has 1 to 131072 table slots, not 131073");
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{2048}, 3 * kMiB}) {
    EXPECT_FALSE(PlanGeometry(kGiB, {.chunk_bytes = bytes}).ok());
  }
  EXPECT_EQ(error({.chunk_bytes = 3 * kMiB}),
            "kInvalidArgument: the size of a chunk is a power of two from 4KiB on, not 3MiB");
}

}  // namespace
}  // namespace farside::pool
