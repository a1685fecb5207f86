// Fsck: every byte of a pool is accounted for, everything that is wrong is found, and no bytes make it crash.
#include "pool/fsck/fsck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "pool/catalog/catalog.h"
#include "pool/client.h"
#include "pool/memory/block.h"
#include "pool/memory/carving.h"
#include "pool/region/superblock.h"
#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using testing::HasSubstr;

constexpr NodeId kNode{0};

struct Stored {
  FarAddr at;
  uint64_t bytes = 0;
};

Task<std::vector<FarAddr>> RootAt(FarAddr root) { co_return std::vector<FarAddr>{root}; }
Task<Done> NothingToWalk() { co_return Done{}; }

// A pool in the memory of a simulated node, with a table "users" of blocks of many sizes and an extent.
class FsckTest : public testing::Test {
 protected:
  FsckTest() : geometry_(Shape()), world_(Options(geometry_)) {
    const Persist persist = [](uint64_t, uint64_t) { return OkStatus(); };
    struct alignas(kPage) Page {
      std::array<std::byte, kPage> bytes;
    };
    std::vector<Page> region(geometry_.region_bytes / kPage);
    const auto bytes = std::as_writable_bytes(std::span(region));
    EXPECT_TRUE(Format(bytes, persist, geometry_, RegionId{1, 2}).ok());
    std::copy(bytes.begin(), bytes.end(), world_.memory(kNode).begin());
  }
  ~FsckTest() override {
    pool_client_.reset();
    client_.reset();
    observer_.reset();
  }

  static Geometry Shape() {
    FormatOptions options;
    options.client_slots = 8;
    options.table_slots = 4;
    options.chunk_bytes = 8 * 1024;
    return *PlanGeometry(256 * 1024, options);
  }
  static fabric::sim::SimOptions Options(const Geometry& geometry) {
    fabric::sim::SimOptions options;
    options.region_bytes = {geometry.region_bytes};
    options.chaos = fabric::sim::Chaos::Calm();
    return options;
  }

  template <class T>
  T Must(Result<T> result) {
    if (!result.ok()) ADD_FAILURE() << result.error().ToString();
    return std::move(*result);
  }

  void Join() {
    client_ = Must(world_.Connect());
    Op op(*client_, OpKind::kMaintenance);
    ClientOptions options;
    options.lease.lease = std::chrono::microseconds(300);
    pool_client_ = Must(fabric::Run(*client_, PoolClient::Join(op, *client_, {geometry_}, options)));
    pool_client_->set_walk([](Op&, Reach&) { return NothingToWalk(); });
  }
  void Leave() {
    {
      Op op(*client_, OpKind::kMaintenance);
      Must(fabric::Run(*client_, pool_client_->Leave(op)));
    }
    pool_client_.reset();
    client_.reset();
  }

  Stored Store(const std::string& key, const std::string& value) {
    Stored stored;
    stored.bytes = BlockBytes(key.size(), value.size());
    Op op(*client_, OpKind::kInsert);
    stored.at = Must(fabric::Run(*client_, pool_client_->allocator(kNode).Allocate(op, stored.bytes)));
    std::vector<std::byte> bytes(stored.bytes);
    EncodeBlock(bytes, key, value, Hash64(key));
    std::memcpy(world_.memory(kNode).data() + stored.at.offset, bytes.data(), bytes.size());
    return stored;
  }

  // The table, with a few blocks that are allocated and freed again.
  void Fill() {
    for (int i = 0; i < 40; ++i)
      blocks_.push_back(Store("key" + std::to_string(i), std::string(i * 20, 'v')));
    blocks_.push_back(Store("extent", std::string(11'000, 'v')));
    std::vector<Stored> garbage;
    for (int i = 0; i < 20; ++i)
      garbage.push_back(Store("garbage" + std::to_string(i), std::string(i * 30, 'g')));
    for (const Stored& one : garbage) pool_client_->allocator(kNode).Retire(one.at, one.bytes, 0);
    TableSpec spec;
    spec.name = "users";
    spec.engine = "test";
    spec.nodes = {kNode};
    Catalog catalog(pool_client_->member(kNode));
    Op op(*client_, OpKind::kMaintenance);
    const Catalog::MakeRoots make = [this](Op&, TableInfo) { return RootAt(blocks_[0].at); };
    Must(fabric::Run(*client_, catalog.Create(op, spec, make)));
  }

  Reached Everything() {
    Reached reached;
    reached.BeginTable("users");
    for (const Stored& block : blocks_) reached.MarkBlock(block.at, block.bytes);
    return reached;
  }

  FsckReport Check(const Reached& reached, FsckOptions options = {}) {
    if (observer_ == nullptr) observer_ = Must(world_.Connect());
    Op op(*observer_, OpKind::kMaintenance);
    FsckReport report = Must(fabric::Run(*observer_, Fsck(op, kNode, geometry_, reached, options)));
    EXPECT_EQ(report.bytes.Total(), geometry_.region_bytes) << "every byte is something, and one thing only";
    return report;
  }

  uint64_t BytesOfBlocks() const {
    const Carving carving(kNode, geometry_);
    uint64_t bytes = 0;
    for (const Stored& block : blocks_) {
      const BlockPosition position = *carving.Locate(block.at, block.bytes);
      bytes += position.is_extent() ? position.block * geometry_.chunk_bytes
                                    : carving.classes().shape(position.size_class).block_bytes;
    }
    return bytes;
  }

  std::byte* Memory(uint64_t offset) { return world_.memory(kNode).data() + offset; }
  uint64_t Word(uint64_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, Memory(offset), sizeof(word));
    return word;
  }
  void SetWord(uint64_t offset, uint64_t word) { std::memcpy(Memory(offset), &word, sizeof(word)); }
  // Of the first chunk with this state.
  uint64_t ChunkWithState(ChunkState state) {
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
      if (ChunkWord(Word(geometry_.chunk_word(chunk))).state() == state) return chunk;
    }
    ADD_FAILURE() << "no such chunk";
    return 0;
  }

  const Geometry geometry_;
  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<PoolClient> pool_client_;
  std::unique_ptr<fabric::Client> observer_;
  std::vector<Stored> blocks_;
};

std::string ToString(const FsckReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += finding.what + " -> " + finding.advice + "\n";
  return text;
}

::testing::AssertionResult Finds(const FsckReport& report, Severity severity, const std::string& what) {
  for (const Finding& finding : report.findings) {
    if (finding.severity == severity && finding.what.find(what) != std::string::npos &&
        !finding.advice.empty()) {
      return ::testing::AssertionSuccess();
    }
  }
  return ::testing::AssertionFailure() << "not found: " << what << "\n" << ToString(report);
}

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
  some.MarkBlock(blocks_[0].at, blocks_[0].bytes);
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

// ---- damage

TEST_F(FsckTest, ReachableAndFree) {
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
  reached.MarkBlock(blocks_[3].at, blocks_[3].bytes);
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

TEST_F(FsckTest, PointersToWhereNoBlockIs) {
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

TEST_F(FsckTest, BrokenExtents) {
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

TEST_F(FsckTest, BitsOfBlocksThatAChunkDoesNotHave) {
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

TEST_F(FsckTest, ChunkWordsThatNoClientWrites) {
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

TEST_F(FsckTest, Superblock) {
  *Memory(40) ^= std::byte{1};
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "the superblock: "));
  *Memory(40) ^= std::byte{1};
  *Memory(2000) = std::byte{1};
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "the first page has bits where none are used"));
}

TEST_F(FsckTest, Registry) {
  const uint64_t slot = geometry_.client_slot(2);
  SetWord(slot, 9);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "client slot 2 has bits where none are used"));
  SetWord(slot, ClientWord(ClientState::kLive, 1, fabric::ClientId{3}).word());
  SetWord(slot + kPulseOffset, 1000);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "has published epoch 1000, and the epoch is 0"));
  SetWord(slot + kPulseOffset, 0);
  EXPECT_TRUE(Check(Reached()).ok());
  SetWord(slot + 40, 1);
  EXPECT_TRUE(Finds(Check(Reached()), Severity::kDamage, "client slot 2 has bits where none are used"));
}

TEST_F(FsckTest, LocksAndHalfMadeTables) {
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

TEST_F(FsckTest, NameThatStandsTwice) {
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
        reached.MarkBlock(at, random.LogUniform(100'000));
      }
    }
    EXPECT_FALSE(Check(reached).ok());
  }
}

}  // namespace
}  // namespace farside::pool
