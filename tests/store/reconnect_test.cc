// A session that is cut off in the middle of a call whose trips end in Poll, as those over a network do.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/region/open.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::store {
namespace {

// What all clients of the fabric below share.
struct Script {
  int trips_until_cut = -1;  // that are posted before `cut` is called; -1: it is not
  std::function<void()> cut;
  bool loses = false;  // the trip before which it is called fails: its node is lost
  std::function<Status()> connect = [] { return OkStatus(); };  // before a client connects
};

// Executes trips in Poll, and must not be destroyed inside of it.
class PolledClient final : public WrappedClient {
 public:
  PolledClient(std::unique_ptr<fabric::Client> polled, Script& script)
      : WrappedClient(std::move(polled)), script_(script) {
    inner().set_concurrency(2);
  }
  ~PolledClient() override { EXPECT_FALSE(polling_) << "a client was destroyed inside of its Poll"; }

  using WrappedClient::Start;
  bool Start(fabric::Trip& trip) override {
    if (script_.trips_until_cut < 0 || script_.trips_until_cut-- > 0) return inner().Start(trip);
    script_.cut();
    if (!script_.loses) return inner().Start(trip);
    trip.Fail(Error(ErrorCode::kUnavailable, "the node did not answer"));
    return true;
  }
  bool Poll() override {
    polling_ = true;
    const bool progress = inner().Poll();
    polling_ = false;
    return progress;
  }

 private:
  Script& script_;
  bool polling_ = false;
};
using PolledFabric = WrappedFabric<PolledClient, Script>;

class FabricThatMayNotConnect final : public fabric::Fabric {
 public:
  FabricThatMayNotConnect(std::unique_ptr<fabric::Fabric> inner, Script& script)
      : inner_(std::move(inner), script), script_(script) {}

  std::string_view name() const override { return inner_.name(); }
  std::span<const uint64_t> region_bytes() const override { return inner_.region_bytes(); }
  Result<std::unique_ptr<fabric::Client>> Connect() override {
    if (Status reached = script_.connect(); !reached.ok()) return reached.error();
    return inner_.Connect();
  }

 private:
  PolledFabric inner_;
  Script& script_;
};

class ReconnectTest : public testing::Test {
 protected:
  ReconnectTest() {
    PoolStateOptions options;
    options.open.clock = &clock_;
    options.keeper = false;
    std::unique_ptr<pool::OpenedPool> opened = Must(pool::OpenPool("embedded:?size=16MiB", options.open));
    opened->fabric = std::make_unique<FabricThatMayNotConnect>(std::move(opened->fabric), script_);
    state_ = Must(PoolState::Serve(std::move(opened), options));
    pool_.emplace(state_);
    table_.emplace(Must(pool_->CreateTable("t")));
    session_.emplace(Must(pool_->NewSession()));
    script_.cut = [this] { Fence(); };
    Must(session_->Put(*table_, "k", "v"));
  }

  fabric::ClientId Id() { return Access::StateOf(*session_).registration().client().id(); }
  void Fence() {
    const std::unique_ptr<fabric::Client> fencer = Must(state_->fabric().Connect());
    fabric::Op op(*fencer, fabric::OpKind::kMaintenance);
    Must(fabric::Run(*fencer, fabric::FenceEverywhere(op, Id())));
  }

  Script script_;
  TickingClock clock_;
  std::shared_ptr<PoolState> state_;
  std::optional<Pool> pool_;
  std::optional<Table> table_;
  std::optional<farside::Session> session_;
};

TEST_F(ReconnectTest, ASessionThatIsCutOffAtAnyTrip_JoinsAnew_OutsideOfTheOldClientsPoll) {
  // Given a session that is to sync before its next operation. When it is cut off before a trip of the sync,
  // or of the operation. Expect that the operation is done, by a new client, and that the old one was not
  // destroyed while it was polled.
  for (const bool syncs : {true, false}) {
    for (int trips = 0; trips < (syncs ? 2 : 1); ++trips) {
      const fabric::ClientId before = Id();
      if (syncs) Access::StateOf(*session_).RequestSync();
      script_.trips_until_cut = trips;
      EXPECT_EQ(Must(session_->Get(*table_, "k")), "v");
      EXPECT_EQ(script_.trips_until_cut, -1) << "the operation took fewer trips";
      EXPECT_NE(Id(), before);
    }
  }
}

TEST_F(ReconnectTest, ASessionThatHasWaitedForItsNodes_LeavesItToItsNextOperationToConnect) {
  // Given a session that is to sync before its next operation, and that loses its nodes in the sync: after a
  // moment, and after a part of a lease.
  script_.loses = true;
  const Nanos lease = state_->client_options().lease.lease;
  for (const Nanos hang : {lease / 8, lease / 3}) {
    const fabric::ClientId before = Id();
    script_.cut = [&] { clock_.Advance(hang); };
    Access::StateOf(*session_).RequestSync();
    script_.trips_until_cut = 0;
    // Expect that the operation connects anew, or that it ends, and the next one connects: else the time for
    // which nodes hang, and the time that it takes to connect to nodes that hang, add up.
    const Result<std::optional<std::string>> got = session_->Get(*table_, "k");
    EXPECT_EQ(got.ok(), hang < lease / 4);
    if (!got.ok()) {
      EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable) << got.error().ToString();
      EXPECT_EQ(Id(), before);
      EXPECT_EQ(Must(session_->Get(*table_, "k")), "v");
    }
    EXPECT_NE(Id(), before);
  }
}

TEST_F(ReconnectTest, ABatchWhoseNodesAllHang_WaitsForThemOnce) {
  // Given a session that has lost its nodes, and that waits for half of a lease when it tries to connect
  // anew.
  const Nanos lease = state_->client_options().lease.lease;
  int attempts = 0;
  Access::StateOf(*session_).registration().Break();
  script_.connect = [&] {
    ++attempts;
    clock_.Advance(lease / 2);
    return Status(Error(ErrorCode::kUnavailable, "no node answers"));
  };
  // When it gets many records.
  constexpr size_t kItems = 300;
  std::vector<std::string> keys;
  for (size_t i = 0; i < kItems; ++i) keys.push_back("key-" + std::to_string(i));
  std::vector<GetItem> items(kItems);
  for (size_t i = 0; i < kItems; ++i) items[i].key = keys[i];
  const Nanos began = clock_.Now();
  const Status got = session_->MultiGet(*table_, items);
  // Expect that it has tried once, not for every record, and says why for each of them.
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(attempts, 1);
  EXPECT_LT(clock_.Now() - began, lease);
  for (const GetItem& item : items) EXPECT_FALSE(item.found.ok());
  // And that it connects when the nodes are back.
  script_.connect = [] { return OkStatus(); };
  clock_.Advance(lease);
  EXPECT_TRUE(session_->MultiGet(*table_, items).ok());
}

}  // namespace
}  // namespace farside::store
