// Sessions: what is an error, tables that go away, signs of life, being cut off, leaving.
#include "farside/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/quiet_pool.h"

namespace farside::store {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class SessionTest : public StoreTest {
 protected:
  farside::Session session_ = Must(pool_.NewSession());
};

// ---- tables ------------------------------------------------------------------------------------------

TEST_F(SessionTest, ATableOfAnotherPool_IsRefused) {
  // Given two pools with a table each. When a session of one is given the table of the other. Expect a clear
  // error.
  Pool other(OpenQuietPool(&clock_));
  const Table stranger = Must(other.CreateTable("t"));
  const Status put = session_.Put(stranger, "k", "v");
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(put.error().message(), HasSubstr("another pool"));
}

TEST_F(SessionTest, TwoHandlesOfOneTable_ShowTheSameRecords) {
  // Given a table that is opened twice. When a record is put through one. Expect it through the other.
  const Table again = Must(pool_.OpenTable("t"));
  Must(session_.Put(table_, "k", "v"));
  EXPECT_EQ(Must(session_.Get(again, "k")), "v");
}

TEST_F(SessionTest, HandlesThatComeAndGo_AreNotMixedUp) {
  // Given many tables whose handles are dropped and opened again, so that their places in the session are
  // used again.
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) {
      const std::string name = "table-" + std::to_string(i);
      const Table table = Must(pool_.OpenOrCreateTable(name));
      Must(session_.Put(table, "name", name));
    }
  }
  // Expect that each has its own record.
  for (int i = 9; i >= 0; --i) {
    const std::string name = "table-" + std::to_string(i);
    EXPECT_EQ(Must(session_.Get(Must(pool_.OpenTable(name)), "name")), name);
  }
}

TEST(SessionDropTest, ATableThatIsDroppedUnderASession_IsNotFound_AlsoWhenItsNameIsUsedAgain) {
  // Given a session that has used a table. When the table is dropped, and made anew. Expect kNotFound for the
  // old handle, and an empty table for the new one.
  Pool pool = Must(Pool::Open("embedded:?size=4MiB", {.lease = std::chrono::milliseconds(100)}));
  const Table table = Must(pool.CreateTable("t"));
  farside::Session session = Must(pool.NewSession());
  Must(session.Put(table, "k", "v"));
  Must(pool.DropTable("t"));
  const Status put = session.Put(table, "k", "v");
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(put.error().message(), HasSubstr("dropped"));

  const Table anew = Must(pool.CreateTable("t"));
  EXPECT_EQ(session.Get(table, "k").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Must(session.Get(anew, "k")), std::nullopt);
  std::vector<GetItem> items = {{.key = "a"}, {.key = "b"}};
  EXPECT_EQ(session.MultiGet(table, items).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(items[1].found.error().code(), ErrorCode::kNotFound);
}

TEST(SessionKeeperTest, TablesAreOpenedAndClosed_WhileTheKeeperVisits) {
  // Given a keeper that comes as often as it can. When tables are opened, and their handles dropped, again
  // and again. Expect that all goes well: an open table ends when its session is not in use by the keeper.
  // (ThreadSanitizer looks closer.)
  Pool pool = Must(Pool::Open("embedded:?size=4MiB", {.lease = std::chrono::milliseconds(16)}));
  Must(pool.CreateTable("t"));
  for (int i = 0; i < 500; ++i) Must(pool.OpenTable("t"));
  Must(pool.Close());
}

// ---- misuse ------------------------------------------------------------------------------------------

TEST_F(SessionTest, AfterClose_EveryCallIsAnError) {
  // Given a session that was closed. Expect that every call says so.
  Must(session_.Close());
  EXPECT_THAT(session_.Put(table_, "k", "v").error().message(), HasSubstr("closed"));
  EXPECT_FALSE(session_.Stats(table_).ok());
  EXPECT_FALSE(session_.Close().ok());
  std::vector<GetItem> items = {{.key = "a"}};
  EXPECT_FALSE(session_.MultiGet(table_, items).ok());
}

Task<Done> CallTheSessionItself(farside::Session& session, const Table& table, Status& said) {
  said = session.Put(table, "k", "v");
  co_return Done{};
}

TEST_F(SessionTest, InsideOfATask_TheSynchronousFormIsRefused) {
  // When a task calls the session that runs it. Expect an error that names the other form, and no deadlock.
  Status said = OkStatus();
  Must(session_.Run(CallTheSessionItself(session_, table_, said)));
  ASSERT_FALSE(said.ok());
  EXPECT_EQ(said.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(said.error().message(), HasSubstr("Async()"));
}

TEST_F(SessionTest, ATaskThatNoSessionRuns_IsRefused) {
  // When a task of a session is started by hand. Expect an error that says what runs it.
  Task<Done> task = session_.Async().Put(table_, "k", "v");
  task.Start();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.TakeResult().error().message(), HasSubstr("Session::Run"));
}

// ---- signs of life -----------------------------------------------------------------------------------

TEST_F(SessionTest, AnIdleSession_IsKeptAlive) {
  // Given an idle session, and one that looks around. When three leases pass, and the keeper comes four times
  // in each. Expect that the idle one is still the client that it was.
  farside::Session idle = Must(pool_.NewSession());
  Must(idle.Put(table_, "k", "v"));
  const fabric::ClientId before = IdOf(idle);
  for (int visit = 0; visit < 12; ++visit) {
    clock_.Advance(seconds(10) / 4);
    state_->Keep();
  }
  EXPECT_EQ(Must(idle.Get(table_, "k")), "v");
  EXPECT_EQ(IdOf(idle), before);
}

TEST_F(SessionTest, ASessionThatIsSilentForALease_IsFenced_AndComesBack) {
  // Given a session that gives no signs of life, because it is in the middle of a call. When another one
  // looks around for longer than a lease. Expect that it is cut off, and that its next operation works all
  // the same.
  Must(session_.Put(table_, "k", "v"));
  const fabric::ClientId before = IdOf(session_);
  SessionState& silent = Access::StateOf(session_);
  Must(silent.BeginRunning(1));
  for (int visit = 0; visit < 12; ++visit) {
    clock_.Advance(seconds(10) / 4);
    state_->Keep();
  }
  silent.EndRunning();
  EXPECT_EQ(Must(session_.Get(table_, "k")), "v");
  EXPECT_NE(IdOf(session_), before);
}

TEST_F(SessionTest, ASessionInUse_IsAskedForASignOfLife) {
  // Given a session that the keeper finds in use. When its next operation runs. Expect that it has given the
  // sign.
  SessionState& state = Access::StateOf(session_);
  Must(session_.Put(table_, "k", "v"));
  const uint64_t before = session_.traffic().maintenance_trips;
  Must(state.BeginRunning(1));
  state_->Keep();
  state.EndRunning();
  EXPECT_EQ(session_.traffic().maintenance_trips, before);
  Must(session_.Put(table_, "k", "v"));
  EXPECT_GT(session_.traffic().maintenance_trips, before);
}

TEST_F(SessionTest, ATableGrows_ThoughOtherSessionsAreIdle) {
  // Given a table of one bucket, idle sessions, and a keeper that does not come. When records are inserted,
  // one by one and many at once. Expect that the table has grown with them: a client that waits for the idle
  // ones moves them on, and hardly anything went to the upper levels for want of room.
  const farside::Session idle = Must(pool_.NewSession());
  const auto share_above = [&] {
    double share = 0;
    for (const auto& [name, value] : Must(session_.Stats(table_)).details) {
      if (name == "share in level 2" || name == "share in level 3") share += value;
    }
    return share;
  };
  // A growth that is under way ends with the records that follow.
  int more = 0;
  const auto has_grown = [&] {
    const int most = more + 1000;
    while (share_above() >= 0.1 && more < most) {
      Must(session_.Put(table_, "more-" + std::to_string(++more), "v"));
    }
    return more < most;
  };
  for (int i = 0; i < 3000; ++i) Must(session_.Put(table_, "one-" + std::to_string(i), "v"));
  EXPECT_TRUE(has_grown());
  std::vector<std::string> keys;
  for (int i = 0; i < 9000; ++i) keys.push_back("many-" + std::to_string(i));
  std::vector<PutItem> items(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) items[i] = {.key = keys[i], .value = "v"};
  Must(session_.MultiPut(table_, items));
  EXPECT_TRUE(has_grown());
}

// ---- being cut off -----------------------------------------------------------------------------------

TEST_F(SessionTest, AFencedSession_JoinsAnew_AndRepeatsTheOperation) {
  // Given a session that is cut off before each operation. Expect that all of them work, each as a new
  // client.
  fabric::ClientId last = IdOf(session_);
  const auto cut_off = [&] {
    Fence(session_);
    EXPECT_EQ(IdOf(session_), last);
  };
  const auto expect_anew = [&] {
    EXPECT_NE(IdOf(session_), last);
    last = IdOf(session_);
  };
  cut_off();
  Must(session_.Put(table_, "k", "v"));
  expect_anew();
  cut_off();
  EXPECT_EQ(Must(session_.Get(table_, "k")), "v");
  expect_anew();
  cut_off();
  EXPECT_EQ(Must(session_.Increment(table_, "n", 3)), 3u);
  expect_anew();
  cut_off();
  EXPECT_EQ(Must(session_.Stats(table_)).records, 2u);
  expect_anew();
}

TEST_F(SessionTest, AFencedSession_GoesOnWithItsBatch) {
  // Given a session that is cut off. When it runs a batch, whose workers all find out. Expect that all items
  // are done, by one new client.
  std::vector<std::string> keys;
  for (int i = 0; i < 60; ++i) keys.push_back(std::to_string(i));
  std::vector<PutItem> puts;
  for (const std::string& key : keys) puts.push_back({.key = key, .value = key});
  Must(session_.Put(table_, "warm", "up"));
  Fence(session_);
  Must(session_.MultiPut(table_, puts));
  for (const std::string& key : keys) EXPECT_EQ(Must(session_.Get(table_, key)), key);
}

// Awaits two operations; the session is cut off in between.
Task<Done> CutOffInBetween(AsyncSession session, const Table& table, std::function<void()> cut_off) {
  co_await session.Put(table, "first", "1");
  cut_off();
  co_await session.Put(table, "second", "2");
  co_return Done{};
}

TEST_F(SessionTest, AFencedSession_GoesOnWithItsTask) {
  // Given a task of two operations. When the session is cut off between them. Expect that both are done.
  Must(session_.Run(CutOffInBetween(session_.Async(), table_, [this] { Fence(session_); })));
  EXPECT_EQ(Must(session_.Get(table_, "first")), "1");
  EXPECT_EQ(Must(session_.Get(table_, "second")), "2");
}

TEST_F(SessionTest, ASessionThatIsCutOff_ClosesWithoutAnError) {
  // Given a session that is cut off. When it is closed. Expect no error: others have what it had.
  Must(session_.Put(table_, "k", "v"));
  Fence(session_);
  EXPECT_TRUE(session_.Close().ok());
}

TEST_F(SessionTest, WhatAFencedSessionHad_IsFoundByTheKeeper) {
  // Given a session that is cut off, with memory that it had. When the keeper comes for some leases. Expect
  // that the slot of the dead is free again: only the pool and the new session are in the registry.
  Must(session_.Put(table_, "k", "v"));
  Must(session_.Delete(table_, "k"));
  Fence(session_);
  Must(session_.Put(table_, "k", "w"));
  const auto others = [this] {
    Registration& registration = Access::StateOf(session_).registration();
    fabric::Op op(registration.client(), fabric::OpKind::kMaintenance);
    return Must(fabric::Run(registration.client(),
                            registration.pool().member(fabric::NodeId{0}).LookAround(op)))
        .others;
  };
  EXPECT_EQ(others(), 2u);
  for (int visit = 0; visit < 100 && others() > 1; ++visit) {
    clock_.Advance(seconds(2));
    state_->Keep();
  }
  EXPECT_EQ(others(), 1u);
  EXPECT_EQ(Must(session_.Get(table_, "k")), "w");
}

// ---- leaving -----------------------------------------------------------------------------------------

TEST_F(SessionTest, Close_WaitsForReadersOnlyAsLongAsNeeded) {
  // Given a session that has deleted things, and idle sessions that have not moved since. When it is closed.
  // Expect that it leaves at once, by the clock, for it moves the others itself.
  farside::Session idle = Must(pool_.NewSession());
  Must(idle.Put(table_, "k", "v"));
  Must(session_.Delete(table_, "k"));
  const Nanos before = clock_.Now();
  EXPECT_TRUE(session_.Close().ok());
  EXPECT_LT(clock_.Now() - before, Nanos(seconds(10)) / 16);
}

TEST_F(SessionTest, ASessionMovesToAnotherThread_BetweenTwoCalls) {
  // Given a session. When one thread after the other uses it. Expect that it works for each.
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { Must(session_.Increment(table_, "n")); }).join();
  }
  EXPECT_EQ(Must(session_.Increment(table_, "n", 0)), 3u);
}

TEST_F(SessionTest, Traffic_CountsOperationsAndTheirTrips) {
  // Given a session. When it gets an absent key. Expect one operation more, and some trips, and bytes.
  Must(session_.Put(table_, "k", "v"));
  const Traffic before = session_.traffic();
  Must(session_.Get(table_, "k"));
  const Traffic after = session_.traffic();
  EXPECT_EQ(after.operations, before.operations + 1);
  EXPECT_GT(after.trips, before.trips);
  EXPECT_GT(after.bytes_read, before.bytes_read);
  EXPECT_EQ(after.maintenance_trips, before.maintenance_trips);
}

}  // namespace
}  // namespace farside::store
