// Every engine in a pool whose free memory lies in sparse chunks of other sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/engines/conformance/engine.h"

namespace farside::conformance {
namespace {

constexpr double kPoolBytes = 32.0 * 1024 * 1024;

class EvacuationTest : public testing::TestWithParam<EngineUnderTest> {
 protected:
  EvacuationTest()
      : pool_(Must(Pool::Open("embedded:?size=32MiB"))),
        table_(MakeTable()),
        session_(Must(pool_.NewSession())) {}

  // As few buckets as take the small records that fit into the pool, of an engine that does not grow.
  Table MakeTable() {
    const index::OptionMap options = Must(GetParam().make({}))->OptionsFor({.records = 28'000});
    return Must(pool_.CreateTable("t", {.engine = GetParam().engine, .options = options}));
  }

  static std::string Key(size_t i) { return "key-" + std::to_string(1'000'000 + i); }
  static std::string Value(size_t i, size_t bytes) {
    return std::string(bytes, static_cast<char>('a' + i % 26));
  }

  // False: the pool is full.
  bool Put(size_t bytes) {
    const Status put = session_.Put(table_, Key(next_), Value(next_, bytes));
    if (!put.ok()) {
      EXPECT_EQ(put.error().code(), ErrorCode::kOutOfMemory) << put.error().ToString();
      return false;
    }
    live_bytes_ += static_cast<double>(Key(next_).size() + bytes);
    live_.push_back({next_++, bytes});
    return true;
  }
  void DeleteSome() {
    std::swap(live_[random_.Below(live_.size())], live_.back());
    const auto [number, bytes] = live_.back();
    EXPECT_TRUE(Must(session_.Delete(table_, Key(number))));
    live_bytes_ -= static_cast<double>(Key(number).size() + bytes);
    live_.pop_back();
  }
  void ExpectAll() {
    for (const auto& [number, bytes] : live_) {
      const std::optional<std::string> value = Must(session_.Get(table_, Key(number)));
      ASSERT_TRUE(value == Value(number, bytes)) << number;
    }
  }
  double live_share() const { return live_bytes_ / kPoolBytes; }

  struct Stored {
    size_t number;
    size_t bytes;
  };
  Pool pool_;
  Table table_;
  Session session_;
  Random random_{7};
  std::vector<Stored> live_;
  double live_bytes_ = 0;
  size_t next_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Engines, EvacuationTest, testing::ValuesIn(RoomyEngines()), LabelOf);

TEST_P(EvacuationTest, SmallRecordsFollowLargeOnes_ThePoolIsFilledAgain) {
  // Given a pool that was filled with values of 4,000 bytes, of which 85 % were deleted at random: every
  // chunk holds a few of them.
  while (Put(4000)) continue;
  const size_t kept = live_.size() * 15 / 100;
  while (live_.size() > kept) DeleteSome();
  EXPECT_LT(live_share(), 0.15);
  // When values of 500 bytes are put until the pool is full.
  while (Put(500)) continue;
  // Expect that nearly all of it is in use, and that every record is there.
  EXPECT_GE(live_share(), 0.8);
  ExpectAll();
}

TEST_P(EvacuationTest, ChurnOfMixedSizes_NeverFindsThePoolFull) {
  // Given a pool of which 70 % are live, in records of 16 to 8,000 bytes, small ones as often as large ones.
  // When records are put, and others deleted to make room for them, twice as many as the pool has bytes.
  double put_bytes = 0;
  while (put_bytes < 2 * kPoolBytes) {
    const auto bytes =
        static_cast<size_t>(16 * std::pow(500.0, static_cast<double>(random_.Below(10'000)) / 1e4));
    while (live_bytes_ + static_cast<double>(bytes) > 0.7 * kPoolBytes) DeleteSome();
    ASSERT_TRUE(Put(bytes)) << "at " << live_share();
    put_bytes += static_cast<double>(bytes);
  }
  ExpectAll();
}

}  // namespace
}  // namespace farside::conformance
