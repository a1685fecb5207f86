// A pool of which a memory node is out of reach for good, and clients that wait for a dead one.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "index/kit/retry_policy.h"
#include "pool/catalog/catalog.h"
#include "pool/fsck/fsck.h"
#include "pool/members/lock.h"
#include "pool/region/layout.h"
#include "pool/region/open.h"
#include "pool/region/superblock.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::store {
namespace {

constexpr fabric::NodeId kFirst{0};
constexpr fabric::NodeId kSecond{1};

// What all clients of the fabric below share.
struct Script {
  std::atomic<bool> second_is_lost = false;  // the keeper's probe looks, too
  int trips_until_loss = -1;                 // that are posted before it is lost; -1: it stays as it is
};

// A client that has noticed a loss does not reach the node any more; another client may.
class ClientThatMayLoseANode final : public WrappedClient {
 public:
  ClientThatMayLoseANode(std::unique_ptr<fabric::Client> whole, Script& script)
      : WrappedClient(std::move(whole)), script_(script) {}

  bool Reaches(fabric::NodeId node) const override {
    lost_ |= script_.second_is_lost;
    return node == kFirst || !lost_;
  }
  using WrappedClient::Start;
  bool Start(fabric::Trip& trip) override {
    if (script_.trips_until_loss >= 0 && script_.trips_until_loss-- == 0) script_.second_is_lost = true;
    for (const fabric::Verb& verb : trip.verbs) {
      if (Reaches(verb.at.node)) continue;
      trip.Fail(Error(ErrorCode::kUnavailable, "the node is lost"));
      return true;
    }
    return WrappedClient::Start(trip);
  }

 private:
  Script& script_;
  mutable bool lost_ = false;
};
using FabricThatMayLoseANode = WrappedFabric<ClientThatMayLoseANode, Script>;

class LostNodeTest : public testing::Test {
 protected:
  LostNodeTest() : state_(MakePool()) {
    pool_.emplace(state_);
    sleeper_.emplace(Must(pool_->NewSession()));
    waiter_.emplace(Must(pool_->NewSession()));
  }

  std::shared_ptr<PoolState> MakePool() {
    PoolStateOptions options;
    options.open.clock = &clock_;
    options.keeper = false;
    std::unique_ptr<pool::OpenedPool> opened =
        Must(pool::OpenPool("embedded:?size=16MiB&nodes=2", options.open));
    opened->fabric = std::make_unique<FabricThatMayLoseANode>(std::move(opened->fabric), script_);
    return Must(PoolState::Serve(std::move(opened), options));
  }
  static pool::PoolClient& ClientOf(farside::Session& session) {
    return Access::StateOf(session).registration().pool();
  }
  Nanos lease() const { return state_->client_options().lease.lease; }
  Result<pool::Acquired> Acquire(farside::Session& session) {
    pool::PoolClient& pool = ClientOf(session);
    fabric::Op op(pool.client(), fabric::OpKind::kMaintenance);
    return fabric::Run(pool.client(), pool::AcquireLock(op, pool.member(kFirst), pool::kCatalogLockOffset));
  }
  // What becomes of an operation that has waited for so long, and met a lock once more.
  Status Retry(Nanos waited) {
    pool::PoolClient& pool = ClientOf(*waiter_);
    const index::RetryPolicy policy(pool, kFirst, Nanos(1000), pool.known_catalog_changes(),
                                    pool.client().Now() - waited);
    fabric::Op op(pool.client(), fabric::OpKind::kUpdate);
    return fabric::Run(pool.client(), policy.AwaitRetry(op, Error(ErrorCode::kContended, "it is locked")));
  }

  static std::string KeyOf(int record) { return "key-" + std::to_string(record); }
  // A table with records on both nodes, and with its entry in the catalog of `home`.
  std::string MakeTable(fabric::NodeId home) {
    std::string name;
    for (int i = 0; name.empty() || pool::HomeOf(name, 2) != home; ++i) name = "table-" + std::to_string(i);
    const Table table = Must(pool_->CreateTable(name));
    for (int record = 0; record < kRecords; ++record)
      Must(waiter_->Put(table, KeyOf(record), std::string(kValueBytes, 'v')));
    return name;
  }
  bool IsWhole(const std::string& name) {
    const Table table = Must(pool_->OpenTable(name));
    int found = 0;
    for (int record = 0; record < kRecords; ++record)
      found += Must(waiter_->Get(table, KeyOf(record))).has_value();
    return found == kRecords;
  }
  // The second node is back, and all sessions have found it.
  void BringBack() {
    state_->Keep();  // by now all have missed it
    script_.second_is_lost = false;
    const auto is_whole = [](farside::Session& session) {
      const Registration& registration = Access::StateOf(session).registration();
      return !registration.degraded() || registration.broken();  // its next operation registers anew
    };
    for (int round = 0; round < kMostRounds; ++round) {
      state_->Keep();
      const bool all = is_whole(*sleeper_) && is_whole(*waiter_);
      // The pool's own session drops a table only if it reaches all nodes.
      if (all && pool_->OpenOrCreateTable("whole").ok() && pool_->DropTable("whole").ok()) return;
    }
    FAIL() << "some session has not found the node";
  }
  // Clients that have lost the node are fenced by and by, and what they have left is swept.
  void BuryTheDead() {
    for (int round = 0; round < 16; ++round) {
      clock_.Advance(lease() / 8);
      state_->Keep();
    }
  }
  // Nothing is reachable or held when all clients have left.
  void ExpectNoLeaks() {
    BuryTheDead();
    sleeper_.reset();
    waiter_.reset();
    Must(pool_->Close());
    const std::unique_ptr<fabric::Client> client = Must(state_->fabric().Connect());
    fabric::Op op(*client, fabric::OpKind::kMaintenance);
    for (const fabric::NodeId node : {kFirst, kSecond}) {
      const pool::Geometry geometry = Must(fabric::Run(*client, pool::ReadGeometry(op, node)));
      pool::FsckOptions options;
      options.no_client_runs = true;
      const pool::FsckBytes bytes =
          Must(fabric::Run(*client, pool::Fsck(op, node, geometry, pool::Reached(), options))).bytes;
      EXPECT_EQ(bytes.held + bytes.abandoned + bytes.leaked + bytes.damaged, 0u) << Index(node);
      EXPECT_GT(bytes.free_chunks, 0u);
    }
  }

  static constexpr int kRecords = 100;
  static constexpr size_t kValueBytes = 4000;
  static constexpr int kMostRounds = 100'000;

  Script script_;
  TickingClock clock_{std::chrono::milliseconds(50)};
  std::shared_ptr<PoolState> state_;
  std::optional<Pool> pool_;
  std::optional<farside::Session> sleeper_;
  std::optional<farside::Session> waiter_;
};

TEST_F(LostNodeTest, ALockOfTheCatalog_IsWaitedForForTwoLeases) {
  // Given a client that has locked the catalog and sleeps, and a node that is lost, so that no client can be
  // fenced. When another client wants the lock.
  ASSERT_TRUE(Acquire(*sleeper_).ok());
  script_.second_is_lost = true;
  const Nanos began = clock_.Now();
  const Result<pool::Acquired> acquired = Acquire(*waiter_);
  // Expect that it waits for two leases, and not for as long as the node is lost; and that it has the lock
  // when the node is back.
  ASSERT_FALSE(acquired.ok());
  EXPECT_EQ(acquired.error().code(), ErrorCode::kUnavailable) << acquired.error().ToString();
  const Nanos waited = clock_.Now() - began;
  EXPECT_GE(waited, 2 * lease());
  EXPECT_LT(waited, 3 * lease());
  script_.second_is_lost = false;
  farside::Session later = Must(pool_->NewSession());
  EXPECT_EQ(Must(Acquire(later)), pool::Acquired::kTakenOver);
}

TEST_F(LostNodeTest, AnOperationThatMeetsALock_TriesForTwoLeases) {
  // Given a pool whose nodes are all there. Expect that an operation that has waited for three leases tries
  // again: a dead client costs some.
  EXPECT_TRUE(Retry(3 * lease()).ok());
  // When a node is lost. Expect that it ends, and that one that has waited for one lease does not.
  script_.second_is_lost = true;
  EXPECT_TRUE(Retry(lease()).ok());
  const Status ended = Retry(3 * lease());
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code(), ErrorCode::kUnavailable) << ended.error().ToString();
}

TEST_F(LostNodeTest, AClientThatHasNeverReachedANode_MakesNoTableThere) {
  // Given a pool whose second node is lost from the beginning. When a table is made on both nodes. Expect an
  // error: the client does not even know how large that node is.
  script_.second_is_lost = true;
  farside::Pool pool(MakePool());
  std::string name;
  for (int i = 0; name.empty() || pool::HomeOf(name, 2) != kFirst; ++i) name = "table-" + std::to_string(i);
  const Result<Table> made = pool.CreateTable(name);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::kUnavailable) << made.error().ToString();
}

TEST_F(LostNodeTest, ADropWithoutANode_IsRefused_AndTheTableIsWhole) {
  for (const fabric::NodeId home : {kFirst, kSecond}) {
    // Given a table on two nodes, of which the second is lost. When the table is dropped.
    const std::string name = MakeTable(home);
    script_.second_is_lost = true;
    const Nanos began = clock_.Now();
    const Status dropped = pool_->DropTable(name);
    // Expect that nothing is dropped, and that the pool can go on.
    ASSERT_FALSE(dropped.ok());
    EXPECT_EQ(dropped.error().code(), ErrorCode::kUnavailable) << dropped.error().ToString();
    EXPECT_LT(clock_.Now() - began, 3 * lease());
    BringBack();
    EXPECT_TRUE(IsWhole(name));
    Must(pool_->DropTable(name));
  }
}

TEST_F(LostNodeTest, ADropThatLosesANode_EndsSoon_AndLeaksNothing) {
  // Given a table on two nodes. When the second is lost before a trip of its drop.
  int whole = 0;
  int gone = 0;
  for (const fabric::NodeId home : {kFirst, kSecond}) {
    bool ended = false;
    for (int trips = 0; !ended; trips += 1 + trips / 6) {
      BuryTheDead();  // no drop waits for them
      const std::string name = MakeTable(home);
      script_.trips_until_loss = trips;
      const Nanos began = clock_.Now();
      const Status dropped = pool_->DropTable(name);
      // Expect that the drop ends soon, and that the table is whole or gone when the node is back; and that
      // it is gone if the drop has said so.
      EXPECT_LT(clock_.Now() - began, 3 * lease()) << trips;
      ended = !script_.second_is_lost;
      script_.trips_until_loss = -1;
      if (!ended) BringBack();
      const bool there = pool_->OpenTable(name).ok();
      ++(there ? whole : gone);
      EXPECT_FALSE(there && dropped.ok()) << trips;
      const bool refused = !dropped.ok() && dropped.error().code() == ErrorCode::kUnavailable;
      EXPECT_TRUE(there || !refused) << trips;
      if (!there) continue;
      EXPECT_TRUE(IsWhole(name)) << trips;
      Must(pool_->DropTable(name));
    }
  }
  EXPECT_GT(whole, 2);
  EXPECT_GT(gone, 2);
  // And that all memory comes back, with the memory of the clients that have lost the node.
  ExpectNoLeaks();
}

}  // namespace
}  // namespace farside::store
