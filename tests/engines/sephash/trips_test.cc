// What the operations of the sephash table cost, counted by the fabric.
#include <gtest/gtest.h>

#include <string>

#include "tests/engines/sephash/world.h"

namespace farside::index::sephash {
namespace {

using fabric::OpTally;
using fabric::Purpose;
using fabric::VerbKind;

// What one operation has cost.
struct Cost {
  uint64_t trips = 0;        // end to end
  uint64_t index_trips = 0;  // without those that read blocks and nothing else
  uint64_t detached = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t cas = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t retries = 0;
};

Cost CostOf(const OpTally& after, const OpTally& before) {
  Cost cost;
  cost.trips = after.end_to_end_trips - before.end_to_end_trips;
  cost.index_trips = after.index_trips - before.index_trips;
  cost.detached = after.detached_trips - before.detached_trips;
  cost.retries = after.retries - before.retries;
  for (const Purpose purpose : {Purpose::kIndex, Purpose::kBlock}) {
    const auto& verbs = after.by_purpose[static_cast<size_t>(purpose)];
    const auto& earlier = before.by_purpose[static_cast<size_t>(purpose)];
    const auto count = [&](VerbKind kind) {
      return verbs.verbs[static_cast<size_t>(kind)] - earlier.verbs[static_cast<size_t>(kind)];
    };
    cost.reads += count(VerbKind::kRead);
    cost.writes += count(VerbKind::kWrite);
    cost.cas += count(VerbKind::kCas);
    cost.bytes_read += verbs.bytes_read - earlier.bytes_read;
    cost.bytes_written += verbs.bytes_written - earlier.bytes_written;
  }
  return cost;
}

class SephashTrips : public testing::TestWithParam<bool> {
 protected:
  // READs keep their order, or do not.
  static WorldOptions Calm() {
    WorldOptions options{.region_bytes = 32 << 20};
    options.chaos.ordered_reads = GetParam();
    return options;
  }
  // The default table, with rounds of 126 entries: two of them were merged, and a third has begun.
  SephashTrips() : world_(Calm()), member_(world_, {}) {
    for (int i = 0; i < kInMain + kInRound; ++i) Put(fmt::format("k{}", i));
    EXPECT_EQ(member_.merge_counts().merges, 2u);
    // The first search of a segment reads what stands before the entries of its MainSegment.
    Get("k0");
  }
  ~SephashTrips() override { EXPECT_EQ(world_.problem, ""); }

  template <class T>
  Cost Run(Task<T> task) {
    const OpTally before = member_.client().counters().Total();
    last_ = member_.Try(std::move(task)).ok();
    return CostOf(member_.client().counters().Total(), before);
  }
  Cost Put(const std::string& key) { return Run(member_.Put(key, "value of")); }
  Cost Get(const std::string& key) { return Run(member_.Get(key)); }
  bool IsInFilter(const std::string& key) const {
    const uint8_t fp = FpOf(TagOf(HashOf(key), member_.options().shape, 0));
    const Image image(world_, member_.options().shape);
    return image.At<uint8_t>(image.MetaAt(0).main() + FilterByteOffset(fp)) != 0;
  }
  // One of k0, k1 ... in the MainSegment, or of those that are not there at all, that the filter has or not.
  std::string KeyIn(bool main, bool filter) const {
    for (int i = 0;; ++i) {
      std::string key = fmt::format("k{}", main ? i : i + 1000);
      if (IsInFilter(key) == filter) return key;
    }
  }
  bool ordered() const { return GetParam(); }

  static constexpr int kInMain = 2 * 126;
  static constexpr int kInRound = 10;

  World world_;
  Member member_;
  bool last_ = false;  // the last operation succeeded
};
INSTANTIATE_TEST_SUITE_P(Reads, SephashTrips, testing::Values(true, false),
                         [](const auto& ordered) { return ordered.param ? "InOrder" : "WithoutOrder"; });

TEST_P(SephashTrips, Put_OneToLookOneToAppend) {
  // Given a client that knows the segment. When it puts keys, new ones and old ones.
  // Expect two trips: a READ of the slots up to a few behind the last one, and WRITE block, WRITE filter
  // byte, CAS; whether READs have an order or not.
  for (int i = 0; i < 20; ++i) {
    const Cost cost = Put(fmt::format("{}{}", i % 2 == 0 ? "k" : "new", i));
    EXPECT_EQ(cost.trips, 2u);
    EXPECT_EQ(cost.index_trips, 2u);
    EXPECT_EQ(cost.reads, 1u);
    EXPECT_EQ(cost.writes, 2u);
    EXPECT_EQ(cost.cas, 1u);
    EXPECT_EQ(cost.retries, 0u);
    EXPECT_EQ(cost.bytes_written, 64u + 1 + 8);
    EXPECT_EQ(cost.bytes_read, sizeof(SegmentHeader) + 8u * (kInRound + i + 16) + 8);
  }
}

TEST_P(SephashTrips, SearchInMain_OneForTheIndexAndTheBlock) {
  // Given a client that remembers the MainSegment. When it looks for keys of it whose fingerprints the filter
  // does not have. Expect one trip for meta word, filter and entries, and one for the block. Where READs have
  // no order, the meta word takes a trip of its own.
  const Cost cost = Get(KeyIn(/*main=*/true, /*filter=*/false));
  EXPECT_EQ(cost.trips, ordered() ? 2u : 3u);
  EXPECT_EQ(cost.index_trips, ordered() ? 1u : 2u);
  EXPECT_EQ(cost.reads, 4u);
  EXPECT_EQ(cost.retries, 0u);
  EXPECT_LE(cost.bytes_read, sizeof(SegmentHeader) + sizeof(FilterLine) + 16 * sizeof(Entry) + 64);
}

TEST_P(SephashTrips, SearchInMainThatTheFilterDoubts_TheBlockComesAlong) {
  // Given a key of the MainSegment whose fingerprint an entry of the round has too. Expect that the
  // CurSegment is read together with the block: not one trip more.
  const Cost cost = Get(KeyIn(/*main=*/true, /*filter=*/true));
  EXPECT_EQ(cost.trips, ordered() ? 2u : 3u);
  EXPECT_EQ(cost.reads, 5u);
}

TEST_P(SephashTrips, SearchInTheRound_OneMore) {
  // Given a key that was put a moment ago. Expect a trip for the filter, one for the CurSegment, and one for
  // the block.
  const Cost cost = Get(fmt::format("k{}", kInMain + 1));
  EXPECT_EQ(cost.trips, ordered() ? 3u : 4u);
  EXPECT_EQ(cost.index_trips, ordered() ? 2u : 3u);
}

TEST_P(SephashTrips, SearchForAnAbsentKey_OneTrip) {
  // Given a key that is not there. Expect no block to be read; and the CurSegment only if the filter has its
  // fingerprint.
  EXPECT_EQ(Get(KeyIn(/*main=*/false, /*filter=*/false)).trips, ordered() ? 1u : 2u);
  EXPECT_EQ(Get(KeyIn(/*main=*/false, /*filter=*/true)).trips, ordered() ? 2u : 3u);
}

TEST_P(SephashTrips, Insert_OneForEverythingOneToAppend) {
  // Given a client that remembers the MainSegment. When it inserts a key. Expect a trip for the CurSegment,
  // the count of merges and the entries, and one to append. Where READs have no order, the CurSegment takes a
  // trip of its own.
  const std::string key = KeyIn(/*main=*/false, /*filter=*/false);
  const Cost cost = Run(member_.Insert(key, "value of"));
  EXPECT_EQ(cost.trips, ordered() ? 2u : 3u);
  EXPECT_EQ(cost.reads, 3u);
  EXPECT_EQ(cost.writes, 2u);
  EXPECT_EQ(cost.cas, 1u);
  const Cost refused = Run(member_.Insert(key, "value of"));
  EXPECT_EQ(refused.trips, ordered() ? 2u : 3u) << "and nothing is written";
  EXPECT_EQ(refused.writes + refused.cas, 0u);
}

TEST_P(SephashTrips, UpdateAndDelete_OneForTheBlockMore) {
  // Given a key of the MainSegment. When it is updated and deleted.
  // Expect three trips: everything that decides, the block, the append. A delete writes no block; nor does
  // this one write the filter, which the update has done.
  const std::string key = KeyIn(/*main=*/true, /*filter=*/false);
  const Cost updated = Run(member_.Update(key, "new value"));
  EXPECT_EQ(updated.trips, ordered() ? 3u : 4u);
  EXPECT_EQ(updated.writes, 2u);
  EXPECT_EQ(updated.cas, 1u);
  const Cost deleted = Run(member_.Delete(key));
  EXPECT_EQ(deleted.trips, ordered() ? 3u : 4u);
  EXPECT_EQ(deleted.writes, 0u);
  EXPECT_EQ(deleted.cas, 1u);
  EXPECT_EQ(deleted.bytes_written, 8u);
  const Cost absent = Run(member_.Delete(key));
  EXPECT_EQ(absent.writes + absent.cas, 0u) << "the tombstone says that the key is not there";
}

TEST_P(SephashTrips, PutThatFillsARound_MergesInThreeTripsAtMost) {
  // Given a round with one slot left. When a put fills it.
  // Expect its own two trips, and those of the merge: READ the MainSegment, a head and a page; READ the
  // blocks whose entries have the same tag, if there are any; WRITE the new one and commit. Five in all, at
  // most.
  for (int i = kInRound; i < 125; ++i) Put(fmt::format("new{}", i));
  const Cost cost = Put("last");
  EXPECT_EQ(member_.merge_counts().merges, 3u);
  EXPECT_LE(cost.trips, 5u);
  RecordProperty("trips", std::to_string(cost.trips - 2));
  RecordProperty("reads", std::to_string(cost.reads - 1));
  RecordProperty("writes", std::to_string(cost.writes - 2));
  RecordProperty("cas", std::to_string(cost.cas - 1));
  EXPECT_EQ(cost.writes - 2, 2u);
  EXPECT_EQ(cost.cas - 1, 1u);
  // And once more with all keys of the round in the MainSegment: of each, two blocks are read, 16 by a trip.
  for (int i = 0; i < 125; ++i) Put(fmt::format("k{}", i));
  const Cost again = Put("k125");
  EXPECT_EQ(member_.merge_counts().merges, 4u);
  RecordProperty("trips of updates", std::to_string(again.trips - 2));
  EXPECT_LE(again.reads - 1, 2u + 2 * 126);
}

class SephashSplitTrips : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ZeroWait, SephashSplitTrips, testing::Values(true, false),
                         [](const auto& zero_wait) { return zero_wait.param ? "Yes" : "No"; });

TEST_P(SephashSplitTrips, Split_OneCommit) {
  // Given a table whose segment is too large after the next merge. When a put fills the round.
  // Expect two trips of the put; READ MainSegment; READ root, WRITE the new part, CAS it into the root; WRITE
  // both MainSegments and the sibling and commit. The entry in the directory costs a trip only if it is
  // waited for.
  World world;
  Member member(world, {{"entries", "8"}, {"main", "1"}, {"zero_wait", GetParam() ? "yes" : "no"}});
  for (int i = 0; i < 15; ++i) member.Now(member.Put(fmt::format("k{}", i), "v"));
  const OpTally before = member.client().counters().Total();
  member.Now(member.Put("k15", "v"));
  const Cost cost = CostOf(member.client().counters().Total(), before);
  EXPECT_EQ(member.merge_counts().splits, 1u);
  const uint64_t put = GetParam() ? 2 : 3;  // the filter byte has a trip of its own
  EXPECT_EQ(cost.trips, put + 1 + 3 + 1 + (GetParam() ? 0 : 1));
  EXPECT_EQ(cost.detached, GetParam() ? 1u : 0u);
  member.Now(member.Maintain());  // waits for the entry in the directory
  const Image image(world, member.options().shape);
  const uint64_t pages = image.MetaAt(0).pages() + image.MetaAt(1).pages();
  EXPECT_EQ(cost.writes, 2u + 1 + 3 + pages);
  EXPECT_EQ(cost.cas, 1u + 1 + 1 + 1);
  EXPECT_EQ(world.problem, "");
}

TEST(SephashGrowth, FromEmpty_TripsPerInsertAndWhatIsMergedAreExact) {
  // Given an empty table of the default shape. When one client puts 20000 keys.
  // Expect as many merges as rounds were filled, all splits among them, and at most 2.5 trips for a put, all
  // of it counted.
  World world({.region_bytes = 64 << 20});
  Member member(world, {});
  constexpr uint64_t kKeys = 20'000;
  for (uint64_t i = 0; i < kKeys; ++i) member.Now(member.Put(fmt::format("key {}", i), "value"));
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(stats.records, kKeys);
  const auto in_round = static_cast<uint64_t>(DetailOf(stats, "entries of CurSegments"));
  EXPECT_EQ(member.merge_counts().merges * 126, kKeys - in_round);
  EXPECT_EQ(member.merge_counts().splits + 1, static_cast<uint64_t>(DetailOf(stats, "segments")));
  const OpTally total = member.client().counters().Total();
  const double trips = static_cast<double>(total.end_to_end_trips) / static_cast<double>(kKeys);
  RecordProperty("trips", std::to_string(trips));
  EXPECT_LE(trips, 2.5);
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::sephash
