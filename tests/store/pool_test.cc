// Pools and their tables, as programs see them.
#include "farside/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/engines.h"
#include "tests/store/quiet_pool.h"

namespace farside::store {
namespace {

using testing::HasSubstr;

constexpr std::string_view kSmall = "embedded:?size=4MiB";

TEST(PoolTest, AWrongUrl_IsAnErrorThatShowsARightOne) {
  // When something is opened that is no URL of a pool. Expect an error that says how to write one.
  const Result<Pool> pool = Pool::Open("nonsense");
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(pool.error().message(), HasSubstr("embedded:"));
  EXPECT_EQ(Pool::Open(kSmall, {.lease = std::chrono::milliseconds(0)}).error().code(),
            ErrorCode::kInvalidArgument);
}

TEST(PoolTest, Tables_AreMadeOpenedListedAndDropped) {
  // Given a pool. When tables are made and dropped. Expect that the list says so, and that names are taken
  // once.
  Pool pool = Must(Pool::Open(kSmall, {.lease = std::chrono::milliseconds(100)}));
  const Table b = Must(pool.CreateTable("b"));
  const Table a = Must(pool.CreateTable("a", {.engine = "reference", .options = {{"buckets", "2"}}}));
  EXPECT_EQ(b.name(), "b");
  EXPECT_EQ(b.engine(), DefaultEngine());
  EXPECT_EQ(pool.CreateTable("a").error().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(pool.CreateTable("a", {.engine = "reference", .options = {{"buckets", "2"}}}).error().code(),
            ErrorCode::kAlreadyExists);

  std::vector<TableInfo> tables = Must(pool.ListTables());
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name, "a");
  EXPECT_EQ(tables[0].engine, "reference");
  EXPECT_EQ(tables[0].options, (index::OptionMap{{"buckets", "2"}}));
  EXPECT_EQ(tables[1].name, "b");

  Must(pool.DropTable("b"));
  EXPECT_EQ(Must(pool.ListTables()).size(), 1u);
  EXPECT_EQ(pool.DropTable("b").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(pool.OpenTable("b").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Must(pool.OpenTable("a")).engine(), "reference");
}

TEST(PoolTest, OpenOrCreate_TakesWhatIsThere_UnlessSomethingElseIsAskedFor) {
  // Given a table with options. When it is opened or made. Expect the one that is there, or an error if
  // others are named.
  Pool pool = Must(Pool::Open(kSmall));
  const TableOptions two{.engine = "reference", .options = {{"buckets", "2"}}};
  const TableOptions three{.engine = "reference", .options = {{"buckets", "3"}}};
  Must(pool.OpenOrCreateTable("t", two));
  EXPECT_TRUE(pool.OpenOrCreateTable("t", two).ok());
  EXPECT_TRUE(pool.OpenOrCreateTable("t").ok());
  EXPECT_EQ(pool.OpenOrCreateTable("t", three).error().code(), ErrorCode::kAlreadyExists);
  EXPECT_TRUE(pool.OpenOrCreateTable("new").ok());
}

TEST(PoolTest, WrongTables_AreErrorsThatSayWhatThereIs) {
  // When tables are made with wrong names, engines and options. Expect errors that name what is wrong.
  Pool pool = Must(Pool::Open(kSmall));
  EXPECT_EQ(pool.CreateTable("").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(pool.CreateTable("a/b").error().code(), ErrorCode::kInvalidArgument);
  const Result<Table> engine = pool.CreateTable("t", {.engine = "nonsense"});
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message(), HasSubstr("reference"));
  // An engine that keeps no records is for measurements alone; what users can make is named without it.
  for (const Result<Table>& raw :
       {pool.CreateTable("t", {.engine = "raw"}), pool.OpenOrCreateTable("t", {.engine = "raw"})}) {
    ASSERT_FALSE(raw.ok());
    EXPECT_EQ(raw.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(raw.error().message(), HasSubstr("'raw'"));
    EXPECT_THAT(raw.error().message(), HasSubstr("reference"));
  }
  const Result<Table> option = pool.CreateTable("t", {.engine = "reference", .options = {{"nonsense", "1"}}});
  ASSERT_FALSE(option.ok());
  EXPECT_THAT(option.error().message(), HasSubstr("nonsense"));
  EXPECT_TRUE(Must(pool.ListTables()).empty());
}

TEST(PoolTest, ATableInAFile_IsThereWhenItIsOpenedAgain) {
  // Given a pool in a file, with a record. When it is closed and opened again. Expect the record.
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("farside_pool_test_" + std::to_string(::getpid()));
  const std::string url = "file:" + path.string() + "?size=4MiB";
  {
    Pool pool = Must(Pool::Open(url));
    const Table table = Must(pool.CreateTable("t"));
    farside::Session session = Must(pool.NewSession());
    Must(session.Put(table, "k", "v"));
    Must(session.Close());
    Must(pool.Close());
  }
  {
    Pool pool = Must(Pool::Open(url));
    const Table table = Must(pool.OpenTable("t"));
    farside::Session session = Must(pool.NewSession());
    EXPECT_EQ(Must(session.Get(table, "k")), "v");
  }
  std::filesystem::remove(path);
}

TEST(PoolTest, Close_IsRefusedWhileSessionsAreOpen_AndFinal) {
  // Given a session. When the pool is closed. Expect that it is refused until the session is closed, and then
  // ends all.
  Pool pool = Must(Pool::Open(kSmall));
  Pool copy = pool;
  farside::Session session = Must(pool.NewSession());
  const Status early = pool.Close();
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message(), HasSubstr("1 session of the pool is still open"));
  EXPECT_TRUE(pool.CreateTable("t").ok());

  Must(session.Close());
  Must(pool.Close());
  EXPECT_EQ(copy.CreateTable("u").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(copy.NewSession().error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(copy.ListTables().error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(copy.Close().error().code(), ErrorCode::kInvalidArgument);
}

TEST(PoolTest, SessionsAndTables_KeepThePoolOpen) {
  // Given a session and a table. When all handles of the pool are gone. Expect that they still work.
  std::optional<Pool> pool = Must(Pool::Open(kSmall));
  std::optional<Table> table = Must(pool->CreateTable("t"));
  farside::Session session = Must(pool->NewSession());
  pool.reset();
  Must(session.Put(*table, "k", "v"));
  EXPECT_EQ(Must(session.Get(*table, "k")), "v");
}

TEST(PoolTest, MoreSessionsThanSlots_AreRefused_AndASlotIsFreeAgainAfterClose) {
  // Given a pool with three slots, one of which is its own. When a third session is asked for. Expect a clear
  // error, and that there is room when one has left.
  Pool pool = Must(Pool::Open(kSmall, {.lease = std::chrono::milliseconds(50), .client_slots = 3}));
  farside::Session first = Must(pool.NewSession());
  farside::Session second = Must(pool.NewSession());
  const Result<farside::Session> third = pool.NewSession();
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(third.error().message(), HasSubstr("all 3 client slots"));
  Must(first.Close());
  EXPECT_TRUE(pool.NewSession().ok());
}

TEST(PoolTest, ManyThreads_MakeAndDropTheirTables) {
  // When several threads make, use and drop tables in one pool, with sessions that come and go. Expect no
  // error.
  Pool pool = Must(Pool::Open("embedded:?size=16MiB&nodes=2", {.lease = std::chrono::milliseconds(200)}));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&pool, thread] {
      const std::string name = "table-" + std::to_string(thread);
      for (int round = 0; round < 3; ++round) {
        const Table table = Must(pool.CreateTable(name));
        farside::Session session = Must(pool.NewSession());
        for (int i = 0; i < 20; ++i) Must(session.Put(table, std::to_string(i), name));
        Must(pool.DropTable(name));
        EXPECT_EQ(session.Get(table, "0").error().code(), ErrorCode::kNotFound);
        Must(session.Close());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Must(pool.ListTables()).empty());
}

}  // namespace
}  // namespace farside::store
