// Handles that were moved from: every call says so, and none crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "farside/farside.h"
#include "tests/store/quiet_pool.h"

namespace farside::store {
namespace {

using testing::HasSubstr;

template <class T>
void ExpectMovedFrom(const Result<T>& result, const std::string& what) {
  ASSERT_FALSE(result.ok()) << "a call on a " << what << " that was moved from";
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message(), HasSubstr("this " + what + " was moved from"));
}

class MovedFromTest : public StoreTest {
 protected:
  // Every operation of the session on the table.
  static void ExpectAllMovedFrom(Session& session, const Table& table, const std::string& what) {
    std::string value;
    Cursor cursor;
    RangeCursor range_cursor;
    RangeCursor at_end{.at_end = true};
    std::vector<Record> page;
    ExpectMovedFrom(session.Get(table, "k"), what);
    ExpectMovedFrom(session.Get(table, "k", value), what);
    ExpectMovedFrom(session.Put(table, "k", "v"), what);
    ExpectMovedFrom(session.Insert(table, "k", "v"), what);
    ExpectMovedFrom(session.Update(table, "k", "v"), what);
    ExpectMovedFrom(session.Delete(table, "k"), what);
    ExpectMovedFrom(session.CompareAndSet(table, "k", "v", "w"), what);
    ExpectMovedFrom(session.Increment(table, "k"), what);
    ExpectMovedFrom(session.Next(table, cursor, page), what);
    ExpectMovedFrom(session.Stats(table), what);
    ExpectMovedFrom(session.Scan(table, KeyRange::All(), 1), what);
    ExpectMovedFrom(session.Scan(table, KeyRange::All(), 10'000, page), what);
    ExpectMovedFrom(session.Next(table, range_cursor, page), what);
    ExpectMovedFrom(session.Next(table, at_end, page), what);
    ExpectMovedFrom(session.First(table), what);
    ExpectMovedFrom(session.Last(table), what);
    std::vector<GetItem> gets = {{.key = "k"}, {.key = "l"}};
    std::vector<PutItem> puts = {{.key = "k", .value = "v"}};
    std::vector<DeleteItem> deletes = {{.key = "k"}};
    ExpectMovedFrom(session.MultiGet(table, gets), what);
    ExpectMovedFrom(session.MultiPut(table, puts), what);
    ExpectMovedFrom(session.MultiDelete(table, deletes), what);
  }
  // The same as tasks, which `runner` runs.
  static void ExpectAllTasksMovedFrom(Session& runner, AsyncSession async, const Table& table,
                                      const std::string& what) {
    std::string value;
    Cursor cursor;
    RangeCursor range_cursor;
    const KeyRange all;
    Record record;
    std::vector<Record> page;
    ExpectMovedFrom(runner.Run(async.Get(table, "k", value)), what);
    ExpectMovedFrom(runner.Run(async.Put(table, "k", "v")), what);
    ExpectMovedFrom(runner.Run(async.Insert(table, "k", "v")), what);
    ExpectMovedFrom(runner.Run(async.Update(table, "k", "v")), what);
    ExpectMovedFrom(runner.Run(async.Delete(table, "k")), what);
    ExpectMovedFrom(runner.Run(async.CompareAndSet(table, "k", "v", "w")), what);
    ExpectMovedFrom(runner.Run(async.Increment(table, "k")), what);
    ExpectMovedFrom(runner.Run(async.Next(table, cursor, page)), what);
    ExpectMovedFrom(runner.Run(async.Scan(table, all, 1, page)), what);
    ExpectMovedFrom(runner.Run(async.Next(table, range_cursor, page)), what);
    ExpectMovedFrom(runner.Run(async.Last(table, all, record)), what);
  }
};

TEST_F(MovedFromTest, APool_RefusesEveryCall) {
  // Given a pool that was moved to another handle. Expect that the new one works, and the old one says why it
  // does not.
  Pool old = pool_;
  Pool now = std::move(old);
  EXPECT_TRUE(now.ListTables().ok());
  ExpectMovedFrom(old.CreateTable("new"), "pool");  // NOLINT: this is what is tested, here and below
  ExpectMovedFrom(old.OpenTable("t"), "pool");
  ExpectMovedFrom(old.OpenOrCreateTable("t"), "pool");
  ExpectMovedFrom(old.DropTable("t"), "pool");
  ExpectMovedFrom(old.ListTables(), "pool");
  ExpectMovedFrom(old.NewSession(), "pool");
  ExpectMovedFrom(old.Close(), "pool");
}

TEST_F(MovedFromTest, ASession_RefusesEveryCall) {
  // Given a session that was moved to another one, by construction and by assignment.
  Session old = Must(pool_.NewSession());
  Session now = std::move(old);
  ExpectAllMovedFrom(old, table_, "session");  // NOLINT
  ExpectAllTasksMovedFrom(now, old.Async(), table_, "session");
  ExpectMovedFrom(old.Run(now.Async().Put(table_, "k", "v")), "session");
  ExpectMovedFrom(old.Close(), "session");
  EXPECT_EQ(old.traffic().operations, 0u);
  // Expect that it can be assigned to, and that the session that was moved works.
  old = std::move(now);
  EXPECT_TRUE(old.Put(table_, "k", "v").ok());
  ExpectMovedFrom(now.Get(table_, "k"), "session");  // NOLINT
  EXPECT_TRUE(old.Close().ok());
}

TEST_F(MovedFromTest, ATable_IsRefusedByEveryCall) {
  // Given a table that was moved to another handle.
  Session session = Must(pool_.NewSession());
  Table old = Must(pool_.OpenTable("t"));
  const Table now = std::move(old);
  EXPECT_EQ(old.name(), "");  // NOLINT
  EXPECT_EQ(old.engine(), "");
  EXPECT_FALSE(old.ordered());
  ExpectAllMovedFrom(session, old, "table");
  ExpectAllTasksMovedFrom(session, session.Async(), old, "table");
  EXPECT_TRUE(session.Put(now, "k", "v").ok());
  old = now;
  EXPECT_EQ(Must(session.Get(old, "k")), "v");
}

TEST_F(MovedFromTest, ATask_IsNotRun) {
  // Given two tasks, of which one was moved from. When both are to run. Expect an error, and that neither
  // ran.
  Session session = Must(pool_.NewSession());
  std::vector<Task<Done>> tasks;
  tasks.push_back(session.Async().Put(table_, "k", "v"));
  tasks.push_back(session.Async().Put(table_, "l", "v"));
  const Task<Done> taken = std::move(tasks[1]);
  ExpectMovedFrom(session.RunAll(std::span(tasks)), "task");
  ExpectMovedFrom(session.Run(std::move(tasks[1])), "task");
  EXPECT_EQ(Must(session.Get(table_, "k")), std::nullopt);
}

TEST_F(MovedFromTest, ARangeCursor_IsAValueLikeAnyOther) {
  // Given a cursor that was moved from: it holds some range, and no handle. Expect no error and no crash.
  const Table ordered = Must(pool_.CreateTable("o", {.engine = "chime"}));
  Session session = Must(pool_.NewSession());
  Must(session.Put(ordered, "k", "v"));
  RangeCursor cursor{.rest = KeyRange::Between("a", "z")};
  const RangeCursor taken = std::move(cursor);
  std::vector<Record> page;
  EXPECT_TRUE(session.Next(ordered, cursor, page).ok());  // NOLINT
}

}  // namespace
}  // namespace farside::store
