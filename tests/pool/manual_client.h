// A client of a pool that a test drives step by step, with a table that is nothing but root words.
//
// A root word is the offset of a block of 64 bytes on the last node of the pool, or 0. The words stand on the
// first node, where the catalog would be, and walking the table is reading them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/run.h"
#include "pool/beats.h"
#include "pool/client.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {

class ManualClient {
 public:
  static constexpr fabric::NodeId kNode{0};
  static constexpr uint64_t kBlockBytes = kLine;
  static constexpr size_t kRoots = 8;
  // What counts as the birth of what it retires: the epoch of its pin, or the one that was published last.
  enum class Births : uint8_t { kPinned, kPublished };
  void set_births(Births births) { births_ = births; }

  explicit ManualClient(PoolRun& run, Nanos lease = kTestLease)
      : run_(run), lease_(lease), blocks_at_(BlocksAt(run)), client_(std::move(*run.world().Connect())) {}

  PoolClient& pool() { return *pool_; }
  fabric::Client& client() { return *client_; }
  Owner self() { return pool_->member(kNode).self(); }

  template <class Start>
  auto Try(Start start) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    return fabric::Run(*client_, start(op));
  }

  // As a coroutine, for callers that have something else to do meanwhile.
  Task<Done> Join(fabric::Op& op) {
    ClientOptions options;
    options.lease.lease = lease_;
    const std::vector<Geometry> geometries(run_.nodes(), run_.geometry());
    pool_ = co_await PoolClient::Join(op, *client_, geometries, options);
    WalkTheTable();
    co_return Done{};
  }
  Result<Done> Join() {
    return Try([&](fabric::Op& op) { return Join(op); });
  }
  Result<Done> Maintain() {
    return Try([&](fabric::Op& op) { return pool_->Maintain(op); });
  }
  Result<Done> Leave() {
    return Try([&](fabric::Op& op) { return pool_->Leave(op); });
  }
  // Gives up chunks and slot without a sync before, as if it had been done a moment ago.
  Result<Done> LeaveWithoutSync() {
    const Result<Done> given = Try([&](fabric::Op& op) { return pool_->allocator(kNode).LeaveAll(op); });
    if (!given.ok()) return given;
    return Try([&](fabric::Op& op) { return pool_->member(kNode).Leave(op); });
  }
  // Publishes a new block in an empty root.
  Result<Done> Publish(size_t root) {
    return Try([&](fabric::Op& op) { return Publish(op, root); });
  }
  Result<Done> Unlink(size_t root) {
    return Try([&](fabric::Op& op) { return Unlink(op, root); });
  }
  Result<Done> KeepUp() {
    return Try([&](fabric::Op& op) { return pool_->KeepUp(op); });
  }
  Result<bool> GoOffline() {
    return Try([&](fabric::Op& op) { return pool_->GoOffline(op); });
  }
  Result<Done> ComeOnline() {
    return Try([&](fabric::Op& op) { return pool_->ComeOnline(op); });
  }
  Result<Done> Sync(bool raise = false) {
    return Try([&](fabric::Op& op) { return pool_->Sync(op, raise); });
  }
  // Follows the root, and ends with a CAS of the block's first word, from 0 to 1, that no coroutine awaits.
  Result<Done> DetachCas(size_t root) {
    return Try([&](fabric::Op& op) { return DetachCas(op, root); });
  }
  // Where the block of the root is.
  uint64_t BlockOf(size_t root) { return run_.Word(RootAt(run_, root).offset); }
  void Wait(Nanos duration) {
    ASSERT_TRUE(Try([&](fabric::Op& op) { return PauseFor(op, duration); }).ok());
  }
  // The process is gone. What it had in flight may land until it is fenced.
  void Die() {
    run_.world().Crash(client_->id());
    pool_.reset();
    client_.reset();
  }

  static Task<Done> Walk(fabric::Op& op, PoolRun& run, Reach& reach) {
    const auto roots = co_await op.InOrder(fabric::Read<std::array<uint64_t, kRoots>>(RootAt(run, 0)));
    for (uint64_t offset : roots) {
      if (offset != 0) reach.Mark(fabric::FarAddr(BlocksAt(run), offset), kBlockBytes);
    }
    co_return Done{};
  }
  // It can repair after deaths, from now on. Every client can, unless a test says otherwise.
  void WalkTheTable() {
    pool_->set_walk([this](fabric::Op& walking, Reach& reach) { return NotedWalk(walking, reach); });
  }
  bool walking() const { return walking_; }
  // From now on a walk has so many steps, each of an eighth of a lease.
  void set_walk_steps(int steps) { walk_steps_ = steps; }
  int walks() const { return walks_; }

 private:
  static fabric::NodeId BlocksAt(const PoolRun& run) {
    return static_cast<fabric::NodeId>(static_cast<uint16_t>(run.nodes() - 1));
  }
  static fabric::FarAddr RootAt(PoolRun& run, size_t root) {
    return fabric::FarAddr(kNode, run.geometry().catalog() + root * 8);
  }

  Task<Done> Publish(fabric::Op& op, size_t root) {
    const PoolClient::Pin pin = pool_->Begin();
    const fabric::FarAddr block =
        co_await pool_->allocator(blocks_at_).Allocate(op, kBlockBytes, BlockUse::kRecords);
    co_await op.InOrder(fabric::WriteObject(RootAt(run_, root), block.offset));
    co_return Done{};
  }

  Task<Done> Unlink(fabric::Op& op, size_t root) {
    const PoolClient::Pin pin = pool_->Begin();
    const uint64_t offset = co_await op.InOrder(fabric::Read<uint64_t>(RootAt(run_, root)));
    co_await op.InOrder(fabric::WriteObject(RootAt(run_, root), uint64_t{0}));
    const uint64_t birth =
        births_ == Births::kPinned ? pin.epoch(blocks_at_) : pool_->published_epoch(blocks_at_);
    pool_->allocator(blocks_at_).Retire(fabric::FarAddr(blocks_at_, offset), kBlockBytes, birth);
    co_return Done{};
  }

  Task<Done> DetachCas(fabric::Op& op, size_t root) {
    const PoolClient::Pin pin = pool_->Begin();
    const uint64_t offset = co_await op.InOrder(fabric::Read<uint64_t>(RootAt(run_, root)));
    op.Detach(fabric::Order::kInOrder, fabric::Cas(fabric::FarAddr(blocks_at_, offset), 0, 1));
    co_return Done{};
  }

  Task<Done> NotedWalk(fabric::Op& op, Reach& reach) {
    walking_ = true;
    ++walks_;
    Beats beats(*pool_);
    for (int step = 0; step < walk_steps_; ++step) {
      co_await op.Pause(kTestLease / 8);
      if (beats.Due()) co_await beats.Beat(op);
    }
    co_await Walk(op, run_, reach);
    walking_ = false;
    co_return Done{};
  }

  static Task<Done> PauseFor(fabric::Op& op, Nanos duration) {
    co_await op.Pause(duration);
    co_return Done{};
  }

  PoolRun& run_;
  const Nanos lease_;
  const fabric::NodeId blocks_at_;
  Births births_ = Births::kPinned;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<PoolClient> pool_;
  bool walking_ = false;
  int walk_steps_ = 0;
  int walks_ = 0;
};

// How many chunks are not free.
inline uint64_t ChunksInUse(PoolRun& run) {
  uint64_t used = 0;
  for (uint64_t chunk = 0; chunk < run.geometry().chunks(); ++chunk) {
    used += run.Word(run.geometry().chunk_word(chunk)) != 0 ? 1 : 0;
  }
  return used;
}

}  // namespace farside::pool
