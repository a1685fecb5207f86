// Opening a durable region, word by word: what each of them becomes, whatever of it survived.
#include "pool/region/recover.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "pool/catalog/layout.h"
#include "pool/memory/carving.h"

namespace farside::pool {
namespace {

using fabric::ClientId;

constexpr Geometry kGeometry{
    .region_bytes = 192 * 1024, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096, .durable = true};
constexpr Owner kGone(5, 9);

class RecoverTest : public testing::Test {
 protected:
  RecoverTest() : region_(kGeometry.region_bytes) {}

  uint64_t Word(uint64_t at) const { return LoadU64(region_.data() + at); }
  void Set(uint64_t at, uint64_t word) { StoreU64(region_.data() + at, word); }
  ChunkWord Chunk(uint64_t chunk) const { return ChunkWord(Word(kGeometry.chunk_word(chunk))); }
  void SetChunk(uint64_t chunk, ChunkState state, uint32_t argument, Owner owner = Owner()) {
    Set(kGeometry.chunk_word(chunk), ChunkWord(state, argument, owner).word());
  }
  ClientWord Slot(uint32_t slot) const { return ClientWord(Word(kGeometry.client_slot(slot))); }
  TableWord Entry(uint32_t slot) const { return TableWord(Word(kGeometry.table_entry(slot))); }
  void RunRecover() { Recover(region_, kGeometry); }

  std::vector<std::byte> region_;
};

TEST_F(RecoverTest, OfANewPool_ChangesNothing) {
  const std::vector<std::byte> before = region_;
  RunRecover();
  EXPECT_EQ(region_, before);
}

TEST_F(RecoverTest, TablesThatWereBeingMadeOrDropped_AreFree_AndOthersStay) {
  // Given an entry in each state.
  for (uint32_t slot = 0; slot < 4; ++slot)
    Set(kGeometry.table_entry(slot), TableWord(static_cast<TableState>(slot), 7).word());
  RunRecover();
  // Expect what was decided, and incarnations that do not go back.
  EXPECT_EQ(Entry(0), TableWord(TableState::kFree, 7));
  EXPECT_EQ(Entry(1), TableWord(TableState::kFree, 7));
  EXPECT_EQ(Entry(2), TableWord(TableState::kLive, 7));
  EXPECT_EQ(Entry(3), TableWord(TableState::kFree, 7));
}

TEST_F(RecoverTest, ClientsAndTheirLock_AreGone) {
  Set(kGeometry.client_slot(2), ClientWord(ClientState::kLive, 4, ClientId{77}).word());
  Set(kGeometry.client_slot(2) + kPulseOffset, kOfflineEpoch);
  Set(kGeometry.client_slot(2) + kHeartbeatOffset, 12);
  Set(kGeometry.client_slot(3), ClientWord(ClientState::kFenced, 2, ClientId{78}).word());
  Set(kCatalogLockOffset, LockWord::HeldBy(Owner(2, 4)).word());
  Set(kEpochOffset, 40);
  Set(kDeathsOffset, 3);
  RunRecover();
  EXPECT_EQ(Slot(2), ClientWord(ClientState::kFree, 4, ClientId::kNone)) << "the next one is another";
  EXPECT_EQ(Slot(3), ClientWord(ClientState::kFree, 2, ClientId::kNone));
  EXPECT_EQ(Word(kGeometry.client_slot(2) + kPulseOffset), 0u);
  EXPECT_EQ(Word(kGeometry.client_slot(2) + kHeartbeatOffset), 0u);
  EXPECT_EQ(Word(kCatalogLockOffset), 0u);
  EXPECT_EQ(Word(kEpochOffset), 40u);
  EXPECT_EQ(Word(kDeathsOffset), 3u);
}

TEST_F(RecoverTest, ChunksInUse_BelongToOneFencedClient_WithCleanBitmaps) {
  // Given chunks of several owners and of none, and bitmaps of which anything survived.
  SetChunk(1, ChunkState::kBlocks, 0, kGone);
  SetChunk(2, ChunkState::kBlocks, 3, Owner(1, 1));
  SetChunk(3, ChunkState::kBlocks, 1);
  SetChunk(4, ChunkState::kExtent, 1, kGone);
  Set(kGeometry.chunk(1), 0xdeadbeef);
  Set(kGeometry.chunk(4), 0xfeed);
  Set(kGeometry.client_slot(0), ClientWord(ClientState::kLive, 6, ClientId{9}).word());
  RunRecover();
  // Expect one owner, which the fabric never had, so that its members adopt and sweep everything.
  const ClientWord fenced = Slot(0);
  EXPECT_EQ(fenced, ClientWord(ClientState::kFenced, 7, ClientId::kNone));
  for (uint64_t chunk = 1; chunk <= 4; ++chunk) EXPECT_EQ(Chunk(chunk).owner(), Owner(0, 7)) << chunk;
  EXPECT_EQ(Chunk(2).argument(), 3u);
  EXPECT_EQ(Word(kGeometry.chunk(1)), 0u);
  EXPECT_EQ(Word(kGeometry.chunk(4)), 0xfeedu) << "an extent has no bitmap";
}

TEST_F(RecoverTest, OfAPoolWithoutChunksInUse_LeavesNothingToAdopt) {
  Set(kGeometry.client_slot(0), ClientWord(ClientState::kFenced, 6, ClientId::kNone).word());
  RunRecover();
  EXPECT_EQ(Slot(0), ClientWord(ClientState::kFree, 6, ClientId::kNone));
}

TEST_F(RecoverTest, AnExtentThatLacksAWord_IsFree) {
  // Given a whole extent, and others of which each word in turn did not survive.
  const auto make = [this](uint64_t head) {
    SetChunk(head, ChunkState::kExtent, 3, kGone);
    SetChunk(head + 1, ChunkState::kExtentRest, 1);
    SetChunk(head + 2, ChunkState::kExtentRest, 2);
  };
  for (const uint64_t head : {0, 4, 8, 12}) make(head);
  for (const uint64_t lost : {4, 9, 14}) Set(kGeometry.chunk_word(lost), 0);
  RunRecover();
  EXPECT_EQ(Chunk(0).state(), ChunkState::kExtent);
  EXPECT_EQ(Chunk(1).argument(), 1u);
  EXPECT_EQ(Chunk(2).argument(), 2u);
  for (uint64_t chunk = 3; chunk < 16; ++chunk) EXPECT_EQ(Chunk(chunk), ChunkWord()) << chunk;
}

TEST_F(RecoverTest, AnExtentWhoseChunksAreUsedAgain_GivesUpTheRest) {
  // Given the stale words of an extent of four chunks, in which a chunk of blocks and a smaller extent are
  // now.
  SetChunk(0, ChunkState::kExtent, 4, kGone);
  SetChunk(1, ChunkState::kBlocks, 2, kGone);
  SetChunk(2, ChunkState::kExtent, 2, kGone);
  SetChunk(3, ChunkState::kExtentRest, 1);
  SetChunk(5, ChunkState::kExtentRest, 5);  // of an older one
  RunRecover();
  EXPECT_EQ(Chunk(0), ChunkWord());
  EXPECT_EQ(Chunk(1).state(), ChunkState::kBlocks);
  EXPECT_EQ(Chunk(2).state(), ChunkState::kExtent);
  EXPECT_EQ(Chunk(3), ChunkWord(ChunkState::kExtentRest, 1, Owner()));
  EXPECT_EQ(Chunk(5), ChunkWord());
}

TEST_F(RecoverTest, WordsThatNoClientWrites_StayForACheckToFind) {
  constexpr uint64_t kNonsense = 0xff;
  Set(kGeometry.chunk_word(1), kNonsense);
  SetChunk(2, ChunkState::kExtentRest, 1);  // its first word is damaged
  SetChunk(4, ChunkState::kExtent, 3, kGone);
  Set(kGeometry.chunk_word(5), kNonsense);
  SetChunk(6, ChunkState::kExtentRest, 2);
  Set(kGeometry.table_entry(1), kNonsense);
  RunRecover();
  EXPECT_EQ(Chunk(1).word(), kNonsense);
  EXPECT_EQ(Chunk(2).state(), ChunkState::kExtentRest);
  EXPECT_EQ(Chunk(4).state(), ChunkState::kExtent);
  EXPECT_EQ(Chunk(5).word(), kNonsense);
  EXPECT_EQ(Entry(1).word(), kNonsense);
}

TEST_F(RecoverTest, OfAnyWords_MakesSense_AndChangesNothingTheSecondTime) {
  // Given chunk words that clients write, in any mixture, any registry, and any bitmaps.
  const Carving carving(fabric::NodeId{0}, kGeometry);
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    for (uint64_t chunk = 0; chunk < kGeometry.chunks(); ++chunk) {
      const Owner owner(static_cast<uint32_t>(random.Below(8)), 1 + static_cast<uint32_t>(random.Below(9)));
      SetChunk(chunk, ChunkState::kFree, 0);
      const auto argument = static_cast<uint32_t>(1 + random.Below(4));
      const auto state = static_cast<ChunkState>(random.Below(4));
      if (state == ChunkState::kFree) continue;
      const ChunkWord word(state, argument, state == ChunkState::kExtentRest ? Owner() : owner);
      if (carving.IsSound(chunk, word)) Set(kGeometry.chunk_word(chunk), word.word());
      Set(kGeometry.chunk(chunk), random.Next());
    }
    for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot) {
      const auto state = static_cast<ClientState>(random.Below(4));
      const auto generation = static_cast<uint32_t>(random.Below(9));
      Set(kGeometry.client_slot(slot), ClientWord(state, generation, ClientId{5}).word());
    }
    RunRecover();
    // Expect whole extents, one owner of everything, which is fenced, and no other client.
    for (uint64_t chunk = 0; chunk < kGeometry.chunks(); ++chunk) {
      const ChunkWord word = Chunk(chunk);
      ASSERT_TRUE(carving.IsSound(chunk, word));
      if (word.CanBeOwned()) {
        ASSERT_EQ(word.owner(), Owner(0, Slot(0).generation()));
        ASSERT_EQ(Slot(0).state(), ClientState::kFenced);
      }
      if (word.state() == ChunkState::kBlocks) {
        ASSERT_EQ(Word(kGeometry.chunk(chunk)), 0u);
      }
      for (uint32_t i = 1; word.state() == ChunkState::kExtent && i < word.argument(); ++i)
        ASSERT_EQ(Chunk(chunk + i), ChunkWord(ChunkState::kExtentRest, i, Owner()));
      if (word.state() == ChunkState::kExtentRest) {
        ASSERT_GT(Chunk(chunk - word.argument()).argument(), word.argument());
      }
    }
    for (uint32_t slot = 1; slot < kGeometry.client_slots; ++slot)
      ASSERT_EQ(Slot(slot).state(), ClientState::kFree);
    const std::vector<std::byte> once = region_;
    RunRecover();
    ASSERT_EQ(region_, once);
  }
}

}  // namespace
}  // namespace farside::pool
