// Memory that comes back: sessions that are idle, pools that are full, tables that are dropped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "store/engines.h"
#include "store/registration.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/live_records.h"

namespace farside::store {
namespace {

class RoomTest : public StoreTest {
 protected:
  static std::string KeyOf(int number) { return "key-" + std::to_string(number); }
  // Puts until the pool is full; how many there were.
  static int Fill(Session& session, const Table& table) {
    const std::string value(4000, 'v');
    for (int i = 0;; ++i) {
      const Status put = session.Put(table, KeyOf(i), value);
      if (put.ok()) continue;
      EXPECT_EQ(put.error().code(), ErrorCode::kOutOfMemory) << put.error().ToString();
      return i;
    }
  }
  static bool IsOnline(Session& session) { return Access::StateOf(session).registration().pool().online(); }
};

TEST_F(RoomTest, IdleSession_GoesOfflineAndComesBackByOneTrip) {
  // Given a session that has read a key.
  // When the keeper looks twice, and the key is read again.
  // Expect that the session is offline in between, and that the second read takes one trip of maintenance
  // more than one of a session that is in use, which takes none.
  Session session = Must(pool_.NewSession());
  ASSERT_TRUE(session.Put(table_, "key", "value").ok());
  const auto read = [&] {
    const Traffic before = session.traffic();
    EXPECT_EQ(Must(session.Get(table_, "key")), "value");
    const Traffic after = session.traffic();
    return std::pair(after.trips - before.trips, after.maintenance_trips - before.maintenance_trips);
  };
  read();
  const auto active = read();
  EXPECT_EQ(active.second, 0u);
  state_->RestIdleSessions();
  EXPECT_TRUE(IsOnline(session)) << "it was used since the last look";
  state_->RestIdleSessions();
  EXPECT_FALSE(IsOnline(session));
  const auto after_idling = read();
  EXPECT_EQ(after_idling.first, active.first);
  EXPECT_EQ(after_idling.second, 1u);
  EXPECT_EQ(read(), active);
}

TEST_F(RoomTest, IdleForLong_GivesUpItsChunks) {
  // Given a session that owns chunks. When it is idle for a lease, and the keeper beats for it. Expect that
  // it owns nothing any more, is offline, and can go on.
  Session session = Must(pool_.NewSession());
  ASSERT_TRUE(session.Put(table_, "key", "value").ok());
  const auto owned = [&] {
    return Access::StateOf(session).registration().pool().allocator(fabric::NodeId{0}).stats().chunks_owned;
  };
  EXPECT_GT(owned(), 0u);
  state_->RestIdleSessions();
  clock_.Advance(state_->client_options().lease.lease / 2);
  state_->Keep();
  state_->Keep();
  EXPECT_EQ(owned(), 0u);
  EXPECT_FALSE(IsOnline(session));
  EXPECT_TRUE(session.Put(table_, "key", "another").ok());
  EXPECT_EQ(Must(session.Get(table_, "key")), "another");
}

TEST_F(RoomTest, FullPool_DropAndCreateNeverFail) {
  // Given a pool that one session has filled, while another one is idle and online.
  // When its table is dropped and made again, time and again.
  // Expect that there is always room for the table, and for as many records, or nearly.
  Session idle = Must(pool_.NewSession());
  ASSERT_TRUE(idle.Put(table_, "key", "value").ok());
  Session session = Must(pool_.NewSession());
  std::optional<Table> table = Must(pool_.CreateTable("filled"));
  const int first = Fill(session, *table);
  EXPECT_GT(first, 100);
  for (int round = 0; round < 5; ++round) {
    table.reset();
    ASSERT_TRUE(pool_.DropTable("filled").ok());
    Result<Table> made = pool_.CreateTable("filled");
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    table = std::move(*made);
    EXPECT_GT(Fill(session, *table), first * 3 / 4) << "round " << round;
  }
}

TEST_F(RoomTest, FullPool_WhatAnIdleSessionOwnsIsFound) {
  // Given a pool that a session has filled and emptied again, so that it owns all chunks, and is idle.
  // When another session puts as many records.
  // Expect that it has room for them.
  Session idle = Must(pool_.NewSession());
  Session session = Must(pool_.NewSession());
  const int count = Fill(idle, table_);
  for (int i = 0; i < count; ++i) ASSERT_TRUE(Must(idle.Delete(table_, KeyOf(i))));
  EXPECT_GT(Fill(session, table_), count * 3 / 4);
}

TEST_F(RoomTest, SessionThatKeepsFailing_WaitsForAnswersAgain) {
  // Given a full pool, and a client of another process that is offline, lives, and never answers that it has
  // given back what it can.
  const Nanos lease = state_->client_options().lease.lease;
  const std::unique_ptr<fabric::Client> connection = Must(state_->fabric().Connect());
  const auto run = [&](auto start) {
    fabric::Op op(*connection, fabric::OpKind::kMaintenance);
    return Must(fabric::Run(*connection, start(op)));
  };
  const std::unique_ptr<Registration> silent = run([&](fabric::Op& op) {
    return Registration::Join(op, *connection, MakeEngine, state_->client_options());
  });
  const auto own_a_chunk = [&](fabric::Op& op) {
    return silent->pool().allocator(fabric::NodeId{0}).Allocate(op, 64);
  };
  run(own_a_chunk);
  ASSERT_TRUE(run([&](fabric::Op& op) { return silent->pool().GoOffline(op); }));
  Session session = Must(pool_.NewSession());
  const auto refused_after = [&] {
    run([&](fabric::Op& op) { return silent->pool().Sync(op, /*raise=*/false); });
    const Nanos begin = clock_.Now();
    EXPECT_EQ(session.Put(table_, "one more", std::string(4000, 'v')).error().code(),
              ErrorCode::kOutOfMemory);
    return clock_.Now() - begin;
  };
  Fill(session, table_);
  // When a put fails again and again. Expect that it does so at once,
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(refused_after(), lease / 8);
    clock_.Advance(lease / 20);
  }
  // but an eighth of a lease after the first failure waits for the other client as that one did.
  EXPECT_GE(refused_after(), lease / 4);
  state_->Abandon();
}

TEST_F(RoomTest, SparseChunksOfAnIdleSession_AreEmptiedForAnother) {
  // Given a session that has filled a pool with values of 4,000 bytes, has deleted 85 % of them, and stops.
  constexpr double kPoolBytes = 32.0 * 1024 * 1024;
  const std::shared_ptr<PoolState> state = OpenQuietPool(&clock_, "embedded:?size=32MiB");
  Pool pool(state);
  const Table table = Must(pool.CreateTable("t"));
  Session idle = Must(pool.NewSession());
  Session session = Must(pool.NewSession());
  LiveRecords records(kPoolBytes);
  records.Use(idle, table);
  records.PutUntilFull(4000);
  records.DeleteAllBut(0.15);
  // When another session puts values of 500 bytes until the pool is full.
  records.Use(session, table);
  records.PutUntilFull(500);
  // Expect that nearly all of it is in use, and that every record is there.
  EXPECT_GE(records.live_share(), 0.8);
  records.ExpectAll();
}

TEST_F(RoomTest, IdleSessionThatWaitsForGrace_GivesUpItsChunksLater) {
  // Given a session that owns chunks, and has just deleted a record that another session may look at.
  // When it is idle for long, and the keeper beats for it before and after the other one has moved on.
  // Expect that it keeps its chunks at first, and gives them up then.
  Session idle = Must(pool_.NewSession());
  Session reader = Must(pool_.NewSession());
  ASSERT_TRUE(idle.Put(table_, "key", "value").ok());
  pool::PoolClient& client = Access::StateOf(idle).registration().pool();
  const auto owned = [&] { return client.allocator(fabric::NodeId{0}).stats().chunks_owned; };
  ASSERT_TRUE(reader.Get(table_, "key").ok());
  std::optional<pool::PoolClient::Pin> pin(Access::StateOf(reader).registration().pool().Begin());
  ASSERT_TRUE(Must(idle.Delete(table_, "key")));
  state_->RestIdleSessions();
  clock_.Advance(state_->client_options().lease.lease / 4);
  state_->Keep();
  state_->Keep();
  EXPECT_GT(owned(), 0u);
  pin.reset();
  for (int round = 0; round < 4; ++round) state_->Keep();
  EXPECT_EQ(owned(), 0u);
}

TEST_F(RoomTest, AllTableSlotsAreTaken_NoRoomIsSearched) {
  // Given a pool all of whose table slots are taken. When one more table is made.
  // Expect that this fails, and that no client is told that another one wants room.
  Session session = Must(pool_.NewSession());
  Result<Table> made = pool_.CreateTable("0");
  for (int i = 1; made.ok(); ++i) made = pool_.CreateTable(std::to_string(i));
  EXPECT_THAT(made.error().message(), testing::HasSubstr("table slots"));
  EXPECT_EQ(made.error().code(), ErrorCode::kOutOfMemory);
  state_->Keep();
  pool::PoolClient& client = Access::StateOf(session).registration().pool();
  EXPECT_EQ(client.member(fabric::NodeId{0}).control().room_wanted, 0u);
}

}  // namespace
}  // namespace farside::store
