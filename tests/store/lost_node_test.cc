// A pool of which a memory node is out of reach for good, and clients that wait for a dead one.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "index/kit/retry_policy.h"
#include "pool/members/lock.h"
#include "pool/region/layout.h"
#include "pool/region/open.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::store {
namespace {

constexpr fabric::NodeId kFirst{0};
constexpr fabric::NodeId kSecond{1};

// What all clients of the fabric below share.
struct Script {
  bool second_is_lost = false;
};

class ClientThatMayLoseANode final : public WrappedClient {
 public:
  ClientThatMayLoseANode(std::unique_ptr<fabric::Client> whole, Script& script)
      : WrappedClient(std::move(whole)), script_(script) {}

  bool Reaches(fabric::NodeId node) const override { return node == kFirst || !script_.second_is_lost; }
  using WrappedClient::Start;
  bool Start(fabric::Trip& trip) override {
    for (const fabric::Verb& verb : trip.verbs) {
      if (Reaches(verb.at.node)) continue;
      trip.Fail(Error(ErrorCode::kUnavailable, "the node is lost"));
      return true;
    }
    return WrappedClient::Start(trip);
  }

 private:
  Script& script_;
};
using FabricThatMayLoseANode = WrappedFabric<ClientThatMayLoseANode, Script>;

class LostNodeTest : public testing::Test {
 protected:
  LostNodeTest() {
    PoolStateOptions options;
    options.open.clock = &clock_;
    options.keeper = false;
    std::unique_ptr<pool::OpenedPool> opened =
        Must(pool::OpenPool("embedded:?size=16MiB&nodes=2", options.open));
    opened->fabric = std::make_unique<FabricThatMayLoseANode>(std::move(opened->fabric), script_);
    state_ = Must(PoolState::Serve(std::move(opened), options));
    pool_.emplace(state_);
    sleeper_.emplace(Must(pool_->NewSession()));
    waiter_.emplace(Must(pool_->NewSession()));
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
  EXPECT_EQ(Must(Acquire(*waiter_)), pool::Acquired::kTakenOver);
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

}  // namespace
}  // namespace farside::store
