// Batches and coroutines: outcomes per item, overlap, and what they allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "index/shard/shard.h"
#include "store/engines.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/heap_count.h"

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
  // Given a batch with a key that is too large in the middle. Expect its error, as that of the whole, and the
  // others done.
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

  // When the same items are asked for, and the batch is used again without the bad one. Expect fresh
  // outcomes.
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

// ---- searches that share their trips -------------------------------------------------------------------

TEST_F(BatchTest, SixteenSearches_ShareTwoTrips) {
  // Given 24 records of the default table, all in the first level, and a session with nothing else to do.
  // When they and 24 absent keys are asked for at once. Expect 48 answers by 5 trips: 16 that are there need
  // two, 16 of which some are there as well, and 16 absent ones are decided by the first.
  std::vector<std::string> keys;
  for (int i = 0; i < 48; ++i) keys.push_back("key-" + std::to_string(i));
  std::vector<GetItem> gets;
  for (const std::string& key : keys) gets.push_back({.key = key});
  for (int i = 0; i < 24; ++i) Must(session_.Put(table_, keys[i], "value of " + keys[i]));
  Must(session_.MultiGet(table_, gets));
  const Traffic before = session_.traffic();
  Must(session_.MultiGet(table_, gets));
  const Traffic after = session_.traffic();
  for (int i = 0; i < 48; ++i) {
    ASSERT_EQ(Must(gets[i].found), i < 24) << i;
    EXPECT_EQ(gets[i].value, i < 24 ? "value of " + keys[i] : "");
  }
  EXPECT_EQ(after.operations - before.operations, 48u);
  EXPECT_EQ(after.trips - before.trips, 5u);
}

TEST_F(BatchTest, SearchesThatAreNotSimple_AreAnsweredAllTheSame) {
  // Given tables of every shape that the checker uses, with and without a location cache, so that keys stand
  // in all levels and tables have just been resized; values of all sizes. When all keys and as many absent
  // ones are asked for at once, again and again while some are changed. Expect what a map says.
  std::vector<index::OptionMap> shapes = Must(index::shard::MakeShardEngine({}))->stress_options();
  shapes.push_back({{"cache", "64"}});
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    const Table table = Must(
        pool_.CreateTable("shape " + std::to_string(shape), {.engine = "shard", .options = shapes[shape]}));
    std::map<std::string, std::string> model;
    Random random(shape + 1);
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 60; ++i) {
        const std::string key = "k" + std::to_string(random.Below(150));
        if (random.Below(4) == 0) {
          Must(session_.Delete(table, key));
          model.erase(key);
        } else {
          model[key] =
              std::string(random.Below(20) == 0 ? 5000 : random.Below(700), static_cast<char>('a' + i % 26));
          Must(session_.Put(table, key, model[key]));
        }
      }
      std::vector<std::string> keys;
      for (int i = 0; i < 300; ++i) keys.push_back("k" + std::to_string(i));
      std::vector<GetItem> gets;
      for (const std::string& key : keys) gets.push_back({.key = key});
      Must(session_.MultiGet(table, gets));
      for (const GetItem& get : gets) {
        const auto found = model.find(std::string(get.key));
        ASSERT_EQ(Must(get.found), found != model.end()) << get.key << " in shape " << shape;
        EXPECT_EQ(get.value, found != model.end() ? found->second : "") << get.key;
      }
    }
  }
}

TEST_F(BatchTest, ASessionThatWasCutOff_SearchesAsBefore) {
  // Given records, and a session that another client has cut off. When it asks for many at once. Expect all
  // of them.
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) keys.push_back(std::to_string(i));
  for (const std::string& key : keys) Must(session_.Put(table_, key, key));
  std::vector<GetItem> gets;
  for (const std::string& key : keys) gets.push_back({.key = key});
  Must(session_.MultiGet(table_, gets));
  Fence(session_);
  Must(session_.MultiGet(table_, gets));
  for (const GetItem& get : gets) {
    EXPECT_TRUE(Must(get.found));
    EXPECT_EQ(get.value, get.key);
  }
}

// ---- changes of one key --------------------------------------------------------------------------------

Task<uint64_t> CountOnce(AsyncSession session, const Table& table, std::string_view key) {
  const uint64_t now = co_await session.Increment(table, key, 1);
  co_return now;
}

TEST_F(BatchTest, ManyChangesOfOneKey_TakeTurns) {
  // Given a counter and another one. When 30 tasks of one session raise the first at once, and 10 the second.
  // Expect that each sees its own number, in the order in which they came, and that no CAS was in vain.
  Must(session_.Increment(table_, "hot", 0));
  Must(session_.Increment(table_, "warm", 0));
  fabric::Client& client = Access::StateOf(session_).registration().client();
  const auto failed = [&client] {
    uint64_t sum = 0;
    for (const fabric::VerbTally& tally : client.counters().Total().by_purpose) sum += tally.failed_cas;
    return sum;
  };
  const uint64_t before = failed();
  std::vector<Task<uint64_t>> tasks;
  for (int i = 0; i < 40; ++i)
    tasks.push_back(CountOnce(session_.Async(), table_, i % 4 == 3 ? "warm" : "hot"));
  Must(session_.RunAll(std::span(tasks)));
  uint64_t hot = 0;
  uint64_t warm = 0;
  for (int i = 0; i < 40; ++i) {
    const uint64_t expected = i % 4 == 3 ? ++warm : ++hot;
    EXPECT_EQ(Must(tasks[i].TakeResult()), expected) << i;
  }
  EXPECT_EQ(failed(), before);
}

// Starts all three, and destroys the first two before they have ended.
Task<uint64_t> StartAndDropTwo(Task<uint64_t>& first, Task<uint64_t>& second, Task<uint64_t>& third) {
  {
    Task<uint64_t> waits = std::move(second);
    Task<uint64_t> holds = std::move(first);  // destroyed before `waits`, which has its turn for a moment
    holds.Start();
    waits.Start();
    third.Start();
  }
  co_return 0u;
}

TEST_F(BatchTest, TasksThatAreDropped_LeaveTheirTurnToTheNext) {
  // Given three tasks that change one key: the first has begun, the others wait for it. When the first two
  // are destroyed, and the session goes on with something else. Expect that the third ends, too.
  Must(session_.Increment(table_, "hot", 0));
  std::vector<Task<uint64_t>> three;
  for (int i = 0; i < 3; ++i) three.push_back(CountOnce(session_.Async(), table_, "hot"));
  for (int round = 0; round < 10; ++round) {
    std::vector<Task<uint64_t>> tasks;
    if (round == 0) {
      tasks.push_back(StartAndDropTwo(three[0], three[1], three[2]));
    } else {
      tasks.push_back(CountOnce(session_.Async(), table_, "other"));
    }
    tasks.push_back(CountOnce(session_.Async(), table_, "another"));
    Must(session_.RunAll(std::span(tasks)));
  }
  ASSERT_TRUE(three[2].done());
  EXPECT_GE(Must(three[2].TakeResult()), 1u);
}

// ---- allocations -------------------------------------------------------------------------------------

// What the engine allocates for so many Gets is its own business; what the session adds to it is measured
// here.
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
  // Given records, and a string that is used again. When they are got many times. Expect at most one
  // allocation in a thousand gets beside those of the engine, also for maintenance.
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
  // Given the engine that users get. Expect that it allocates nothing either.
  if (GetParam() != DefaultEngine()) GTEST_SKIP() << "not the default engine";
  if (kHeapIsCounted) {
    EXPECT_LE(OfTheEngine(), 1.0);
  }
}

}  // namespace
}  // namespace farside::store
