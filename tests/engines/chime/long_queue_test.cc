// A chime table as a queue for a long time, as a program uses it: through a session, with default options.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "farside/farside.h"
#include "store/access.h"
#include "store/session_state.h"
#include "tests/store/quiet_pool.h"

namespace farside::index::chime {
namespace {

constexpr uint64_t kWindow = 10'000;
constexpr uint64_t kEarly = 10 * kWindow;

uint64_t Records() { return std::getenv("FARSIDE_LONG") != nullptr ? 20'000'000 : 200'000; }

// What keys are like.
enum class Keys : uint8_t {
  kInline,
  kBytes,  // with keys=bytes, different in their first 8 bytes
  kAlike,  // with keys=bytes, and bounds in blocks of their own
};

class ChimeLongQueue : public testing::TestWithParam<Keys> {
 protected:
  static std::string KeyOf(uint64_t i) {
    switch (GetParam()) {
      case Keys::kInline: return fmt::format("{:08}", i);
      case Keys::kBytes: return fmt::format("{:08} and more", i);
      case Keys::kAlike: return fmt::format("{:012}", i);
    }
    return "";
  }
  // Whole chunks: all of the pool that is not free.
  static uint64_t BytesOwned(Session& session) {
    pool::PoolClient& pool = store::Access::StateOf(session).registration().pool();
    return pool.allocator(fabric::NodeId{0}).stats().bytes_owned;
  }
  // A trip for the root block and the inner nodes, one for the leaves, and one for blocks. All records of a
  // leaf that begin like the first one have to be READ, and devices answer 16 READs in a trip; a leaf has 64.
  static uint64_t MostTrips() { return GetParam() == Keys::kAlike ? 2 + 64 / 16 : 3; }
};
std::string NameOfKeys(const testing::TestParamInfo<Keys>& keys) {
  constexpr std::array kNames = {"Inline", "Bytes", "Alike"};
  return kNames[static_cast<size_t>(keys.param)];
}
INSTANTIATE_TEST_SUITE_P(Keys, ChimeLongQueue, testing::Values(Keys::kInline, Keys::kBytes, Keys::kAlike),
                         NameOfKeys);

TEST_P(ChimeLongQueue, RecordsComeAndGo_MemoryIsFlatAndFirstTakesThreeTrips) {
  // Given a queue of 10,000 records in a pool of 16 MiB
  // When 200,000 records come at the end and go at the front; with FARSIDE_LONG 20 million
  // Expect that the session owns no more of the pool than early on, and that the first record is found in
  // three trips; in more only if it takes more than 16 READs to tell which of its leaf's records is the first
  const store::TickingClock clock;
  Pool pool(store::OpenQuietPool(&clock, "embedded:?size=16MiB"));
  const std::string kind = GetParam() == Keys::kInline ? "inline" : "bytes";
  const Table table = *pool.CreateTable("queue", {.engine = "chime", .options = {{"keys", kind}}});
  Session session = *pool.NewSession();
  uint64_t early = 0;
  uint64_t late = 0;
  uint64_t most = 0;
  uint64_t looks = 0;
  uint64_t trips = 0;
  const uint64_t records = Records();
  for (uint64_t i = 0; i < records; ++i) {
    ASSERT_TRUE(session.Put(table, KeyOf(i), "value of").ok());
    if (i < kWindow) continue;
    ASSERT_TRUE(*session.Delete(table, KeyOf(i - kWindow)));
    if (i % 97 != 0 || i < 2 * kWindow) continue;
    const uint64_t before = session.traffic().trips;
    const std::optional<Record> first = *session.First(table);
    const uint64_t took = session.traffic().trips - before;
    ASSERT_TRUE(first.has_value());
    ASSERT_EQ(first->key, KeyOf(i - kWindow + 1));
    ASSERT_LE(took, MostTrips()) << "after " << i;
    most = std::max(most, took);
    trips += took;
    ++looks;
    uint64_t& owned = i < kEarly ? early : late;
    owned = std::max(owned, BytesOwned(session));
  }
  EXPECT_LE(late, early);
  const TableStats stats = *session.Stats(table);
  RecordProperty("most_trips", std::to_string(most));
  RecordProperty("mean_trips", std::to_string(static_cast<double>(trips) / static_cast<double>(looks)));
  RecordProperty("early_bytes", std::to_string(early));
  RecordProperty("late_bytes", std::to_string(late));
  RecordProperty("index_bytes", std::to_string(stats.index_bytes));
  RecordProperty("block_bytes", std::to_string(stats.block_bytes));
  RecordProperty("client_bytes", std::to_string(stats.client_bytes));
}

}  // namespace
}  // namespace farside::index::chime
