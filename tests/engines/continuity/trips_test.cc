// What the operations of the continuity table cost: trips and READs, counted by the fabric, and lines that a
// node flushes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/continuity.h"
#include "tests/engines/continuity/bare_table.h"
#include "tests/engines/continuity/scenarios.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {
namespace {

using fabric::OpTally;
using fabric::Purpose;
using fabric::VerbKind;

// What one operation has cost.
struct Cost {
  uint64_t trips = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t calls = 0;
  uint64_t bytes_read = 0;  // by READs; a Call counts its reply

  friend bool operator==(const Cost&, const Cost&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Cost& cost) {
    return out << fmt::format("{} trips, {} READ {} WRITE {} Call, {} B", cost.trips, cost.reads, cost.writes,
                              cost.calls, cost.bytes_read);
  }
};

Cost CostOf(const OpTally& after, const OpTally& before) {
  Cost cost{.trips = after.end_to_end_trips - before.end_to_end_trips};
  for (const Purpose purpose : {Purpose::kIndex, Purpose::kBlock}) {
    const auto& verbs = after.by_purpose[static_cast<size_t>(purpose)];
    const auto& earlier = before.by_purpose[static_cast<size_t>(purpose)];
    const auto count = [&](VerbKind kind) {
      return verbs.verbs[static_cast<size_t>(kind)] - earlier.verbs[static_cast<size_t>(kind)];
    };
    cost.reads += count(VerbKind::kRead);
    cost.writes += count(VerbKind::kWrite);
    cost.calls += count(VerbKind::kCall);
    cost.bytes_read += verbs.bytes_read - earlier.bytes_read;
  }
  if (cost.calls > 0) cost.bytes_read = 0;
  return cost;
}

fabric::sim::Chaos CalmChaos(bool ordered_reads) {
  fabric::sim::Chaos chaos = fabric::sim::Chaos::Calm();
  chaos.ordered_reads = ordered_reads;
  return chaos;
}

// A client that has its memory, and a table.
struct Measured {
  explicit Measured(const OptionMap& options, bool ordered_reads = true)
      : world({.region_bytes = 16 << 20, .chaos = CalmChaos(ordered_reads)}),
        member(world, "continuity", MakeContinuityEngine, options) {
    member.Now(member.Put("first", std::string(100, 'v')));
    member.Now(member.Delete("first"));
  }
  ~Measured() { EXPECT_EQ(world.problem, ""); }
  template <class T>
  Cost Run(Task<T> task) {
    const OpTally before = member.client().counters().Total();
    member.Now(std::move(task));
    return CostOf(member.client().counters().Total(), before);
  }
  Root root() const {
    Root root{};
    std::memcpy(&root, world.memory().data() + member.roots()[0].offset, sizeof root);
    return root;
  }

  TableWorld world;
  TableMember member;
};

// READ indicator, READ segment, READ indicator.
constexpr Cost kLookup{.trips = 1, .reads = 3, .bytes_read = 8 + 544 + 8};
constexpr Cost kOneCall{.trips = 1, .calls = 1};

TEST(ContinuityTrips, Lookups_OneTripOfThreeReads) {
  // Given records in slots of both kinds of buckets, and a long one
  // When they are searched, and a key that is not there
  // Expect one trip; one more, of a block, for the long one
  Measured table(OptionMap{{"pairs", "4"}});
  for (int i = 0; i < 20; ++i) table.member.Now(table.member.Put(fmt::format("k{}", i), "v"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(table.Run(table.member.Get(fmt::format("k{}", i))), kLookup) << i;
  EXPECT_EQ(table.Run(table.member.Get("absent")), kLookup);
  table.member.Now(table.member.Put("long", std::string(80, 'v')));
  EXPECT_EQ(table.Run(table.member.Get("long")),
            (Cost{.trips = 2, .reads = 4, .bytes_read = 8 + 544 + 8 + 128}));
}

TEST(ContinuityTrips, LookupsWithoutOrder_OneTripForEachRead) {
  // Given READs that have no order
  // When a key is searched
  // Expect the same READs in three trips
  Measured table(OptionMap{{"pairs", "4"}}, false);
  table.member.Now(table.member.Put("a", "v"));
  Cost cost = kLookup;
  cost.trips = 3;
  EXPECT_EQ(table.Run(table.member.Get("a")), cost);
}

TEST(ContinuityTrips, LookupInAGroup_OneTripMore) {
  // Given a key in a group
  // When it is searched
  // Expect a second trip, of the group and the indicator
  Measured table(OneOfEach(true));
  for (int i = 0; i < 3; ++i) table.member.Now(table.member.Put(KeyOf(false, i), "v"));
  EXPECT_EQ(table.root().current.doublings(), 0u);
  EXPECT_EQ(table.Run(table.member.Get(KeyOf(false, 1))), kLookup);
  EXPECT_EQ(table.Run(table.member.Get(KeyOf(false, 2))),
            (Cost{.trips = 2, .reads = 5, .bytes_read = 8 + 544 + 8 + 12 * 32 + 8}));
}

TEST(ContinuityTrips, Changes_OneCall) {
  // Given a table with room
  // When records are inserted, updated and deleted
  // Expect one Call; of a long record a WRITE of its block before it
  Measured table(OptionMap{{"pairs", "4"}});
  TableMember& member = table.member;
  EXPECT_EQ(table.Run(member.Insert("a", "v")), kOneCall);
  EXPECT_EQ(table.Run(member.Update("a", "w")), kOneCall);
  EXPECT_EQ(table.Run(member.Put("a", "x")), kOneCall);
  EXPECT_EQ(table.Run(member.Insert("a", "y")), kOneCall) << "refused";
  EXPECT_EQ(table.Run(member.Delete("a")), kOneCall);
  EXPECT_EQ(table.Run(member.Delete("a")), kOneCall) << "refused";
  const Cost long_change{.trips = 2, .writes = 1, .calls = 1};
  EXPECT_EQ(table.Run(member.Insert("b", std::string(80, 'v'))), long_change);
  EXPECT_EQ(table.Run(member.Update("b", std::string(80, 'w'))), long_change);
  EXPECT_EQ(table.Run(member.Delete("b")), kOneCall);
}

TEST(ContinuityTrips, GroupsAndGrowth) {
  // Given a table of one slot of each kind
  // When a key needs a group, and another one a larger table
  // Expect two Calls for the group: the first says what is missing; of growth a third one, that announces the
  // table
  Measured table(OneOfEach(true));
  for (int i = 0; i < 2; ++i) table.member.Now(table.member.Put(KeyOf(false, i), "v"));
  const Cost group = table.Run(table.member.Put(KeyOf(false, 2), "v"));
  EXPECT_EQ(group.calls, 2u);
  EXPECT_EQ(table.root().current.doublings(), 0u);
  const Cost growth = table.Run(table.member.Put(KeyOf(false, 3), "v"));
  EXPECT_GE(growth.calls, 3u);
  EXPECT_GE(table.root().current.doublings(), 1u);
}

TEST(ContinuityTrips, AFullTable_AtMostOneTenthMore) {
  // Given a table of which one pair in ten may have a group, filled until it is about to grow
  // When every key is searched
  // Expect at most 1.10 trips on average, and groups
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const OptionMap options{{"pairs", "50"}, {"group_every", "10"}};
    const auto key = [seed](uint64_t i) { return fmt::format("s{}k{}", seed, i); };
    uint64_t records = 0;
    {
      Measured probe(options);
      while (!probe.root().growing() && probe.root().current.doublings() == 0)
        probe.member.Now(probe.member.Put(key(records++), "v"));
    }
    --records;
    Measured table(options);
    for (uint64_t i = 0; i < records; ++i) table.member.Now(table.member.Put(key(i), "v"));
    ASSERT_EQ(table.root().current.doublings(), 0u);
    ASSERT_FALSE(table.root().growing());
    uint64_t trips = 0;
    for (uint64_t i = 0; i < records; ++i) trips += table.Run(table.member.Get(key(i))).trips;
    const double mean = static_cast<double>(trips) / static_cast<double>(records);
    RecordProperty(fmt::format("mean trips {}", seed), fmt::format("{:.4f}", mean));
    RecordProperty(fmt::format("load {}", seed), fmt::format("{:.3f}", static_cast<double>(records) / 1000));
    EXPECT_GT(mean, 1.0);
    EXPECT_LE(mean, 1.10);
  }
}

// ---- lines that handlers flush

struct Flushed {
  explicit Flushed(Shape shape)
      : bytes(EmptyTable(shape, 64 * 1024)), memory(bytes), client(FirstFree(shape)) {}
  uint64_t Lines(const BareChange& change) {
    const uint64_t before = memory.flushed().lines;
    EXPECT_TRUE(client.Make(memory, change).ok());
    return memory.flushed().lines - before;
  }

  std::vector<std::byte> bytes;
  PlainMemory memory;
  BareClient client;
};

TEST(ContinuityFlushes, Insert_Update_Delete_TwoTwoOne) {
  // Given a table with room
  // When records of all sizes that fit into slots are inserted, updated and deleted
  // Expect that exactly 2, 2 and 1 lines are flushed; and none by a change that is refused
  Flushed table(Shape(4, 4, 12, 12, 10));
  for (size_t value = 0; value + 2 <= 31; ++value) {
    const std::string key = fmt::format("{:02}", value);
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kInsert, .key = key, .value = std::string(value, 'v')}), 2u);
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kInsert, .key = key, .value = "refused"}), 0u);
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kUpdate, .key = key, .value = std::string(value, 'w')}), 2u);
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kCompareAndSet,
                           .key = key,
                           .value = "x",
                           .expected = std::string(value, 'w')}),
              2u);
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kDelete, .key = key}), 1u);
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kDelete, .key = key}), 0u);
  }
  EXPECT_EQ(table.Lines({.kind = ChangeKind::kIncrement, .key = "n", .delta = 1}), 2u);
  EXPECT_EQ(table.Lines({.kind = ChangeKind::kIncrement, .key = "n", .delta = 1}), 2u);
}

TEST(ContinuityFlushes, LongRecords_EachLineOfTheBlockMore) {
  // Given a table with room
  // When long records are inserted, updated and deleted
  // Expect one line more for each line of the block; a delete flushes no block
  Flushed table(Shape(4, 4, 12, 12, 10));
  for (const size_t value : {31, 39, 40, 100, 1000}) {
    const uint64_t block = (24 + 1 + value + 63) / 64;
    EXPECT_EQ(table.Lines({.key = "a", .value = std::string(value, 'v')}), 2 + block) << value;
    EXPECT_EQ(table.Lines({.key = "a", .value = std::string(value, 'w')}), 2 + block) << value;
    EXPECT_EQ(table.Lines({.kind = ChangeKind::kDelete, .key = "a"}), 1u);
  }
}

TEST(ContinuityFlushes, AGroup_TwoLinesMore) {
  // Given a pair that is full
  // When a key needs a group
  // Expect the count of the table and the pointer to the group, once
  Flushed table(Shape(1, 1, 2, 2, 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(table.Lines({.key = KeyOf(false, i), .value = "v"}), 2u);
  EXPECT_EQ(table.Lines({.key = KeyOf(false, 3), .value = "v"}), 4u);
  EXPECT_EQ(table.client.groups(), 1u);
  EXPECT_EQ(table.Lines({.key = KeyOf(false, 4), .value = "v"}), 2u);
  EXPECT_EQ(table.Lines({.kind = ChangeKind::kDelete, .key = KeyOf(false, 4)}), 1u);
}

TEST(ContinuityFlushes, GrowthBeginsWithThree_AndEndsWithTwo) {
  // Given a table of two pairs, one of them with a record
  // When it begins to grow, and its pairs are moved
  // Expect three lines; then one for the record, one for each of four new pairs and two marks, and two
  Flushed table(Shape(2, 4, 12, 12, 10));
  EXPECT_EQ(table.Lines({.key = "a", .value = "v"}), 2u);
  const auto lines_of = [&table](fabric::CallId call, std::string_view request) {
    const uint64_t before = table.memory.flushed().lines;
    EXPECT_TRUE(CallHandler(table.memory, call, request).ok());
    return table.memory.flushed().lines - before;
  };
  const GrowRequest grow{.root = kBareRoot, .table = table.client.free(), .doublings = 1};
  EXPECT_EQ(lines_of(kGrowCall, EncodeFixed(grow)), 3u);
  EXPECT_EQ(lines_of(kMoveCall, EncodeFixed(MoveRequest{.root = kBareRoot})), 1u + 4 + 2 + 2);
}

}  // namespace
}  // namespace farside::index::continuity
