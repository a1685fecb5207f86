// The bytes of a pool, as docs/layouts/pool.md shows them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "pool/memory/size_class.h"
#include "pool/region/layout.h"
#include "pool/region/node_identity.h"
#include "pool/region/superblock.h"

namespace farside::pool {
namespace {

constexpr uint64_t kBytes = 64 * 1024;

Status NothingToPersist(uint64_t, uint64_t) { return OkStatus(); }

TEST(PoolLayout, GoldenBytesOfAFreshPool) {
  // Given a region of 64 KiB that holds rubbish.
  // When it is formatted with the default options and a known id.
  // Expect exactly these bytes, and zeros up to the first chunk.
  alignas(kPage) static std::array<std::byte, kBytes> region;
  region.fill(std::byte{0xee});
  const Geometry geometry = *PlanGeometry(kBytes, {});
  ASSERT_TRUE(Format(region, NothingToPersist, geometry, {0x0706050403020100, 0x0f0e0d0c0b0a0908}).ok());
  EXPECT_EQ(HexDump(std::span(region).first(kLine)),
            "00000000  46 41 52 53 49 44 45 00  02 00 00 00 04 03 02 01  |FARSIDE.........|\n"
            "00000010  00 00 01 00 00 00 00 00  00 01 02 03 04 05 06 07  |................|\n"
            "00000020  08 09 0a 0b 0c 0d 0e 0f  40 00 00 00 40 00 00 00  |........@...@...|\n"
            "00000030  00 10 00 00 00 00 00 00  6e 52 59 44 e3 f1 02 7d  |........nRYD...}|\n");
  const auto rest = std::span(region).subspan(kLine, geometry.first_chunk() - kLine);
  EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(PoolLayout, WhereEverythingIs) {
  const Geometry geometry = *PlanGeometry(kBytes, {});
  EXPECT_EQ(geometry.registry(), 0x1000u);
  EXPECT_EQ(geometry.catalog(), 0x2000u);
  EXPECT_EQ(geometry.chunk_table(), 0xa000u);
  EXPECT_EQ(geometry.first_chunk(), 0xb000u);
  EXPECT_EQ(geometry.chunk_bytes, 0x1000u);
  EXPECT_EQ(geometry.chunks(), 5u);
  EXPECT_EQ(geometry.chunk(4), 0xf000u);

  EXPECT_EQ(geometry.client_slot(5), 0x1140u);
  EXPECT_EQ(geometry.table_entry(2), 0x2400u);
  EXPECT_EQ(geometry.chunk_word(3), 0xa018u);
  EXPECT_EQ(geometry.chunk_of(0xe123), 3u);

  EXPECT_EQ(kEpochOffset, 0x40u);
  EXPECT_EQ(kCatalogChangesOffset, 0x48u);
  EXPECT_EQ(kDeathsOffset, 0x50u);
  EXPECT_EQ(kRoomWantedOffset, 0x58u);
  EXPECT_EQ(kCatalogLockOffset, 0x80u);
  EXPECT_EQ(kIdentityOffset, 0xc0u);
  EXPECT_EQ(NodeIdentity(0x123456789abc, 3, 2).word(), 0x123456789abc0302u);
}

TEST(PoolLayout, Owner) {
  EXPECT_EQ(Owner(5, 3).bits(), 0x00003005u);
  EXPECT_EQ(Owner(4095, 0xfffff).bits(), 0xffffffffu);
  EXPECT_TRUE(Owner().is_none());
  EXPECT_EQ(Owner::FromBits(0x00003005).slot(), 5u);
  EXPECT_EQ(Owner::FromBits(0x00003005).generation(), 3u);
}

TEST(PoolLayout, ClientWord) {
  const ClientWord live(ClientState::kLive, 3, fabric::ClientId{7});
  EXPECT_EQ(live.word(), 0x00000007'00003002u);
  EXPECT_EQ(live.With(ClientState::kFenced).word(), 0x00000007'00003003u);
  EXPECT_EQ(ClientWord(ClientState::kFree, 3, fabric::ClientId::kNone).word(), 0x00000000'00003000u);
  EXPECT_EQ(ClientWord(ClientState::kJoining, 0xfffff, fabric::ClientId{0xffffffff}).word(),
            0xffffffff'fffff001u);
  EXPECT_EQ(ClientWord(0x00000007'00003002).state(), ClientState::kLive);
  EXPECT_EQ(ClientWord(0x00000007'00003002).generation(), 3u);
  EXPECT_EQ(ClientWord(0x00000007'00003002).fabric_client(), fabric::ClientId{7});
  EXPECT_EQ(ClientWord().state(), ClientState::kFree);
}

TEST(PoolLayout, ClientSlot) {
  ClientSlot slot{};
  slot.state = ClientWord(ClientState::kLive, 3, fabric::ClientId{7});
  slot.pulse = Pulse{.epoch = 0x11, .heartbeat = 0x22, .settled = 0x10};
  EXPECT_EQ(HexDump(std::as_bytes(std::span(&slot, 1)), 0x1140),
            "00001140  02 30 00 00 07 00 00 00  11 00 00 00 00 00 00 00  |.0..............|\n"
            "00001150  22 00 00 00 00 00 00 00  10 00 00 00 00 00 00 00  |\"...............|\n"
            "00001160  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00001170  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

TEST(PoolLayout, LockWord) {
  EXPECT_EQ(LockWord::HeldBy(Owner(5, 3)).word(), 0x00000000'00003005u);
  EXPECT_EQ(LockWord(0x00000000'00003005).owner(), Owner(5, 3));
  EXPECT_TRUE(LockWord(0).free());
  EXPECT_FALSE(LockWord(0x00000000'00003005).free());
}

TEST(PoolLayout, ChunkWord) {
  EXPECT_EQ(ChunkWord().word(), 0u);
  const ChunkWord blocks(ChunkState::kBlocks, 9, Owner(5, 3));
  EXPECT_EQ(blocks.word(), 0x00000003'00500091u);
  EXPECT_EQ(blocks.WithOwner(Owner()).word(), 0x00000000'00000091u);
  EXPECT_EQ(ChunkWord(ChunkState::kExtent, 3, Owner(5, 3)).word(), 0x00000003'00500032u);
  EXPECT_EQ(ChunkWord(ChunkState::kExtentRest, 2, Owner(5, 3)).word(), 0x00000003'00500023u);
  EXPECT_EQ(ChunkWord(ChunkState::kBlocks, 0xffff, Owner(4095, 0xfffff)).word(), 0x000fffff'fffffff1u);
  const ChunkWord records(ChunkState::kBlocks, 9, Owner(5, 3), BlockUse::kRecords);
  EXPECT_EQ(records.word(), 0x00100003'00500091u);
  EXPECT_EQ(records.use(), BlockUse::kRecords);
  EXPECT_EQ(records.WithOwner(Owner()).word(), 0x00100000'00000091u);
  EXPECT_EQ(blocks.use(), BlockUse::kStructure);
  EXPECT_EQ(ChunkWord(0x00000003'00500091).state(), ChunkState::kBlocks);
  EXPECT_EQ(ChunkWord(0x00000003'00500091).argument(), 9u);
  EXPECT_EQ(ChunkWord(0x00000003'00500091).owner(), Owner(5, 3));
}

TEST(PoolLayout, SizeClassesOfChunksOf4KiB) {
  // Chunk words name classes by their number, so the list is part of the layout.
  struct Row {
    uint64_t bytes;
    uint32_t blocks;
    uint64_t first;
  };
  constexpr std::array kRows = {
      Row{64, 63, 0x40},  Row{128, 31, 0x80}, Row{192, 21, 0x40},  Row{256, 15, 0x100}, Row{320, 12, 0x40},
      Row{384, 10, 0x40}, Row{448, 9, 0x40},  Row{512, 7, 0x200},  Row{576, 7, 0x40},   Row{640, 6, 0x40},
      Row{768, 5, 0x40},  Row{960, 4, 0x40},  Row{1024, 3, 0x400}, Row{1984, 2, 0x40}};
  const SizeClasses classes(4096);
  ASSERT_EQ(classes.count(), kRows.size());
  for (uint32_t i = 0; i < kRows.size(); ++i) {
    EXPECT_EQ(classes.shape(i).block_bytes, kRows[i].bytes);
    EXPECT_EQ(classes.shape(i).blocks, kRows[i].blocks);
    EXPECT_EQ(classes.shape(i).first_block, kRows[i].first);
  }
}

}  // namespace
}  // namespace farside::pool
