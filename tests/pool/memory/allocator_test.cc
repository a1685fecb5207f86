// The allocator on memory of this process: what it costs, what it says when memory is full, and what it
// makes of damaged memory. Interleavings and deaths are in allocator_simulation_test.cc.
#include "pool/memory/allocator.h"

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/embedded/embedded.h"
#include "pool/memory/sweep.h"
#include "tests/pool/memory/allocator_session.h"
#include "tests/support/heap_count.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::embedded::EmbeddedFabric;

using Session = AllocatorSession;

class AllocatorTest : public testing::Test {
 protected:
  void Open(uint64_t chunks, uint64_t chunk_bytes) {
    geometry_ = GeometryOfChunks(chunks, chunk_bytes);
    ASSERT_EQ(geometry_.chunks(), chunks);
    fabric_ = std::move(*EmbeddedFabric::Open({.region_bytes = {geometry_.region_bytes}}));
  }
  std::unique_ptr<Session> Enter() { return std::make_unique<Session>(*fabric_, geometry_); }
  uint64_t Word(uint64_t offset) { return fabric_->memory(NodeId{0}).Load(offset); }
  void SetWord(uint64_t offset, uint64_t word) { fabric_->memory(NodeId{0}).Store(offset, word); }
  uint64_t ChunksInUse() {
    uint64_t used = 0;
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk)
      used += Word(geometry_.chunk_word(chunk)) != 0 ? 1 : 0;
    return used;
  }

  Geometry geometry_;
  std::unique_ptr<EmbeddedFabric> fabric_;
};

TEST_F(AllocatorTest, BlocksAreDistinctAlignedAndInsideTheRegion) {
  Open(256, 64 * 1024);
  const auto session = Enter();
  Random random(1);
  std::set<std::pair<uint64_t, uint64_t>> blocks;  // [begin, end)
  for (int i = 0; i < 3000; ++i) {
    const uint64_t bytes = 1 + random.LogUniform(20'000);
    const FarAddr block = session->Allocate(bytes);
    EXPECT_EQ(block.offset % 64, 0u);
    ASSERT_GE(block.offset, geometry_.first_chunk());
    ASSERT_LE(block.offset + bytes, geometry_.region_bytes);
    const auto [at, inserted] = blocks.emplace(block.offset, block.offset + bytes);
    ASSERT_TRUE(inserted);
    if (at != blocks.begin()) {
      ASSERT_LE(std::prev(at)->second, block.offset);
    }
    if (std::next(at) != blocks.end()) {
      ASSERT_GE(std::next(at)->first, block.offset + bytes);
    }
  }
  for (uint64_t bytes = 64; bytes <= 4096; bytes *= 2) {
    EXPECT_EQ(session->Allocate(bytes).offset % bytes, 0u) << "so that it lies within a page";
  }
}

TEST_F(AllocatorTest, SteadyState_AllocatingAndRetiringOwnBlocksCostsNoTripAndNoHeap) {
  // Given a client that has warmed up.
  // When it allocates and retires 200,000 blocks of 64 bytes, with a sync after every 1000.
  // Expect at most one trip of the allocator per 1000 blocks, and no heap on the path of an operation.
  Open(64, 1024 * 1024);
  const auto session = Enter();
  const auto thousand = [&] {
    std::vector<FarAddr> blocks;
    blocks.reserve(1000);
    session->Allocate(64);  // may claim a chunk
    const uint64_t heap = HeapAllocations();
    for (int i = 0; i < 1000; ++i) {
      const std::optional<FarAddr> block = session->allocator.TryAllocate(64);
      ASSERT_TRUE(block.has_value());
      blocks.push_back(*block);
    }
    if (kHeapIsCounted) {
      EXPECT_EQ(HeapAllocations(), heap);
    }
    for (const FarAddr& block : blocks) session->Retire(block, 64);
    session->Sync();
  };
  for (int i = 0; i < 10; ++i) thousand();
  const uint64_t before = session->allocator.stats().trips;
  for (int i = 0; i < 200; ++i) thousand();
  EXPECT_LE(session->allocator.stats().trips - before, 200u);
}

TEST_F(AllocatorTest, FreeingCostsTheCallerNoTrip) {
  // Given blocks of all kinds: of this client and of another one, large and small, published or not.
  // When they are freed.
  // Expect that nothing was posted, waited for or not.
  Open(64, 64 * 1024);
  const auto session = Enter();
  const auto other = Enter();
  for (Session* owner : {session.get(), other.get()}) {
    for (const uint64_t bytes : {64, 1000, 30'000, 200'000}) {
      const FarAddr retired = owner->Allocate(bytes);
      const FarAddr unpublished = session->Allocate(bytes);
      const uint64_t posted = session->client().counters().Total().Verbs();
      session->Retire(retired, bytes);
      session->allocator.FreeUnpublished(unpublished, bytes);
      EXPECT_EQ(session->client().counters().Total().Verbs(), posted) << bytes;
      EXPECT_FALSE(session->client().HasUnawaited()) << bytes;
    }
  }
  EXPECT_EQ(session->allocator.stats().retired_pending, 2u * 4 + 2) << "extents wait for the next settle";
}

TEST_F(AllocatorTest, GrowingTables_ClaimingChunksCostsLittle) {
  // When 200,000 blocks of 64 bytes are allocated and none is freed.
  // Expect at most one trip per 1000 blocks.
  Open(64, 1024 * 1024);
  const auto session = Enter();
  for (int i = 0; i < 200'000; ++i) session->Allocate(64);
  EXPECT_LE(session->allocator.stats().trips, 200u);
  EXPECT_EQ(session->allocator.stats().chunks_owned, 200'000u / 16352 + 1);
}

TEST_F(AllocatorTest, BlocksFreedByOthersComeBack) {
  // Given a client that allocates and another one that frees everything, for a long time.
  // Expect that memory does not grow.
  Open(64, 64 * 1024);
  const auto owner = Enter();
  const auto other = Enter();
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 500; ++i) {
      const uint64_t bytes = 64 + static_cast<uint64_t>(i) % 5 * 64;
      other->Retire(owner->Allocate(bytes), bytes);
    }
    owner->Sync();
    other->Sync();
  }
  EXPECT_LE(ChunksInUse(), 16u);
  for (int i = 0; i < 4; ++i) {
    owner->Sync();
    other->Sync();
  }
  EXPECT_TRUE(other->LeaveAll().ok());
  EXPECT_TRUE(owner->LeaveAll().ok());
  EXPECT_EQ(ChunksInUse(), 0u);
  EXPECT_EQ(owner->allocator.stats().nonsense + other->allocator.stats().nonsense, 0u);
}

TEST_F(AllocatorTest, Full_TheErrorNamesNodeSizeAndChunks) {
  Open(4, 4096);
  const auto session = Enter();
  std::vector<FarAddr> blocks;
  Result<FarAddr> block = session->TryToAllocate(1000);
  for (; block.ok(); block = session->TryToAllocate(1000)) blocks.push_back(*block);
  EXPECT_EQ(blocks.size(), 4u * 3);
  EXPECT_EQ(block.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(block.error().message().find(
                "node 0 has no room for 1000 bytes: 0 of its 4 chunks of 4096 bytes are free"),
            std::string::npos)
      << block.error().message();
  EXPECT_NE(block.error().message().find("delete records or drop a table"), std::string::npos)
      << "it says what can be done: " << block.error().message();
  // Another class has no room either, and an extent has none.
  EXPECT_EQ(session->TryToAllocate(64).error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(session->TryToAllocate(5000).error().code(), ErrorCode::kOutOfMemory);
  // Nothing was changed, and what is freed can be had again.
  session->allocator.FreeUnpublished(blocks.back(), 1000);
  EXPECT_EQ(session->Allocate(1000), blocks.back());
}

TEST_F(AllocatorTest, Full_WhatWaitsForGraceIsAskedFor) {
  Open(4, 4096);
  const auto session = Enter();
  int asked = 0;
  session->allocator.set_ask_for_grace([&](Op& op) -> Task<Done> {
    ++asked;
    session->Sync();
    return session->membership.Sync(op, session->membership.known_epoch(), 0, true);
  });
  std::vector<FarAddr> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(session->Allocate(1000));
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(session->TryToAllocate(1000).ok());
  EXPECT_EQ(asked, 0) << "nothing waits, so there is nothing to ask for";
  for (const FarAddr& block : blocks) session->Retire(block, 1000);
  session->Allocate(64);
  EXPECT_GT(asked, 0);
}

TEST_F(AllocatorTest, Full_FreesOfAnotherClientMakeRoom) {
  Open(4, 4096);
  const auto owner = Enter();
  const auto other = Enter();
  std::vector<FarAddr> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(owner->Allocate(1000));
  EXPECT_FALSE(other->TryToAllocate(64).ok());
  for (int i = 0; i < 3; ++i) other->Retire(blocks[static_cast<size_t>(i)], 1000);
  for (int i = 0; i < 4; ++i) {
    other->Sync();
    owner->Sync();
  }
  EXPECT_TRUE(owner->TryToAllocate(1000).ok());
}

TEST_F(AllocatorTest, Extents_64MiBInChunksOf1MiB) {
  Open(160, 1024 * 1024);
  const auto session = Enter();
  const auto other = Enter();
  const uint64_t bytes = uint64_t{64} * 1024 * 1024 + 64;
  const FarAddr first = session->Allocate(bytes);
  const FarAddr second = session->Allocate(bytes);
  EXPECT_EQ(ChunksInUse(), 130u);
  EXPECT_EQ(first.offset % (1024 * 1024), geometry_.first_chunk() % (1024 * 1024));
  EXPECT_FALSE(session->TryToAllocate(bytes).ok());
  EXPECT_GE(first.offset > second.offset ? first.offset - second.offset : second.offset - first.offset,
            bytes);
  // One is given back by its owner, and one by another client.
  session->Retire(first, bytes);
  other->Retire(second, bytes);
  for (int i = 0; i < 4; ++i) {
    session->Sync();
    other->Sync();
  }
  EXPECT_EQ(ChunksInUse(), 0u);
  EXPECT_EQ(session->TryToAllocate(uint64_t{161} << 20).error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(session->TryToAllocate(~uint64_t{0}).error().code(), ErrorCode::kOutOfMemory);
  session->allocator.FreeUnpublished(session->Allocate(bytes), bytes);
  session->Sync();
  EXPECT_EQ(ChunksInUse(), 0u);
}

TEST_F(AllocatorTest, ExtentsAndBlocksComeFromDifferentEnds) {
  // Given a region half full of chunks of blocks.
  // Expect that the other half is in one piece.
  Open(64, 64 * 1024);
  const auto session = Enter();
  while (ChunksInUse() < 24) session->Allocate(1000);
  EXPECT_TRUE(session->TryToAllocate(uint64_t{24} * 64 * 1024).ok());
}

TEST_F(AllocatorTest, Full_TheLastChunksAreLeftToStructure) {
  // Given a node that is full of records: of extents, and of blocks.
  constexpr uint64_t kChunkBytes = 64 * 1024;
  for (const uint64_t bytes : {kChunkBytes, 3 * kChunkBytes, uint64_t{20'000}}) {
    Open(256, kChunkBytes);
    const auto session = Enter();
    const auto put = [&] {
      return session->Try([&](Op& op) { return session->allocator.Allocate(op, bytes, BlockUse::kRecords); });
    };
    Result<FarAddr> record = put();
    while (record.ok()) record = put();
    EXPECT_EQ(record.error().code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(record.error().message().find("for the tables' own use"), std::string::npos)
        << record.error().ToString();
    // When a table needs memory, to give back what it holds. Expect that there is some.
    EXPECT_GE(ChunksInUse(), geometry_.chunks() - 4);
    EXPECT_TRUE(session->TryToAllocate(64).ok()) << bytes;
    EXPECT_TRUE(session->TryToAllocate(kChunkBytes).ok()) << bytes;
  }
}

TEST_F(AllocatorTest, LeftChunksAreTakenUpByOthers) {
  // Given a client that leaves while some of its blocks are in use.
  // When another one needs blocks of the same size, and later frees all of them.
  // Expect it to go on with the chunk that was left, and all chunks to be free in the end.
  Open(16, 4096);
  const auto other = Enter();
  std::vector<FarAddr> blocks;
  {
    const auto leaver = Enter();
    for (int i = 0; i < 20; ++i) blocks.push_back(leaver->Allocate(64));
    ASSERT_TRUE(leaver->LeaveAll().ok());
    leaver->Run([&](Op& op) { return leaver->membership.Leave(op); });
  }
  EXPECT_EQ(ChunksInUse(), 1u);
  for (int i = 0; i < 43; ++i) blocks.push_back(other->Allocate(64));
  EXPECT_EQ(ChunksInUse(), 1u) << "63 blocks fit into one chunk";
  EXPECT_EQ(std::set(blocks.begin(), blocks.end()).size(), 63u);
  for (const FarAddr& block : blocks) other->Retire(block, 64);
  for (int i = 0; i < 4; ++i) other->Sync();
  ASSERT_TRUE(other->LeaveAll().ok());
  EXPECT_EQ(ChunksInUse(), 0u);
}

TEST_F(AllocatorTest, AChunkWithoutOwnerIsFreedByTheNextLeaver) {
  Open(16, 4096);
  const auto other = Enter();
  const auto leaver = Enter();
  const FarAddr block = leaver->Allocate(64);
  ASSERT_TRUE(leaver->LeaveAll().ok());
  leaver->Run([&](Op& op) { return leaver->membership.Leave(op); });
  other->Retire(block, 64);
  for (int i = 0; i < 4; ++i) other->Sync();
  EXPECT_EQ(ChunksInUse(), 1u);
  ASSERT_TRUE(other->LeaveAll().ok());
  EXPECT_EQ(ChunksInUse(), 0u);
}

TEST_F(AllocatorTest, EmptyChunksAreReleased_ButTheLastOfAClassOnlyWhenItIsIdle) {
  Open(64, 4096);
  const auto session = Enter();
  std::vector<FarAddr> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(session->Allocate(64));
  for (const FarAddr& block : blocks) session->allocator.FreeUnpublished(block, 64);
  session->Sync();
  EXPECT_EQ(ChunksInUse(), 1u);
  for (int i = 0; i < 100; ++i) session->Sync();
  EXPECT_EQ(ChunksInUse(), 0u);
}

TEST_F(AllocatorTest, LeavingTooEarlyIsRefused) {
  Open(16, 4096);
  const auto session = Enter();
  session->Retire(session->Allocate(64), 64);
  const Result<Done> left = session->LeaveAll();
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().code(), ErrorCode::kContended);
  for (int i = 0; i < 4; ++i) session->Sync();
  EXPECT_TRUE(session->LeaveAll().ok());
}

TEST_F(AllocatorTest, NonsenseIsCountedAndLeftAlone) {
  Open(16, 4096);
  const auto session = Enter();
  const FarAddr block = session->Allocate(64);
  session->Retire(FarAddr(NodeId{0}, 0), 64);
  session->Retire(block + 8, 64);
  session->Retire(FarAddr(NodeId{7}, block.offset), 64);
  session->Retire(FarAddr(NodeId{0}, ~uint64_t{0}), 1 << 20);
  session->allocator.FreeUnpublished(block, 128);
  session->allocator.FreeUnpublished(block + (uint64_t{1} << 40), 64);
  EXPECT_EQ(session->allocator.stats().nonsense, 6u);
  session->allocator.FreeUnpublished(block, 64);
  session->allocator.FreeUnpublished(block, 64);  // twice
  EXPECT_EQ(session->allocator.stats().nonsense, 7u);
  for (int i = 0; i < 4; ++i) session->Sync();
  EXPECT_TRUE(session->LeaveAll().ok());
  EXPECT_EQ(ChunksInUse(), 0u);
}

TEST_F(AllocatorTest, ADamagedChunkTableIsNotTouched) {
  // Given a chunk table full of noise, with a few good words in between.
  // When a client allocates, adopts, and leaves.
  // Expect errors or blocks of the good chunks, and the noise to stay as it is.
  Open(64, 4096);
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    std::vector<uint64_t> noise(64);
    for (uint64_t chunk = 0; chunk < 64; ++chunk) {
      noise[chunk] = chunk % 4 == 0 ? 0 : (random.Next() | uint64_t{1} << 63) >> random.Below(8);
      SetWord(geometry_.chunk_word(chunk), noise[chunk]);
    }
    const auto session = Enter();
    for (int i = 0; i < 60; ++i) {
      const uint64_t bytes = 1 + random.LogUniform(10'000);
      const Result<FarAddr> block = session->TryToAllocate(bytes);
      if (block.ok()) session->allocator.FreeUnpublished(*block, bytes);
    }
    session->Run([&](Op& op) { return session->allocator.Adopt(op, Owner(5, 5)); });
    session->Sync();
    const Result<Done> left = session->LeaveAll();
    EXPECT_TRUE(left.ok()) << left.error().ToString();
    session->Run([&](Op& op) { return session->membership.Leave(op); });
    for (uint64_t chunk = 0; chunk < 64; ++chunk) {
      if (noise[chunk] != 0) {
        ASSERT_EQ(Word(geometry_.chunk_word(chunk)), noise[chunk]) << seed;
      }
    }
  }
}

TEST_F(AllocatorTest, WordsOfOwnChunksAreOverwritten_ItGoesOnWithOthersAndSaysSo) {
  // Given a client with chunks, whose words are set to free, to no owner, or to noise.
  // Expect it to hand out blocks that no client has, and to say so when it leaves.
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Open(24, 4096);
    const auto session = Enter();
    Random random(seed);
    std::map<uint64_t, uint64_t> held;  // from an offset to the end of the block
    const auto allocate = [&](int count) {
      int got = 0;
      for (int i = 0; i < count; ++i) {
        const uint64_t bytes = 1 + random.LogUniform(2000);
        const Result<FarAddr> block = session->TryToAllocate(bytes);
        if (!block.ok()) continue;
        ++got;
        const auto next = held.lower_bound(block->offset);
        EXPECT_TRUE(next == held.end() || next->first >= block->offset + bytes) << "seed " << seed;
        EXPECT_TRUE(next == held.begin() || std::prev(next)->second <= block->offset) << "seed " << seed;
        if (random.Chance(1, 2)) {
          session->allocator.FreeUnpublished(*block, bytes);
        } else {
          held[block->offset] = block->offset + bytes;
        }
      }
      return got;
    };
    EXPECT_EQ(allocate(30), 30);
    for (uint64_t chunk = 0; chunk < 24; ++chunk) {
      const uint64_t word = Word(geometry_.chunk_word(chunk));
      if (word == 0) continue;
      const std::array<uint64_t, 3> damage = {0, ChunkWord(word).WithOwner(Owner()).word(), random.Next()};
      SetWord(geometry_.chunk_word(chunk), damage[random.Below(3)]);
    }
    EXPECT_GT(allocate(60), 0) << "seed " << seed;
    EXPECT_FALSE(session->LeaveAll().ok());
  }
}

TEST_F(AllocatorTest, ABlockThatIsFreedTwiceByOthersIsReported) {
  Open(16, 4096);
  const auto owner = Enter();
  const auto other = Enter();
  const FarAddr block = owner->Allocate(64);
  other->Retire(block, 64);
  other->Retire(block, 64);
  for (int i = 0; i < 4; ++i) {
    other->Sync();
    owner->Sync();
  }
  EXPECT_EQ(other->allocator.stats().nonsense, 1u);
  // A client whose bit is there already is told.
  const FarAddr another = owner->Allocate(64);
  SetWord(geometry_.chunk(owner->allocator.carving().Locate(another, 64)->chunk), ~uint64_t{0});
  other->Retire(another, 64);
  other->Sync();
  owner->Sync();
  const Result<Done> settled = other->Try([&](Op& op) {
    other->allocator.Stamp(other->allocator.retired_so_far(), 0);
    return other->allocator.Reclaim(op, 1000);
  });
  ASSERT_FALSE(settled.ok());
  EXPECT_EQ(settled.error().code(), ErrorCode::kCorrupt);
}

TEST_F(AllocatorTest, ASweepLeavesAloneWhatItsOwnClientIsAboutToGiveBack) {
  // Given a block that this client has retired and not given back, when a sweep begins, and another one
  // retired during the sweep.
  // When the sweep ends although neither has been given back.
  // Expect that they are freed once.
  Open(16, 4096);
  const auto session = Enter();
  const FarAddr before = session->Allocate(64);
  const FarAddr during = session->Allocate(64);
  const FarAddr leaked = session->Allocate(64);
  session->Allocate(64);  // reachable
  session->Retire(before, 64);
  {
    Sweep sweep(session->allocator);
    session->Retire(during, 64);
    sweep.Mark(leaked + 64, 64);
    session->Run([&](Op& op) { return sweep.Finish(op); });
  }
  EXPECT_EQ(session->allocator.stats().blocks_swept, 1u);
  for (int i = 0; i < 4; ++i) session->Sync();
  EXPECT_EQ(session->allocator.stats().nonsense, 0u);
  EXPECT_EQ(session->allocator.stats().bytes_handed_out, 64u);
}

TEST_F(AllocatorTest, ASweepThatMeetsAnImpossiblePointerFreesNothingOfThatChunk) {
  Open(16, 4096);
  const auto session = Enter();
  const FarAddr leaked = session->Allocate(64);
  const FarAddr other_class = session->Allocate(128);
  Sweep sweep(session->allocator);
  sweep.Mark(leaked + 8, 64);
  sweep.Mark(FarAddr(NodeId{3}, leaked.offset), 64);
  sweep.Mark(FarAddr(NodeId{0}, ~uint64_t{0}), 64);
  session->Run([&](Op& op) { return sweep.Finish(op); });
  EXPECT_EQ(session->allocator.stats().bytes_handed_out, 64u) << "the other chunk's block was leaked";
  EXPECT_EQ(session->Allocate(128), other_class);
}

}  // namespace
}  // namespace farside::pool
