// Fsck finds what is wrong in a pool, and no bytes make it crash.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/pool/fsck/fsck_world.h"
#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;

TEST_F(FsckTest, BlockThatIsReachableAndFree_IsDamage) {
  Join();
  Fill();
  const Stored free = Store("victim", "v");
  pool_client_->allocator(kNode).Retire(free.at, free.bytes, 0);
  Leave();
  blocks_.push_back(free);
  const FsckReport report = Check(Everything());
  EXPECT_TRUE(Finds(report, Severity::kDamage, "is reachable, and free"));
}

TEST_F(FsckTest, BlockIsReachedTwice_IsDamageUnlessAClientMayHaveMovedIt) {
  Join();
  Fill();
  Leave();
  Reached reached = Everything();
  reached.MarkBlock(blocks_[3].at, blocks_[3].bytes, 0);
  FsckReport report = Check(reached);
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kNote, "in two ways"));
  report = Check(reached, {.no_client_runs = true});
  EXPECT_EQ(report.damages, 1u) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kDamage, "in two ways"));
  reached.BeginTable("others");
  reached.Mark(blocks_[4].at, blocks_[4].bytes);
  reached.Mark(blocks_.back().at, blocks_.back().bytes);
  report = Check(reached);
  EXPECT_EQ(report.damages, 2u) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kDamage, "table users and table others both reach"));
}

TEST_F(FsckTest, PointerToWhereNoBlockIs_IsDamageThatSaysWhatIsThere) {
  Join();
  Fill();
  Leave();
  const auto expect = [&](FarAddr at, uint64_t bytes, const std::string& what) {
    Reached reached = Everything();
    reached.BeginTable("wild");
    reached.Mark(at, bytes);
    EXPECT_TRUE(Finds(Check(reached), Severity::kDamage, what));
  };
  const FarAddr block = blocks_[3].at;
  const FarAddr extent = blocks_.back().at;
  expect(FarAddr(kNode, 64), 64, "which is not in any chunk");
  expect(FarAddr(kNode, geometry_.region_bytes), 64, "which is not in any chunk");
  expect(FarAddr(kNode, ~uint64_t{0} - 63), 64, "which is not in any chunk");
  expect(FarAddr(NodeId{9}, 64), 64, "of node 9, which is not in any chunk");
  expect(block + 8, 64, "which is no block of chunk");
  expect(block, 4000, "which is no block of chunk");
  expect(block, ~uint64_t{0}, "which is no block of chunk");
  expect(extent + geometry_.chunk_bytes, 64, "in the middle of an extent");
  expect(extent, 9 * geometry_.chunk_bytes, "in an extent of 3 chunks");
  expect(FarAddr(kNode, geometry_.chunk(ChunkWithState(ChunkState::kFree))), 64, "in a free chunk");
}

TEST_F(FsckTest, ExtentWithoutOneOfItsChunks_IsDamageUnlessItsClientDied) {
  Join();
  Fill();
  Leave();
  const uint64_t head = ChunkWithState(ChunkState::kExtent);
  const uint64_t head_word = Word(geometry_.chunk_word(head));
  const uint64_t rest_word = Word(geometry_.chunk_word(head + 2));
  // A part is missing.
  SetWord(geometry_.chunk_word(head + 2), 0);
  EXPECT_TRUE(Finds(Check(Everything()), Severity::kDamage,
                    "is reachable, but of its 3 chunks 1 are not part of it"));
  SetWord(geometry_.chunk_word(head + 2), rest_word);
  // The first is missing.
  SetWord(geometry_.chunk_word(head), 0);
  const FsckReport report = Check(Everything());
  EXPECT_TRUE(Finds(report, Severity::kDamage, "is part of an extent at chunk"));
  EXPECT_TRUE(Finds(report, Severity::kDamage, "in a free chunk"));
  // One that died while it was being made is no damage.
  SetWord(geometry_.client_slot(5), ClientWord(ClientState::kFenced, 4, fabric::ClientId{77}).word());
  SetWord(geometry_.chunk_word(head), ChunkWord(head_word).WithOwner(Owner(5, 4)).word());
  SetWord(geometry_.chunk_word(head + 1), 0);
  blocks_.pop_back();
  const FsckReport abandoned = Check(Everything());
  EXPECT_TRUE(abandoned.ok()) << ToString(abandoned);
  EXPECT_EQ(abandoned.counts.extents_broken, 1u);
  EXPECT_EQ(abandoned.bytes.abandoned, 2 * geometry_.chunk_bytes);
}

TEST_F(FsckTest, DamagedBlock_IsFoundByItsChecksum) {
  Join();
  Fill();
  Leave();
  *Memory(blocks_[9].at.offset + 30) ^= std::byte{1};
  *Memory(blocks_.back().at.offset + 10'000) ^= std::byte{1};
  FsckReport report = Check(Everything());
  EXPECT_EQ(report.damages, 2u) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kDamage, "table users has a damaged block"));
  FsckOptions options;
  options.read_blocks = false;
  EXPECT_TRUE(Check(Everything(), options).ok());
}

TEST_F(FsckTest, BitsOfBlocksThatAChunkDoesNotHave_AreDamage) {
  Join();
  Fill();
  Leave();
  const Carving carving(kNode, geometry_);
  for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
    const ChunkWord word(Word(geometry_.chunk_word(chunk)));
    if (word.state() != ChunkState::kBlocks) continue;
    const SizeClasses::Shape& shape = carving.classes().shape(word.argument());
    if (shape.blocks % 64 == 0) continue;
    const uint64_t last = geometry_.chunk(chunk) + (shape.bitmap_words() - 1) * 8;
    SetWord(last, Word(last) | uint64_t{1} << 63);
    break;
  }
  EXPECT_TRUE(Finds(Check(Everything()), Severity::kDamage, "marks blocks that it does not have"));
}

TEST_F(FsckTest, ChunkWordThatNoClientWrites_IsDamageOfItsChunk) {
  for (const uint64_t word :
       {uint64_t{4}, uint64_t{1} << 63, ChunkWord(ChunkState::kBlocks, 500, Owner()).word(),
        ChunkWord(ChunkState::kExtent, 0, Owner()).word(),
        ChunkWord(ChunkState::kExtent, 60'000, Owner()).word(),
        ChunkWord(ChunkState::kExtentRest, 9, Owner()).word(),
        ChunkWord(ChunkState::kBlocks, 0, Owner(4000, 1)).word()}) {
    SetWord(geometry_.chunk_word(3), word);
    const FsckReport report = Check(Reached());
    EXPECT_TRUE(Finds(report, Severity::kDamage, "the word of chunk 3"));
    EXPECT_EQ(report.bytes.damaged, geometry_.chunk_bytes);
  }
}

TEST_F(FsckTest, SuperblockWithAnotherBit_IsDamage) {
  *Memory(40) ^= std::byte{1};
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "the superblock: "));
  *Memory(40) ^= std::byte{1};
  *Memory(2000) = std::byte{1};
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "the first page has bits where none are used"));
}

TEST_F(FsckTest, ClientSlotThatNoClientWrites_IsDamage) {
  const uint64_t slot = geometry_.client_slot(2);
  SetWord(slot, 9);
  EXPECT_TRUE(
      Finds(Check(Reached()), Severity::kDamage, "client slot 2 is in state 9, which no client writes"));
  SetWord(slot, 16);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "client slot 2 has bits where none are used"));
  SetWord(slot, ClientWord(ClientState::kLive, 1, fabric::ClientId{3}).word());
  SetWord(slot + kPulseOffset, 1000);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "has published epoch 1000, and the epoch is 0"));
  SetWord(slot + kPulseOffset, 0);
  EXPECT_TRUE(Check(Reached()).ok());
  SetWord(slot + 40, 1);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "client slot 2 has bits where none are used"));
}

TEST_F(FsckTest, LockOrHalfMadeTableOfAClientThatIsGone_IsANoteAndOfNoClient_IsDamage) {
  SetWord(kCatalogLockOffset, LockWord::HeldBy(Owner(1, 5)).word());
  FsckReport report = Check(Reached());
  EXPECT_TRUE(report.ok()) << ToString(report);
  EXPECT_TRUE(Finds(report, Severity::kNote,
                    "the lock of the catalog is held by client {slot 1, generation 5}, which is gone"));
  SetWord(kCatalogLockOffset, LockWord::HeldBy(Owner(4000, 5)).word());
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "the lock of the catalog is"));
  SetWord(kCatalogLockOffset, 0);

  const uint64_t entry = geometry_.table_entry(1);
  for (TableState state : {TableState::kCreating, TableState::kDropping}) {
    SetWord(entry, TableWord(state, 3).word());
    SetWord(entry + kWorkerOffset, Owner(1, 5).bits());
    report = Check(Reached());
    EXPECT_TRUE(report.ok()) << ToString(report);
    EXPECT_TRUE(Finds(report, Severity::kNote,
                      state == TableState::kCreating ? "is being created by" : "is being dropped by"));
    SetWord(entry + kWorkerOffset, 0);
    EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "which is no client"));
  }
  SetWord(entry, 7);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "catalog entry 1 has the state 0x7"));
  SetWord(entry, TableWord(TableState::kLive, 3).word());
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "its checksum does not match"));
}

TEST_F(FsckTest, NameThatStandsTwice_IsDamage) {
  Join();
  Fill();
  Leave();
  std::copy_n(Memory(geometry_.table_entry(0)), kTableEntryBytes, Memory(geometry_.table_entry(2)));
  EXPECT_TRUE(
      Finds(Check(Everything()), Severity::kDamage, "the table \"users\" stands twice in the catalog"));
}

TEST_F(FsckTest, ShapesThatMakeNoSense_AreOneFinding) {
  auto observer = Must(world_.Connect());
  const auto check = [&](NodeId node, const std::function<void(Geometry&)>& change) {
    Geometry shape = geometry_;
    change(shape);
    const Reached reached;
    Op op(*observer, OpKind::kMaintenance);
    const FsckReport report = Must(fabric::Run(*observer, Fsck(op, node, shape, reached, {})));
    EXPECT_EQ(report.damages, 1u) << ToString(report);
  };
  check(kNode, [](Geometry& shape) { shape.region_bytes *= 2; });
  check(kNode, [](Geometry& shape) { shape.client_slots = ~uint32_t{0}; });
  check(kNode, [](Geometry& shape) { shape.client_slots = 0; });
  check(kNode, [](Geometry& shape) { shape.table_slots = ~uint32_t{0}; });
  check(kNode, [](Geometry& shape) { shape.chunk_bytes = 0; });
  check(kNode, [](Geometry& shape) { shape.chunk_bytes = 100; });
  check(kNode, [](Geometry& shape) { shape.chunk_bytes = uint64_t{1} << 63; });
  check(NodeId{3}, [](Geometry&) {});
}

TEST_F(FsckTest, EndlessFindings_AreCountedButNotKept) {
  for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk)
    SetWord(geometry_.chunk_word(chunk), ~uint64_t{0});
  Reached reached;
  for (int i = 0; i < 5000; ++i) reached.Mark(FarAddr(kNode, geometry_.chunk(1) + 64 * (i % 100)), 64);
  const FsckReport report = Check(reached);
  EXPECT_EQ(report.damages, geometry_.chunks() + 5000);
  EXPECT_EQ(report.findings.size(), FsckReport::kMostFindings);
}

// ---- any bytes

TEST_F(FsckTest, RandomDamage_NeverCrashesIt_AndEveryByteIsStillCounted) {
  // Given a good pool, used and left.
  // When some of its bytes are replaced by others, thousands of times, mostly in its metadata.
  // Expect a report each time, with every byte counted once.
  Join();
  Fill();
  Leave();
  const std::span<std::byte> memory = world_.memory(kNode);
  const std::vector<std::byte> good(memory.begin(), memory.end());
  const Reached reached = Everything();
  constexpr int kRuns = kSanitized ? 3000 : 6000;
  Random random(42);
  int found = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<uint64_t> touched;
    for (uint64_t changes = 1 + random.LogUniform(16); changes > 0; --changes) {
      const uint64_t end = random.Chance(3, 4) ? geometry_.first_chunk() + 4 * kPage : geometry_.region_bytes;
      const uint64_t at = random.Below(end);
      memory[at] =
          random.Chance(1, 2) ? memory[at] ^ std::byte(1 << random.Below(8)) : std::byte(random.Next());
      touched.push_back(at);
    }
    FsckOptions options;
    options.no_client_runs = random.Chance(1, 4);
    if (random.Chance(1, 4)) options.self = Owner(static_cast<uint32_t>(random.Below(8)), 1);
    if (!Check(reached, options).ok()) ++found;
    for (uint64_t at : touched) memory[at] = good[at];
  }
  EXPECT_GT(found, kRuns / 2) << "most damage is seen";
  EXPECT_TRUE(Check(reached).ok());
}

TEST_F(FsckTest, RandomChunkTablesAndBitmaps_NeverCrashIt) {
  // Given chunk words that are sound one by one, but make no sense together, and marks anywhere.
  Random random(43);
  const Carving carving(kNode, geometry_);
  for (int run = 0; run < 500; ++run) {
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
      const auto state = static_cast<ChunkState>(random.Below(4));
      const uint64_t most = state == ChunkState::kBlocks ? carving.classes().count() - 1 : 5;
      const Owner owner = random.Chance(1, 2) ? Owner() : Owner(static_cast<uint32_t>(random.Below(8)), 1);
      SetWord(geometry_.chunk_word(chunk),
              ChunkWord(state, static_cast<uint32_t>(random.Below(most + 1)), owner).word());
      for (uint64_t word = 0; word < 3; ++word) SetWord(geometry_.chunk(chunk) + word * 8, random.Next());
    }
    Reached reached;
    for (int i = 0; i < 50; ++i) {
      if (i % 10 == 0) reached.BeginTable("t" + std::to_string(i));
      const FarAddr at(kNode, random.Below(geometry_.region_bytes / kLine) * kLine);
      if (i % 2 == 0) {
        reached.Mark(at, random.LogUniform(~uint64_t{0}));
      } else {
        reached.MarkBlock(at, random.LogUniform(100'000), 0);
      }
    }
    EXPECT_FALSE(Check(reached).ok());
  }
}

}  // namespace
}  // namespace farside::pool
