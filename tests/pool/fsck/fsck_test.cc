// Fsck: every byte of a pool is accounted for, and what is leaked is found.
#include "pool/fsck/fsck.h"

#include <algorithm>
#include <ranges>

#include <gtest/gtest.h>

#include "tests/pool/fsck/fsck_world.h"

namespace farside::pool {
namespace {

using fabric::Op;
using fabric::OpKind;

// ---- pools that are in order

TEST_F(FsckTest, FreshPool_IsFree) {
  const FsckReport report = Check(Reached());
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(report.findings.empty()) << ToString(report);
  EXPECT_EQ(report.counts.chunks_free, geometry_.chunks());
  EXPECT_EQ(report.bytes.free_chunks, geometry_.chunks() * geometry_.chunk_bytes);
  EXPECT_EQ(report.bytes.metadata, geometry_.first_chunk());
}

TEST_F(FsckTest, PoolThatAllClientsHaveLeft_IsReachableOrFreeToTheLastByte) {
  Join();
  Fill();
  Leave();
  const FsckReport report = Check(Everything());
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(report.findings.empty()) << ToString(report);
  EXPECT_EQ(report.bytes.reachable, BytesOfBlocks());
  EXPECT_EQ(report.bytes.held + report.bytes.abandoned + report.bytes.leaked + report.bytes.damaged, 0u);
  EXPECT_GT(report.bytes.free_blocks, 0u);
  EXPECT_EQ(report.counts.blocks_reachable, blocks_.size());
  EXPECT_EQ(report.counts.blocks_read, blocks_.size());
  EXPECT_EQ(report.counts.extents, 1u);
  EXPECT_EQ(report.counts.tables_live, 1u);
}

TEST_F(FsckTest, WhatALivingClientOwns_IsHeld) {
  Join();
  Fill();
  const FsckReport report = Check(Everything());
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kNote, "client {slot 0, generation 1} is registered"));
  EXPECT_GT(report.bytes.held, 0u);
  EXPECT_EQ(report.bytes.reachable, BytesOfBlocks());
}

TEST_F(FsckTest, WhatADeadClientOwned_IsAbandoned) {
  // Given a client that died, and is fenced or not, in a pool that no client uses.
  Join();
  Fill();
  const uint64_t slot = geometry_.client_slot(0);
  const ClientWord live(Word(slot));
  for (const bool fenced : {true, false}) {
    SetWord(slot, fenced ? live.With(ClientState::kFenced).word() : live.word());
    FsckOptions options;
    options.no_client_runs = !fenced;
    const FsckReport report = Check(Everything(), options);
    EXPECT_TRUE(report.ok()) << ToString(report);
    EXPECT_TRUE(Finds(report, Severity::kNote, "which has died"));
    EXPECT_GT(report.bytes.abandoned, 0u);
    EXPECT_EQ(report.bytes.held + report.bytes.leaked, 0u);
  }
}

TEST_F(FsckTest, ClientThatDiedBeforeItClearedABitmap_HasDamagedNothing) {
  // Given a chunk that was used for something else before, as its first bytes show.
  // When a client claims it and dies before it has cleared the bitmap.
  // Expect that this is something to adopt, and no damage: a client that adopts it may believe the bits.
  Join();
  for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) SetWord(geometry_.chunk(chunk), ~uint64_t{0});
  {
    Op op(*client_, OpKind::kInsert);
    auto claim = pool_client_->allocator(kNode).Allocate(op, geometry_.chunk_bytes / 4);
    claim.Start();
    const auto is_claimed = [&](uint64_t chunk) { return Word(geometry_.chunk_word(chunk)) != 0; };
    const auto chunks = std::views::iota(uint64_t{0}, geometry_.chunks());
    while (std::ranges::none_of(chunks, is_claimed)) ASSERT_TRUE(world_.Step());
    world_.Crash(client_->id());
  }
  FsckOptions options;
  options.no_client_runs = true;
  const FsckReport report = Check(Reached(), options);
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kNote, "which has died"));
}

TEST_F(FsckTest, TheCheckingClient_MayBeRegistered) {
  Join();
  FsckOptions options;
  options.self = pool_client_->member(kNode).self();
  const FsckReport report = Check(Reached(), options);
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(report.findings.empty()) << ToString(report);
}

// ---- leaks

TEST_F(FsckTest, BlockThatNoTableReaches_IsLeaked) {
  Join();
  Fill();
  Leave();
  const Stored lost = blocks_[7];
  const Stored lost_extent = blocks_.back();
  blocks_.erase(blocks_.begin() + 7);
  blocks_.pop_back();
  const FsckReport report = Check(Everything());
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(Finds(report, Severity::kLeak, "1 block of"));
  EXPECT_TRUE(Finds(report, Severity::kLeak, "the extent of 3 chunks"));
  EXPECT_EQ(report.damages, 0u) << ToString(report);
  EXPECT_EQ(report.bytes.leaked,
            RoundUp(lost.bytes, kLine) + RoundUp(lost_extent.bytes, geometry_.chunk_bytes));
}

// Given a table of which only a part could be walked. When the pool is checked. Expect that the rest is not
// called leaked.
TEST_F(FsckTest, TableThatWasNotWalkedToItsEnd_NothingIsSaidToBeLeaked) {
  Join();
  Fill();
  Leave();
  Reached some;
  some.BeginTable("users");
  some.MarkBlock(blocks_[0].at, blocks_[0].bytes, 0);
  uint64_t told = 0;
  FsckOptions options;
  options.all_walked = false;
  options.progress = [&told](uint64_t chunks) { told = chunks; };
  const FsckReport report = Check(some, options);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.bytes.leaked, 0u);
  EXPECT_EQ(report.bytes.unknown + report.bytes.reachable, BytesOfBlocks());
  EXPECT_GT(report.bytes.unknown, 0u);
  EXPECT_EQ(told, geometry_.chunks());
}

TEST_F(FsckTest, ChunkOfAClientThatIsNotRegistered_IsLeaked) {
  Join();
  Fill();
  Leave();
  const uint64_t word = geometry_.chunk_word(ChunkWithState(ChunkState::kBlocks));
  SetWord(word, ChunkWord(Word(word)).WithOwner(Owner(3, 1)).word());
  const FsckReport report = Check(Everything());
  EXPECT_TRUE(
      Finds(report, Severity::kLeak, "belongs to client {slot 3, generation 1}, which is not registered"));
}

}  // namespace
}  // namespace farside::pool
