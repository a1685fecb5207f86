// Batches and coroutines: outcomes per item, overlap, and what they allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "store/engines.h"
#include "tests/unit/base/heap_count.h"
#include "tests/unit/store/store_test.h"

namespace farside::store {
namespace {

using testing::HasSubstr;

class BatchTest : public StoreTest {
 protected:
  farside::Session session_ = Must(pool_.NewSession());
};

TEST_F(BatchTest, AnEmptyBatch_IsDone) {
  // Given no items at all. Expect that all of them are done.
  EXPECT_TRUE(session_.MultiGet(table_, {}).ok());
  EXPECT_TRUE(session_.MultiPut(table_, {}).ok());
  EXPECT_TRUE(session_.MultiDelete(table_, {}).ok());
}

TEST_F(BatchTest, OneBadItem_DoesNotSpoilTheOthers) {
  // Given a batch with a key that is too large in the middle. Expect its error, as that of the whole, and the others done.
  const std::string too_large(kMaxKeyBytes + 1, 'k');
  std::vector<PutItem> puts = {
      {.key = "a", .value = "1"}, {.key = too_large, .value = "2"}, {.key = "c", .value = "3"}};
  const Status put = session_.MultiPut(table_, puts);
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(puts[0].status.ok());
  EXPECT_FALSE(puts[1].status.ok());
  EXPECT_TRUE(puts[2].status.ok());
  EXPECT_EQ(Must(session_.Get(table_, "c")), "3");

  // When the same items are asked for, and the batch is used again without the bad one. Expect fresh outcomes.
  std::vector<GetItem> gets = {{.key = "a"}, {.key = too_large}, {.key = "b"}};
  EXPECT_FALSE(session_.MultiGet(table_, gets).ok());
  EXPECT_TRUE(*gets[0].found);
  EXPECT_FALSE(gets[1].found.ok());
  EXPECT_FALSE(*gets[2].found);
  gets[1].key = "c";
  EXPECT_TRUE(session_.MultiGet(table_, gets).ok());
  EXPECT_EQ(gets[1].value, "3");
}

TEST_F(BatchTest, ASecondGet_ReusesTheString_AndLeavesItAloneIfAbsent) {
  // Given a string with a value in it. When an absent key is got into it. Expect that it is what it was.
  std::string value = "before";
  EXPECT_FALSE(Must(session_.Get(table_, "absent", value)));
  EXPECT_EQ(value, "before");
}

Task<uint64_t> CountTwice(AsyncSession session, const Table& table, std::string key) {
  co_await session.Increment(table, key, 1);
  const uint64_t now = co_await session.Increment(table, key, 1);
  co_return now;
}

TEST_F(BatchTest, Tasks_RunTogether_EachWithItsResult) {
  // Given tasks of two operations each, on ten keys. When they run together. Expect the result of each.
  std::vector<Task<uint64_t>> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(CountTwice(session_.Async(), table_, std::to_string(i)));
  Must(session_.RunAll(std::span(tasks)));
  for (Task<uint64_t>& task : tasks) EXPECT_EQ(Must(task.TakeResult()), 2u);
}

TEST_F(BatchTest, AllOperations_HaveACoroutineForm) {
  // When all operations are run as tasks. Expect what the synchronous ones would say.
  const AsyncSession async = session_.Async();
  std::string value;
  Must(session_.Run(async.Put(table_, "k", "v")));
  EXPECT_TRUE(Must(session_.Run(async.Get(table_, "k", value))));
  EXPECT_EQ(value, "v");
  EXPECT_FALSE(Must(session_.Run(async.Insert(table_, "k", "w"))));
  EXPECT_TRUE(Must(session_.Run(async.Update(table_, "k", "w"))));
  EXPECT_TRUE(Must(session_.Run(async.CompareAndSet(table_, "k", "w", "x"))));
  Cursor cursor;
  std::vector<Record> page;
  EXPECT_TRUE(Must(session_.Run(async.Next(table_, cursor, page))));
  EXPECT_EQ(page, (std::vector<Record>{{"k", "x"}}));
  EXPECT_TRUE(Must(session_.Run(async.Delete(table_, "k"))));
  EXPECT_EQ(Must(session_.Run(async.Increment(table_, "n", 2))), 2u);
}

// ---- allocations -------------------------------------------------------------------------------------

// What the engine allocates for so many Gets is its own business; what the session adds to it is measured here.
class AllocationTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr size_t kKeys = 50;

  AllocationTest() {
    for (size_t i = 0; i < kKeys; ++i) keys_.push_back("key-" + std::to_string(i));
    for (const std::string& key : keys_) {
      Must(session_.Put(table_, key, "a value that does not fit into a short string"));
      gets_.push_back({.key = key});
    }
  }
  // Per thousand calls of `operation`, which does kKeys gets.
  template <class Operation>
  static double PerThousandGets(Operation operation) {
    constexpr size_t kCalls = 400;
    for (size_t i = 0; i < kCalls; ++i) operation();  // memory that is kept from now on
    const uint64_t before = HeapAllocations();
    for (size_t i = 0; i < kCalls; ++i) operation();
    return static_cast<double>(HeapAllocations() - before) * 1000 / (kCalls * kKeys);
  }
  // The same gets, of the engine alone.
  double OfTheEngine() {
    Registration& registration = Access::StateOf(session_).registration();
    index::Index& index = registration.Find(table_.state())->index();
    std::string value;
    return PerThousandGets([&] {
      for (const std::string& key : keys_) {
        fabric::Op op(registration.client(), fabric::OpKind::kSearch);
        EXPECT_TRUE(Must(fabric::Run(registration.client(), index.Get(op, key, value))));
      }
    });
  }

  TickingClock clock_{std::chrono::microseconds(1)};
  Pool pool_{OpenQuietPool(&clock_)};
  Table table_ = Must(pool_.CreateTable("t", {.engine = GetParam()}));
  farside::Session session_ = Must(pool_.NewSession());
  std::vector<std::string> keys_;
  std::vector<GetItem> gets_;
};

std::vector<std::string> EngineList() {
  std::vector<std::string> names;
  for (const EngineEntry& engine : Engines()) names.emplace_back(engine.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Engines, AllocationTest, testing::ValuesIn(EngineList()),
                         [](const auto& engine) { return engine.param; });

TEST_P(AllocationTest, Gets_AllocateNothingThatTheEngineDoesNot) {
  // Given records, and a string that is used again. When they are got many times. Expect at most one allocation in a
  // thousand gets beside those of the engine, also for maintenance.
  const double of_the_engine = OfTheEngine();
  std::string value;
  const double all = PerThousandGets([&] {
    for (const std::string& key : keys_) EXPECT_TRUE(Must(session_.Get(table_, key, value)));
  });
  if (kHeapIsCounted) {
    EXPECT_LE(all - of_the_engine, 1.0);
  }
}

TEST_P(AllocationTest, MultiGet_AllocatesNothingThatTheEngineDoesNot) {
  // Given records, and items that are used again. When they are got in batches. Expect the same.
  const double of_the_engine = OfTheEngine();
  const double all = PerThousandGets([&] { Must(session_.MultiGet(table_, gets_)); });
  if (kHeapIsCounted) {
    EXPECT_LE(all - of_the_engine, 1.0);
  }
}

TEST_P(AllocationTest, TheDefaultEngine_AllocatesNothingForAGet) {
  // Given the engine that users get, unless it is the reference, which is made to be read. Expect that it allocates
  // nothing either.
  if (GetParam() != DefaultEngine() || GetParam() == "reference") GTEST_SKIP() << "made to be read";
  if (kHeapIsCounted) {
    EXPECT_LE(OfTheEngine(), 1.0);
  }
}

}  // namespace
}  // namespace farside::store
