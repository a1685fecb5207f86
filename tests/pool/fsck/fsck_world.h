// What the tests of fsck share: a pool with a table, and whether a report has a finding.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "pool/catalog/catalog.h"
#include "pool/client.h"
#include "pool/fsck/fsck.h"
#include "pool/memory/block.h"
#include "pool/memory/carving.h"
#include "pool/region/superblock.h"

namespace farside::pool {

inline constexpr fabric::NodeId kNode{0};

struct Stored {
  fabric::FarAddr at;
  uint64_t bytes = 0;
};

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
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    ClientOptions options;
    options.lease.lease = std::chrono::microseconds(300);
    pool_client_ = Must(fabric::Run(*client_, PoolClient::Join(op, *client_, {geometry_}, options)));
    pool_client_->set_walk([](fabric::Op&, Reach&) { return NothingToWalk(); });
  }
  void Leave() {
    {
      fabric::Op op(*client_, fabric::OpKind::kMaintenance);
      Must(fabric::Run(*client_, pool_client_->Leave(op)));
    }
    pool_client_.reset();
    client_.reset();
  }

  Stored Store(const std::string& key, const std::string& value) {
    Stored stored;
    stored.bytes = BlockBytes(key.size(), value.size());
    fabric::Op op(*client_, fabric::OpKind::kInsert);
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
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    const Catalog::MakeRoots make = [this](fabric::Op&, TableInfo) { return RootAt(blocks_[0].at); };
    Must(fabric::Run(*client_, catalog.Create(op, spec, make)));
  }

  Reached Everything() {
    Reached reached;
    reached.BeginTable("users");
    for (const Stored& block : blocks_) reached.MarkBlock(block.at, block.bytes, 0);
    return reached;
  }

  FsckReport Check(const Reached& reached, FsckOptions options = {}) {
    if (observer_ == nullptr) observer_ = Must(world_.Connect());
    fabric::Op op(*observer_, fabric::OpKind::kMaintenance);
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

  static Task<std::vector<fabric::FarAddr>> RootAt(fabric::FarAddr root) {
    co_return std::vector<fabric::FarAddr>{root};
  }
  static Task<Done> NothingToWalk() { co_return Done{}; }

  const Geometry geometry_;
  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<PoolClient> pool_client_;
  std::unique_ptr<fabric::Client> observer_;
  std::vector<Stored> blocks_;
};

inline std::string ToString(const FsckReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += finding.what + " -> " + finding.advice + "\n";
  return text;
}

inline ::testing::AssertionResult Finds(const FsckReport& report, Severity severity,
                                        const std::string& what) {
  for (const Finding& finding : report.findings) {
    if (finding.severity == severity && finding.what.find(what) != std::string::npos &&
        !finding.advice.empty()) {
      return ::testing::AssertionSuccess();
    }
  }
  return ::testing::AssertionFailure() << "not found: " << what << "\n" << ToString(report);
}

}  // namespace farside::pool
