// A session whose completion is lost: what it says then, and how it goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pool/region/open.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::store {
namespace {

// What all clients of the fabric below share: the next trip that changes something is lost, before or after
// it took effect.
enum class Lose { kNothing, kBeforeItsEffect, kAfterItsEffect };

// Like the client that it has, until a completion is lost; broken from then on, as every client is.
class LosingClient final : public WrappedClient {
 public:
  LosingClient(std::unique_ptr<fabric::Client> reliable, Lose& lose)
      : WrappedClient(std::move(reliable)), lose_(lose) {}

  using WrappedClient::Start;
  bool Start(fabric::Trip& trip) override {
    if (broken_) {
      trip.Fail(Error(ErrorCode::kUnavailable, "the connection was lost; reconnect and retry"));
      return true;
    }
    const bool changes = std::any_of(trip.verbs.begin(), trip.verbs.end(),
                                     [](const fabric::Verb& verb) { return fabric::Mutates(verb.kind); });
    if (!changes || lose_ == Lose::kNothing) return inner().Start(trip);
    if (std::exchange(lose_, Lose::kNothing) == Lose::kAfterItsEffect) {
      fabric::Trip executed;
      executed.verbs = trip.verbs;
      executed.order = trip.order;
      EXPECT_TRUE(inner().Start(executed));
    }
    broken_ = true;
    trip.Fail(fabric::LostCompletion(trip.verbs, "the connection was lost"));
    return true;
  }

 private:
  Lose& lose_;
  bool broken_ = false;
};
using LosingFabric = WrappedFabric<LosingClient, Lose>;

class LostCompletionTest : public testing::Test {
 protected:
  LostCompletionTest() {
    PoolStateOptions options;
    options.open.clock = &clock_;
    options.keeper = false;
    std::unique_ptr<pool::OpenedPool> opened = Must(pool::OpenPool("embedded:?size=4MiB", options.open));
    opened->fabric = std::make_unique<LosingFabric>(std::move(opened->fabric), lose_);
    state_ = Must(PoolState::Serve(std::move(opened), options));
    pool_.emplace(state_);
    table_.emplace(Must(pool_->CreateTable("t")));
    session_.emplace(Must(pool_->NewSession()));
    Must(session_->Put(*table_, "k", "before"));
  }

  Lose lose_ = Lose::kNothing;
  TickingClock clock_;
  std::shared_ptr<PoolState> state_;
  std::optional<Pool> pool_;
  std::optional<Table> table_;
  std::optional<farside::Session> session_;
};

TEST_F(LostCompletionTest, AnOperationThatMayHaveHappened_SaysSo_AndIsNotRepeated) {
  for (const Lose lose : {Lose::kBeforeItsEffect, Lose::kAfterItsEffect}) {
    // Given a session. When the completion of an increment is lost.
    Must(session_->Put(*table_, "n", std::string(8, '\0')));
    lose_ = lose;
    const Result<uint64_t> added = session_->Increment(*table_, "n", 1);
    // Expect that it says so, and that the next operation works, as a new client. It may have to wait for the
    // lock of the client that is gone.
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error().code(), ErrorCode::kOutcomeUnknown);
    EXPECT_LE(Must(session_->Increment(*table_, "n", 0)), 1u);
    EXPECT_EQ(Must(session_->Get(*table_, "k")), "before");
  }
}

TEST_F(LostCompletionTest, ABatch_SaysWhichItemsAreInDoubt) {
  // Given a batch. When a completion is lost in the middle. Expect that what is done, what is not, and what
  // is in doubt is told apart, and that the ones that are done are there.
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) keys.push_back(std::to_string(i));
  std::vector<PutItem> puts;
  for (const std::string& key : keys) puts.push_back({.key = key, .value = key});
  lose_ = Lose::kAfterItsEffect;
  EXPECT_FALSE(session_->MultiPut(*table_, puts).ok());
  size_t in_doubt = 0;
  for (const PutItem& item : puts) {
    if (item.status.ok()) {
      EXPECT_EQ(Must(session_->Get(*table_, item.key)), item.key);
    } else if (item.status.error().code() == ErrorCode::kOutcomeUnknown) {
      ++in_doubt;
    }
  }
  EXPECT_EQ(in_doubt, 1u);
}

}  // namespace
}  // namespace farside::store
