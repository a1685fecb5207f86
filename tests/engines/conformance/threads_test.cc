// Every engine, used by several threads at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/engines/conformance/engine.h"
#include "tests/support/sanitized.h"

namespace farside::conformance {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = kSanitized ? 200 : 2000;

class EngineThreadsTest : public EngineTest {
 protected:
  // Calls `work(session, thread)` on so many threads, each with a session of its own.
  template <class Work>
  void OnThreads(int count, Work work) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < count; ++thread) {
      threads.emplace_back([this, thread, &work] {
        Session session = Must(pool_.NewSession());
        work(session, thread);
        Must(session.Close());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, EngineThreadsTest, testing::ValuesIn(AllEngines()), LabelOf);

TEST_P(EngineThreadsTest, Increments_AreAllCounted) {
  // When several threads increment the same two counters. Expect that none is lost.
  OnThreads(kThreads, [this](Session& session, int) {
    for (int i = 0; i < kRounds; ++i) Must(session.Increment(table_, i % 2 == 0 ? "even" : "odd", 1));
  });
  EXPECT_EQ(Must(session_.Increment(table_, "even", 0)), uint64_t{kThreads} * kRounds / 2);
  EXPECT_EQ(Must(session_.Increment(table_, "odd", 0)), uint64_t{kThreads} * kRounds / 2);
}

TEST_P(EngineThreadsTest, CompareAndSet_LetsOneThreadWin) {
  // When several threads count by CompareAndSet, and each repeats what it has lost. Expect that none is lost.
  Must(session_.Put(table_, "k", "0"));
  OnThreads(kThreads, [this](Session& session, int) {
    std::string value;
    for (int i = 0; i < kRounds / 10; ++i) {
      while (true) {
        ASSERT_TRUE(Must(session.Get(table_, "k", value)));
        if (Must(session.CompareAndSet(table_, "k", value, std::to_string(std::stoi(value) + 1)))) break;
      }
    }
  });
  EXPECT_EQ(Get("k"), std::to_string(kThreads * (kRounds / 10)));
}

TEST_P(EngineThreadsTest, Insert_LetsOneThreadWin) {
  // When several threads insert the same keys. Expect one winner for each, whose value is there.
  constexpr int kKeys = 16;
  std::array<std::atomic<int>, kKeys> winners{};
  OnThreads(kThreads, [&](Session& session, int thread) {
    for (int key = 0; key < kKeys; ++key) {
      if (Must(session.Insert(table_, std::to_string(key), std::to_string(thread))))
        winners[key] += 1 + thread * 100;
    }
  });
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_EQ(winners[key] % 100, 1) << key;
    EXPECT_EQ(Get(std::to_string(key)), std::to_string(winners[key] / 100));
  }
}

TEST_P(EngineThreadsTest, ACursor_ReturnsWhatStays_WhileOthersComeAndGo) {
  // Given keys that stay. When one thread walks through the table while others insert and delete other keys,
  // and replace values of keys that stay. Expect that every walk returns all that stay, and only values that
  // were written.
  constexpr int kStay = 10;
  for (int key = 0; key < kStay; ++key) Must(session_.Put(table_, "stay-" + std::to_string(key), "0"));
  std::atomic<bool> stop = false;
  std::thread walker([&] {
    Session session = Must(pool_.NewSession());
    for (int walk = 0; walk < kRounds / 20; ++walk) {
      std::set<std::string> seen;
      std::vector<Record> page;
      Cursor cursor;
      while (Must(session.Next(table_, cursor, page))) {
        for (const Record& record : page) {
          if (!record.key.starts_with("stay-")) continue;
          seen.insert(record.key);
          EXPECT_TRUE(std::ranges::all_of(record.value, [](char c) { return c >= '0' && c <= '9'; }));
        }
      }
      EXPECT_EQ(seen.size(), size_t{kStay});
    }
    stop = true;
  });
  OnThreads(2, [&](Session& session, int thread) {
    for (int i = 0; !stop; ++i) {
      const std::string comes = "comes-" + std::to_string(thread) + "-" + std::to_string(i % 5);
      Must(session.Put(table_, comes, "x"));
      Must(session.Update(table_, "stay-" + std::to_string(i % kStay), std::to_string(i)));
      Must(session.Delete(table_, comes));
    }
  });
  walker.join();
  EXPECT_EQ(All().size(), size_t{kStay});
}

}  // namespace
}  // namespace farside::conformance
