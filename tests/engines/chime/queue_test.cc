// A chime table as a queue: keys that come in ascending order, and go at the front.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/engines/chime/world.h"

namespace farside::index::chime {
namespace {

using fabric::OpKind;

std::string QueueKey(bool inline_keys, uint64_t i) {
  return inline_keys ? fmt::format("{:08}", i) : fmt::format("a long prefix that all keys share {:012}", i);
}

class ChimeQueue : public testing::TestWithParam<std::tuple<bool, size_t>> {
 protected:
  bool inline_keys() const { return std::get<0>(GetParam()); }
  OptionMap options() const {
    return {{"keys", inline_keys() ? "inline" : "bytes"}, {"span", "8"}, {"fanout", "8"}};
  }
  // Bytes of leaves and inner nodes, and of long separators.
  static uint64_t IndexBytes(Member& member) { return member.Now(member.Stats()).index_bytes; }
  std::string First(Member& member) {
    const std::vector<Record> page = member.Now(member.Scan(KeyRange::All(), 1));
    return page.empty() ? "" : page[0].key;
  }
};
INSTANTIATE_TEST_SUITE_P(Keys, ChimeQueue,
                         testing::Combine(testing::Bool(), testing::Values(size_t{1}, size_t{2})));

TEST_P(ChimeQueue, RecordsComeAndGo_MemoryIsFlatAndFirstTakesThreeTrips) {
  // Given a queue of some records, in small leaves under small inner nodes
  // When many times as many records come at the end and go at the front
  // Expect that the tree does not grow, and that the first record is found in three trips, also by a client
  // that has just forgotten its inner nodes
  World world({.nodes = std::get<1>(GetParam())});
  Member member(world, options());
  constexpr uint64_t kWindow = 100;
  constexpr uint64_t kRecords = 3000;
  uint64_t early = 0;
  uint64_t most = 0;
  uint64_t most_forgotten = 0;
  const auto trips = [&member] { return member.tally(OpKind::kScan).end_to_end_trips; };
  for (uint64_t i = 0; i < kRecords; ++i) {
    member.Now(member.Put(QueueKey(inline_keys(), i), "value of"));
    if (i >= kWindow) {
      ASSERT_TRUE(member.Now(member.Delete(QueueKey(inline_keys(), i - kWindow))));
    }
    if (i % 100 == 99) member.Now(member.Maintain());
    if (i < 2 * kWindow || i % 17 != 0) continue;
    const std::string front = QueueKey(inline_keys(), i - kWindow + 1);
    const uint64_t before = trips();
    ASSERT_EQ(First(member), front);  // which remembers
    const uint64_t between = trips();
    ASSERT_EQ(First(member), front);
    most_forgotten = std::max(most_forgotten, between - before);
    most = std::max(most, trips() - between);
    ASSERT_EQ(member.Now(member.Last(KeyRange::All())), QueueKey(inline_keys(), i));
    const uint64_t bytes = IndexBytes(member);
    if (i < 10 * kWindow) early = std::max(early, bytes);
    ASSERT_LE(bytes, early) << "after " << i;
  }
  RecordProperty("most", std::to_string(most));
  RecordProperty("most_forgotten", std::to_string(most_forgotten));
  // On two memory nodes, leaves that follow each other take a trip each.
  const uint64_t allowed = std::get<1>(GetParam()) == 1 ? 3 : 8;
  EXPECT_LE(most, allowed);
  EXPECT_LE(most_forgotten, allowed);
  for (uint64_t i = kRecords - kWindow; i < kRecords; ++i)
    ASSERT_TRUE(member.Now(member.Delete(QueueKey(inline_keys(), i))));
  EXPECT_EQ(First(member), "");
  EXPECT_EQ(member.Now(member.Last(KeyRange::All())), "absent");
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::chime
