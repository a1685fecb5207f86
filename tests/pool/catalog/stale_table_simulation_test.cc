// Tables that a client has dropped and died, under the feet of clients that have them open.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/catalog/layout.h"
#include "pool/fsck/fsck.h"
#include "pool/region/superblock.h"
#include "store/registration.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {
namespace {

using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;

constexpr NodeId kNode{0};
constexpr char kTable[] = "t";

// A session with the table open.
struct User {
  template <class Start>
  auto Try(Start start) {
    Op op(*client, OpKind::kMaintenance);
    return fabric::Run(*client, start(op));
  }

  explicit User(fabric::sim::SimFabric& world)
      : engine(*index::reference::MakeReferenceEngine({{"buckets", "1"}})),
        client(std::move(*world.Connect())) {
    ClientOptions options;
    options.lease.lease = kTestLease;
    const index::FindEngine find = [made = engine](std::string_view, const index::OptionMap&) {
      return Result<std::shared_ptr<index::Engine>>(made);
    };
    session = std::move(*Try([&](Op& op) { return store::Registration::Join(op, *client, find, options); }));
    table.emplace(std::move(*Try([&](Op& op) {
      return session->tables().CreateOrOpen(op, kTable, std::string(engine->name()), {});
    })));
  }

  Task<Done> Put(Op& op, std::string key) {
    co_await session->tables().Validate(op, *table);
    co_await table->index->Put(op, key, "value");
    co_return Done{};
  }
  Task<Done> Live(Op& op, bool& enough) {
    while (!enough) {
      co_await session->pool().Maintain(op);
      co_await op.Pause(kTestLease / 16);
    }
    co_return Done{};
  }
  Result<Done> Maintain() {
    return Try([&](Op& op) { return session->pool().Maintain(op); });
  }
  // A sign of life, and nothing else.
  Result<Done> Sync() {
    return Try([&](Op& op) { return session->pool().Sync(op, /*raise=*/false); });
  }
  Result<Done> Leave() {
    return Try([&](Op& op) { return session->Leave(op); });
  }

  std::shared_ptr<index::Engine> engine;
  std::unique_ptr<fabric::Client> client;
  std::unique_ptr<store::Registration> session;
  std::optional<index::OpenTable> table;
};

TEST(PoolStaleTable, WrittenToWhileItsWriterSweeps_NothingIsLost) {
  // Given a table whose dropper has died before it could say so, and a client that has it open and has heard
  // of the death.
  // When that client writes to the table while it sweeps, and does not know of the drop yet.
  // Expect that every byte is free when it has left.
  fabric::sim::SimOptions sim = PoolCalm();
  sim.region_bytes = {256 * 1024};
  fabric::sim::SimFabric world(std::move(sim));
  const Geometry geometry =
      *FormatVolatile(world.memory(kNode), {.client_slots = 4, .chunk_bytes = 4096}, {1, 1});
  const auto table_state = [&] {
    return TableWord(LoadU64(world.memory(kNode).data() + geometry.table_entry(0))).state();
  };

  User writer(world);
  User witness(world);
  witness.session->pool().set_walk({});
  uint32_t dead_slot = 0;
  ASSERT_TRUE(writer.Maintain().ok());
  ASSERT_TRUE(writer.Try([&](Op& op) { return writer.Put(op, "a"); }).ok());
  {
    User dropper(world);
    dead_slot = dropper.session->pool().member(kNode).self().slot();
    Op op(*dropper.client, OpKind::kMaintenance);
    Task<Done> drop = dropper.session->tables().Drop(op, kTable);
    drop.Start();
    while (table_state() != TableState::kDropping) ASSERT_TRUE(world.Step());
    world.Crash(dropper.client->id());
  }
  const auto dead_slot_state = [&] {
    return ClientWord(LoadU64(world.memory(kNode).data() + geometry.client_slot(dead_slot))).state();
  };
  while (dead_slot_state() != ClientState::kFenced) {
    ASSERT_TRUE(writer.Sync().ok());
    ASSERT_TRUE(witness.Maintain().ok());
  }
  ASSERT_TRUE(witness.Leave().ok());

  bool enough = false;
  Op op(*writer.client, OpKind::kMaintenance);
  Task<Done> live = writer.Live(op, enough);
  live.Start();
  while (table_state() != TableState::kFree)
    ASSERT_TRUE(world.Step());  // the walk of its sweep has come to it
  Op putting(*writer.client, OpKind::kUpdate);
  Task<Done> put = writer.Put(putting, "b");
  put.Start();
  const Nanos end = world.Now() + 10 * kTestLease;
  while (world.Now() < end) ASSERT_TRUE(world.Step());
  enough = true;
  while (!live.done()) ASSERT_TRUE(world.Step());
  ASSERT_TRUE(live.TakeResult().ok());
  ASSERT_TRUE(put.TakeResult().ok()) << "it did not know";
  EXPECT_EQ(dead_slot_state(), ClientState::kFree);
  ASSERT_TRUE(writer.Leave().ok());

  const FsckOptions options{.no_client_runs = true};
  const FsckReport report = *fabric::Run(*writer.client, Fsck(op, kNode, geometry, Reached(), options));
  EXPECT_TRUE(report.ok()) << report.findings.back().what;
  EXPECT_EQ(report.bytes.free_chunks, geometry.chunks() * geometry.chunk_bytes);
}

}  // namespace
}  // namespace farside::pool
