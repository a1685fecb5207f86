// Sessions on tables that keep their keys in order: scans, cursors, the first and the last key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "farside/session.h"
#include "store/engines.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/heap_count.h"

namespace farside::store {
namespace {

using testing::HasSubstr;

std::vector<std::string> OrderedEngineList() {
  std::vector<std::string> names;
  for (const EngineEntry& engine : Engines()) {
    if (IsOrdered(engine.name, {})) names.emplace_back(engine.name);
  }
  return names;
}

class RangesTest : public testing::TestWithParam<std::string> {
 protected:
  static Table MakeTable(Pool& pool) {
    TableOptions options{.engine = GetParam()};
    options.options = Must(MakeEngine(GetParam(), {}))->OptionsFor({.records = 1280});
    return Must(pool.CreateTable("t", options));
  }
  static std::string Key(size_t i) { return fmt::format("key-{:04}", i); }
  // Keys 0, 2, 4 and so on.
  void PutEven(size_t records) {
    for (size_t i = 0; i < records; ++i) Must(session_.Put(table_, Key(2 * i), std::to_string(2 * i)));
  }
  static std::vector<std::string> KeysOf(const std::vector<Record>& records) {
    std::vector<std::string> keys;
    for (const Record& record : records) keys.push_back(record.key);
    return keys;
  }
  void Fence(farside::Session& session) {
    const fabric::ClientId victim = Access::StateOf(session).registration().client().id();
    const std::unique_ptr<fabric::Client> fencer = Must(state_->fabric().Connect());
    fabric::Op op(*fencer, fabric::OpKind::kMaintenance);
    Must(fabric::Run(*fencer, fabric::FenceEverywhere(op, victim)));
  }

  TickingClock clock_{std::chrono::microseconds(1)};
  std::shared_ptr<PoolState> state_ = OpenQuietPool(&clock_);
  Pool pool_{state_};
  Table table_ = MakeTable(pool_);
  farside::Session session_ = Must(pool_.NewSession());
};
INSTANTIATE_TEST_SUITE_P(Ordered, RangesTest, testing::ValuesIn(OrderedEngineList()),
                         [](const auto& engine) { return engine.param; });

// ---- scans -------------------------------------------------------------------------------------------

TEST_P(RangesTest, AScan_HasTheFirstRecordsOfTheRangeInOrder) {
  // Given twenty records. When ranges of them are scanned. Expect their first records, in order.
  PutEven(20);
  EXPECT_TRUE(table_.ordered());
  EXPECT_EQ(KeysOf(Must(session_.Scan(table_, KeyRange::From(Key(3)), 3))),
            (std::vector{Key(4), Key(6), Key(8)}));
  EXPECT_EQ(KeysOf(Must(session_.Scan(table_, KeyRange::Between(Key(34), Key(38)), 10))),
            (std::vector{Key(34), Key(36)}));
  EXPECT_EQ(Must(session_.Scan(table_, KeyRange::Prefix("key-"), 100)).size(), 20u);
  EXPECT_TRUE(Must(session_.Scan(table_, KeyRange::Prefix("yek"), 100)).empty());
}

TEST_P(RangesTest, AScanIntoAPage_ReplacesWhatWasThere_AndTellsWhetherThereAreMore) {
  // Given records, and a page with something in it. When a part and then all of them are scanned into it.
  // Expect only the scanned records, and whether there are more.
  PutEven(10);
  std::vector<Record> page = {{"old", "old"}};
  EXPECT_TRUE(Must(session_.Scan(table_, KeyRange::All(), 4, page)));
  EXPECT_EQ(page.size(), 4u);
  EXPECT_FALSE(Must(session_.Scan(table_, KeyRange::All(), 11, page)));
  EXPECT_EQ(page.size(), 10u);
  EXPECT_EQ(page.front(), (Record{Key(0), "0"}));
}

TEST_P(RangesTest, AScanOfAnyLength_IsOneOperation) {
  // Given two thousand records. When a few, and all of them, are scanned. Expect that each scan counts as
  // one.
  PutEven(2000);
  for (const size_t limit : {size_t{1}, size_t{1024}, size_t{1025}, std::numeric_limits<size_t>::max()}) {
    const uint64_t before = session_.traffic().operations;
    EXPECT_EQ(Must(session_.Scan(table_, KeyRange::All(), limit)).size(), std::min<size_t>(limit, 2000));
    EXPECT_EQ(session_.traffic().operations - before, 1u) << limit;
  }
}

TEST_P(RangesTest, ASessionThatWasCutOff_ScansAnew) {
  // Given a session that others took for dead. When it scans. Expect that it joins anew, and that nothing
  // comes twice.
  PutEven(10);
  Fence(session_);
  std::vector<Record> page;
  EXPECT_FALSE(Must(session_.Scan(table_, KeyRange::All(), 100, page)));
  EXPECT_EQ(page.size(), 10u);
  Fence(session_);
  EXPECT_EQ(Must(session_.Last(table_)), (Record{Key(18), "18"}));
}

TEST_P(RangesTest, ALimitOfNothing_IsAnError) {
  // Given an ordered table. When no records at all are asked for. Expect that it is refused.
  std::vector<Record> page;
  EXPECT_EQ(session_.Scan(table_, KeyRange::All(), 0).error().code(), ErrorCode::kInvalidArgument);
  RangeCursor cursor{.rest = {}, .page_records = 0};
  EXPECT_EQ(session_.Next(table_, cursor, page).error().code(), ErrorCode::kInvalidArgument);
}

TEST_P(RangesTest, FirstAndLast_OfAllAndOfRanges) {
  // Given an empty table, and then records. Expect none, and then the outermost ones of each range.
  EXPECT_EQ(Must(session_.First(table_)), std::nullopt);
  EXPECT_EQ(Must(session_.Last(table_)), std::nullopt);
  PutEven(10);
  EXPECT_EQ(Must(session_.First(table_)), (Record{Key(0), "0"}));
  EXPECT_EQ(Must(session_.Last(table_)), (Record{Key(18), "18"}));
  EXPECT_EQ(Must(session_.First(table_, KeyRange::From(Key(5)))), (Record{Key(6), "6"}));
  EXPECT_EQ(Must(session_.Last(table_, KeyRange::Between("", Key(6)))), (Record{Key(4), "4"}));
  EXPECT_EQ(Must(session_.Last(table_, KeyRange::Between(Key(5), Key(6)))), std::nullopt);
}

// ---- cursors -----------------------------------------------------------------------------------------

TEST_P(RangesTest, ACursor_ReturnsEveryRecordOnce_AndThenNothing) {
  // Given records. When a cursor takes pages of several sizes. Expect each record once, in order; and
  // nothing, without any trip, when it is at its end.
  PutEven(10);
  for (const size_t size : {1, 3, 5, 10, 11}) {
    RangeCursor cursor{.rest = KeyRange::From(Key(3)), .page_records = size};
    std::vector<Record> page;
    std::vector<Record> all;
    while (Must(session_.Next(table_, cursor, page))) {
      EXPECT_LE(page.size(), size);
      all.insert(all.end(), page.begin(), page.end());
    }
    EXPECT_EQ(all, Must(session_.Scan(table_, KeyRange::From(Key(3)), 100)));
    EXPECT_TRUE(cursor.at_end);
    const Traffic before = session_.traffic();
    EXPECT_FALSE(Must(session_.Next(table_, cursor, page)));
    EXPECT_TRUE(page.empty());
    EXPECT_EQ(session_.traffic().trips, before.trips);
  }
}

TEST_P(RangesTest, ACursor_IsNotDisturbedByWhatComesAndGoes) {
  // Given a cursor in the middle of its range. When the key that it returned last is deleted, others come
  // before and behind it, and one behind it goes. Expect that it goes on with what is there now.
  PutEven(5);
  RangeCursor cursor{.rest = KeyRange::All(), .page_records = 2};
  std::vector<Record> page;
  EXPECT_TRUE(Must(session_.Next(table_, cursor, page)));
  EXPECT_EQ(KeysOf(page), (std::vector{Key(0), Key(2)}));
  Must(session_.Delete(table_, Key(2)));
  Must(session_.Put(table_, Key(1), "too late"));
  Must(session_.Put(table_, Key(2) + "!", "just behind it"));
  Must(session_.Delete(table_, Key(4)));
  EXPECT_TRUE(Must(session_.Next(table_, cursor, page)));
  EXPECT_EQ(KeysOf(page), (std::vector{Key(2) + "!", Key(6)}));
}

TEST_P(RangesTest, ACursor_MayBeCopiedAndGivenToAnotherSession) {
  // Given a cursor after its first page. When a copy goes on in another session. Expect that both go on
  // alike.
  PutEven(6);
  RangeCursor cursor{.rest = KeyRange::All(), .page_records = 3};
  std::vector<Record> page;
  EXPECT_TRUE(Must(session_.Next(table_, cursor, page)));
  RangeCursor copy = cursor;
  farside::Session other = Must(pool_.NewSession());
  std::vector<Record> others;
  EXPECT_TRUE(Must(other.Next(table_, copy, others)));
  EXPECT_TRUE(Must(session_.Next(table_, cursor, page)));
  EXPECT_EQ(page, others);
  EXPECT_EQ(KeysOf(page), (std::vector{Key(6), Key(8), Key(10)}));
}

TEST_P(RangesTest, ACursor_StaysWhereItIsWhenAPageFails) {
  // Given a cursor after its first page. When the next one fails. Expect that it can be asked again.
  PutEven(4);
  RangeCursor cursor{.rest = KeyRange::All(), .page_records = 2};
  std::vector<Record> page;
  EXPECT_TRUE(Must(session_.Next(table_, cursor, page)));
  farside::Session closed = Must(pool_.NewSession());
  Must(closed.Close());
  EXPECT_FALSE(closed.Next(table_, cursor, page).ok());
  EXPECT_TRUE(Must(session_.Next(table_, cursor, page)));
  EXPECT_EQ(KeysOf(page), (std::vector{Key(4), Key(6)}));
}

// ---- tasks -------------------------------------------------------------------------------------------

// What a task sees of a range: pages by a cursor, the last record, and a scan.
Task<std::vector<std::string>> LookAround(AsyncSession session, const Table& table) {
  std::vector<std::string> seen;
  std::vector<Record> page;
  RangeCursor cursor;
  cursor.page_records = 2;
  while (true) {
    const bool more = co_await session.Next(table, cursor, page);
    if (!more) break;
    for (const Record& record : page) seen.push_back(record.key);
  }
  const KeyRange all;
  Record last;
  const bool found = co_await session.Last(table, all, last);
  if (found) seen.push_back(last.key);
  const bool more = co_await session.Scan(table, all, 1, page);
  seen.push_back(more ? page.front().key : "no more");
  co_return std::move(seen);
}

TEST_P(RangesTest, TasksHaveThemToo) {
  // Given three records. When a task takes pages, the last record, and a scan. Expect what a session would
  // see.
  PutEven(3);
  EXPECT_EQ(Must(session_.Run(LookAround(session_.Async(), table_))),
            (std::vector{Key(0), Key(2), Key(4), Key(4), Key(0)}));
}

Task<Done> ScanInTheMiddle(farside::Session& session, const Table& table, Status& scanned, Status& all) {
  scanned = OkStatus();
  if (const auto result = session.Scan(table, KeyRange::All(), 1); !result.ok()) scanned = result.error();
  if (const auto result = session.Scan(table, KeyRange::All(), 10'000); !result.ok()) all = result.error();
  co_return Done{};
}

TEST_P(RangesTest, InsideOfATask_TheSessionItselfIsBusy) {
  // Given a task of a session. When it scans by the session itself, a little or much. Expect an error that
  // says what to do.
  Status scanned = OkStatus();
  Status all = OkStatus();
  Must(session_.Run(ScanInTheMiddle(session_, table_, scanned, all)));
  ASSERT_FALSE(scanned.ok());
  EXPECT_THAT(scanned.error().message(), HasSubstr("Async()"));
  ASSERT_FALSE(all.ok());
  EXPECT_THAT(all.error().message(), HasSubstr("Async()"));
}

// ---- memory ------------------------------------------------------------------------------------------

TEST_P(RangesTest, APageThatIsUsedAgain_TakesNoMemoryThatTheEngineDoesNot) {
  // Given records of short keys and values, and a page. When they are scanned into it again and again. Expect
  // that the session allocates nothing beside what the engine does.
  PutEven(50);
  const KeyRange all;
  std::vector<Record> page;
  const auto per_scan = [](auto scan) {
    constexpr int kCalls = 200;
    for (int i = 0; i < kCalls; ++i) scan();  // memory that is kept from now on
    const uint64_t before = HeapAllocations();
    for (int i = 0; i < kCalls; ++i) scan();
    return static_cast<double>(HeapAllocations() - before) / kCalls;
  };
  Registration& registration = Access::StateOf(session_).registration();
  index::Index& index = registration.Find(table_.state())->index();
  const double of_the_engine = per_scan([&] {
    fabric::Op op(registration.client(), fabric::OpKind::kScan);
    page.clear();
    Must(fabric::Run(registration.client(), index.Scan(op, all, 100, page)));
  });
  const double of_all = per_scan([&] { Must(session_.Scan(table_, all, 100, page)); });
  if (kHeapIsCounted) {
    EXPECT_LE(of_all - of_the_engine, 0.05);
  }
}

// ---- tables without order ----------------------------------------------------------------------------

class UnorderedTest : public StoreTest {
 protected:
  farside::Session session_ = Must(pool_.NewSession());
};

Task<bool> ScanAsTask(AsyncSession session, const Table& table, const KeyRange& range,
                      std::vector<Record>& page) {
  co_return co_await session.Scan(table, range, 1, page);
}

TEST_F(UnorderedTest, EveryRangeIsRefused_WithTheEnginesToUse) {
  // Given a table of an engine that keeps keys in no order. When ranges of it are asked for. Expect an error
  // that names the table, its engine, and those that could.
  const Table table = Must(pool_.CreateTable("hashed", {.engine = "shard"}));
  EXPECT_FALSE(table.ordered());
  std::vector<Record> page;
  RangeCursor cursor;
  const KeyRange all;
  std::vector<Error> errors;
  errors.push_back(session_.Scan(table, all, 1).error());
  errors.push_back(session_.Scan(table, all, 1'000'000, page).error());
  errors.push_back(session_.Next(table, cursor, page).error());
  errors.push_back(session_.First(table).error());
  errors.push_back(session_.Last(table).error());
  errors.push_back(session_.Run(ScanAsTask(session_.Async(), table, all, page)).error());
  for (const Error& error : errors) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("table 'hashed' has the engine shard"));
    EXPECT_THAT(error.message(), HasSubstr("reference"));
  }
}

}  // namespace
}  // namespace farside::store
