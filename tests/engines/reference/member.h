// A simulated pool of one node, and clients that have a reference table of one bucket open.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::index::reference {

// A world with one node, and a pool on it.
class World {
 public:
  explicit World(uint64_t seed) : World(seed, fabric::sim::Chaos::ForSeed(seed, false)) {}
  World(uint64_t seed, const fabric::sim::Chaos& chaos)
      : fabric_({.seed = seed, .region_bytes = {512 * 1024}, .chaos = chaos}) {
    EXPECT_TRUE(pool::FormatVolatile(fabric_.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2}).ok());
  }
  fabric::sim::SimFabric* operator->() { return &fabric_; }

 private:
  fabric::sim::SimFabric fabric_;
};

// A client of the pool that has the table of one bucket open.
class Member {
 public:
  explicit Member(World& world) : client_(std::move(*world->Connect())) {
    const Status joined = fabric::Run(*client_, Join());
    EXPECT_TRUE(joined.ok()) << joined.error().ToString();
  }

  fabric::Client& client() { return *client_; }
  bool crashed() const { return static_cast<const fabric::sim::SimClient&>(*client_).crashed(); }

  Task<Done> Put(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    co_await table_->index->Put(op, key, value);
    co_await KeepAlive();
    co_return Done{};
  }
  Task<bool> Insert(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    const bool inserted = co_await table_->index->Insert(op, key, value);
    co_await KeepAlive();
    co_return inserted;
  }
  Task<std::string> Get(std::string key) {
    fabric::Op op(*client_, fabric::OpKind::kSearch);
    std::string value;
    const bool found = co_await table_->index->Get(op, key, value);
    co_return found ? value : std::string("absent");
  }

  Task<Done> Maintain() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await session_->pool().Maintain(op);
    co_return Done{};
  }

 private:
  Task<Done> Join() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    const auto find = [](std::string_view, const OptionMap& options) { return MakeReferenceEngine(options); };
    pool::ClientOptions options;
    options.lease.lease = std::chrono::milliseconds(10);
    session_ = co_await store::Registration::Join(op, *client_, find, options);
    const OptionMap one_bucket = {{"buckets", "1"}};
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "t", "reference", one_bucket));
    // An operation that waits syncs, and ends if it learns of a change of the catalog: this one is known.
    session_->pool().RequestSync();
    co_await session_->pool().Maintain(op);
    co_return Done{};
  }
  Task<Done> KeepAlive() {
    if (session_->pool().MaintenanceDue()) co_await Maintain();
    co_return Done{};
  }

  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<OpenTable> table_;
};

}  // namespace farside::index::reference
