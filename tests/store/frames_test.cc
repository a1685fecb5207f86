// How many coroutine frames an operation takes through the public API. A frame costs more than a hundred
// instructions, so one more of them is a decision and no accident. `./dev bench instructions --frames` names
// their coroutines.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "farside/farside.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/frame_count.h"
#include "tests/support/heap_count.h"

namespace farside::store {
namespace {

constexpr size_t kRecords = 300;

struct Limits {
  std::string engine;
  uint64_t get = 0;
  uint64_t put = 0;  // of a present key
};
void PrintTo(const Limits& limits, std::ostream* out) { *out << limits.engine; }

class FramesTest : public StoreTest, public testing::WithParamInterface<Limits> {
 protected:
  FramesTest()
      : session_(Must(pool_.NewSession())),
        records_(Must(pool_.CreateTable("records", {.engine = GetParam().engine, .options = {}}))) {
    for (size_t i = 0; i < kRecords; ++i) keys_.push_back("user" + std::to_string(100'000 + i));
    for (int pass = 0; pass < 2; ++pass) {  // caches and free lists as they are in a steady state
      for (const std::string& key : keys_) {
        Put(key);
        Get(key);
      }
    }
  }

  void Put(const std::string& key) { Must(session_.Put(records_, key, std::string_view(value_))); }
  void Get(const std::string& key) { EXPECT_TRUE(Must(session_.Get(records_, key, read_))); }

  struct Cost {
    uint64_t frames = 0;
    uint64_t allocations = 0;  // on the heap
  };
  // Of most operations: the median. Some do more than their own work, such as maintenance.
  template <class Operation>
  Cost CostOf(Operation operation) {
    std::vector<uint64_t> frames;
    std::vector<uint64_t> allocations;
    for (const std::string& key : keys_) {
      const uint64_t frames_before = FramesTaken();
      const uint64_t allocations_before = HeapAllocations();
      operation(key);
      allocations.push_back(HeapAllocations() - allocations_before);
      frames.push_back(FramesTaken() - frames_before);
    }
    return {.frames = Median(frames), .allocations = Median(allocations)};
  }

  farside::Session session_;
  const Table records_;
  std::vector<std::string> keys_;
  const std::string value_ = std::string(64, 'v');
  std::string read_;

 private:
  static uint64_t Median(std::vector<uint64_t> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers[numbers.size() / 2];
  }
};

TEST_P(FramesTest, Get_TakesNoMoreFramesThanItsLimit) {
  // Given records that are there, and caches that know them. When they are got one by one. Expect no more
  // frames than the engine is allowed, and nothing from the heap.
  const Cost get = CostOf([this](const std::string& key) { Get(key); });
  EXPECT_GT(get.frames, 0u);  // they are counted
  EXPECT_LE(get.frames, GetParam().get);
  EXPECT_EQ(get.allocations, 0u);
}

TEST_P(FramesTest, PutOfAPresentKey_TakesNoMoreFramesThanItsLimit) {
  // Given the same. When their values are replaced. Expect the same.
  const Cost put = CostOf([this](const std::string& key) { Put(key); });
  EXPECT_GT(put.frames, 0u);  // they are counted
  EXPECT_LE(put.frames, GetParam().put);
  EXPECT_EQ(put.allocations, 0u);
}

// A lower count lowers the limit with it; a higher one needs a reason.
INSTANTIATE_TEST_SUITE_P(Engines, FramesTest,
                         testing::Values(Limits{.engine = "shard", .get = 1, .put = 5},
                                         Limits{.engine = "chime", .get = 4, .put = 6}),
                         [](const auto& limits) { return limits.param.engine; });

}  // namespace
}  // namespace farside::store
