// What the operations of the nessie table cost, counted by the fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/nessie/layout.h"
#include "index/nessie/nessie.h"
#include "tests/support/table_world.h"

namespace farside::index::nessie {
namespace {

using fabric::OpTally;
using fabric::Purpose;
using fabric::VerbKind;

// What one operation has cost.
struct Cost {
  uint64_t trips = 0;        // end to end
  uint64_t index_trips = 0;  // without those that read items and nothing else
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t cas = 0;
  uint64_t masked_cas = 0;
  uint64_t bytes_read = 0;  // an atomic counts 8 in either direction
  uint64_t bytes_written = 0;

  friend bool operator==(const Cost&, const Cost&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Cost& cost) {
    return out << fmt::format(
               "{} trips ({} index), {} READ {} WRITE {} CAS {} masked, {} B read {} B written", cost.trips,
               cost.index_trips, cost.reads, cost.writes, cost.cas, cost.masked_cas, cost.bytes_read,
               cost.bytes_written);
  }
};

Cost CostOf(const OpTally& after, const OpTally& before) {
  Cost cost;
  cost.trips = after.end_to_end_trips - before.end_to_end_trips;
  cost.index_trips = after.index_trips - before.index_trips;
  for (const Purpose purpose : {Purpose::kIndex, Purpose::kBlock}) {
    const auto& verbs = after.by_purpose[static_cast<size_t>(purpose)];
    const auto& earlier = before.by_purpose[static_cast<size_t>(purpose)];
    const auto count = [&](VerbKind kind) {
      return verbs.verbs[static_cast<size_t>(kind)] - earlier.verbs[static_cast<size_t>(kind)];
    };
    cost.reads += count(VerbKind::kRead);
    cost.writes += count(VerbKind::kWrite);
    cost.cas += count(VerbKind::kCas);
    cost.masked_cas += count(VerbKind::kMaskedCas);
    cost.bytes_read += verbs.bytes_read - earlier.bytes_read;
    cost.bytes_written += verbs.bytes_written - earlier.bytes_written;
  }
  return cost;
}

constexpr uint64_t kLine = 64;
constexpr uint64_t kSlotsOfTable = 64;
constexpr Shape kShape{.initial_bits = 6};
static_assert(kShape.slots(1) == kSlotsOfTable);

struct Slots {
  uint64_t primary;
  uint64_t secondary;
};
Slots SlotsOf(std::string_view key, const Shape& shape) {
  const KeyHash hash(Hash64(AsBytes(key)));
  return {hash.SlotOf(shape, Candidate::kPrimary, 1), hash.SlotOf(shape, Candidate::kSecondary, 1)};
}

// The first of the keys "k0", "k1" ... whose slots fit.
std::string KeyWith(const std::function<bool(const Slots&)>& fits) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("k{}", i);
    if (fits(SlotsOf(key, kShape))) return key;
  }
}
std::string KeyAt(uint64_t primary, uint64_t secondary) {
  return KeyWith([=](const Slots& at) { return at.primary == primary && at.secondary == secondary; });
}

// A table of 64 slots that does not grow, and one client.
class NessieTrips : public testing::Test {
 protected:
  NessieTrips()
      : member_(world_, "nessie", MakeNessieEngine,
                {{"slots", std::to_string(kSlotsOfTable)}, {"grow", "no"}, {"chain", "2"}}) {
    // The first item takes memory from the pool, which is not a cost of the operation.
    member_.Now(member_.Insert(KeyAt(63, 62), "value of"));
    member_.Now(member_.Delete(KeyAt(63, 62)));
  }
  ~NessieTrips() override { EXPECT_EQ(world_.problem, ""); }

  template <class T>
  Cost Run(Task<T> task) {
    const OpTally before = member_.client().counters().Total();
    failed_ = !member_.Try(std::move(task)).ok();
    return CostOf(member_.client().counters().Total(), before);
  }
  Cost Insert(const std::string& key) { return Run(member_.Insert(key, "value of")); }
  Cost Get(const std::string& key) { return Run(member_.Get(key)); }
  Task<bool> CompareAndSet(std::string key, std::string expected, std::string desired) {
    fabric::Op op(member_.client(), fabric::OpKind::kUpdate);
    const bool applied = co_await member_.index().CompareAndSet(op, key, expected, desired);
    co_return applied;
  }
  Task<uint64_t> Increment(std::string key) {
    fabric::Op op(member_.client(), fabric::OpKind::kUpdate);
    const uint64_t counter = co_await member_.index().Increment(op, key, 1);
    co_return counter;
  }

  TableWorld world_;
  TableMember member_;
  bool failed_ = false;  // the last operation ended with an error
};

// WRITE item, masked CAS of the primary slot, READ of the secondary.
constexpr Cost kFreshInsert{.trips = 2,
                            .index_trips = 2,
                            .reads = 1,
                            .writes = 1,
                            .cas = 1,
                            .masked_cas = 1,
                            .bytes_read = 8 + 2 * 8,
                            .bytes_written = kLine + 2 * 8};
// READ both slots, READ the item; WRITE item, CAS, READ the other slot; CAS.
constexpr Cost kChange{.trips = 4,
                       .index_trips = 3,
                       .reads = 2 + 1 + 1,
                       .writes = 1,
                       .cas = 2,
                       .bytes_read = 2 * 8 + kLine + 8 + 2 * 8,
                       .bytes_written = kLine + 2 * 8};
// READ both slots, READ the item.
constexpr Cost kSearch{.trips = 2, .index_trips = 1, .reads = 3, .bytes_read = 2 * 8 + kLine};

TEST_F(NessieTrips, InsertIntoAnEmptyPrimarySlot_Two) {
  // Given an empty primary slot, and a secondary one that is empty or has another key.
  // When a key is inserted.
  // Expect WRITE item, masked CAS, READ in one trip, and the commit in the next.
  EXPECT_EQ(Insert(KeyAt(0, 1)), kFreshInsert);
  EXPECT_EQ(Insert(KeyAt(2, 0)), kFreshInsert);
}

TEST_F(NessieTrips, InsertWherePrimaryIsTaken_Three) {
  // Given a primary slot with another key. When a key is inserted. Expect that the first trip has looked at
  // both: the second one takes the secondary slot, and the third commits. The item is written twice.
  Insert(KeyAt(0, 1));
  EXPECT_EQ(Insert(KeyAt(0, 2)), (Cost{.trips = 3,
                                       .index_trips = 3,
                                       .reads = 2,
                                       .writes = 2,
                                       .cas = 2,
                                       .masked_cas = 1,
                                       .bytes_read = 2 * 8 + 3 * 8,
                                       .bytes_written = 2 * kLine + 3 * 8}));
}

TEST_F(NessieTrips, Put_LooksFirstUntilNewKeysAreExpected) {
  // Given a client that has put nothing. When it puts new keys. Expect that it looks first, three trips; and
  // does as an insert does once most keys were new.
  constexpr Cost kLooked{.trips = 3,
                         .index_trips = 3,
                         .reads = 3,
                         .writes = 1,
                         .cas = 2,
                         .bytes_read = 3 * 8 + 2 * 8,
                         .bytes_written = kLine + 2 * 8};
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(Run(member_.Put(KeyAt(i, 32 + i), "value of")), kLooked) << i;
  for (uint64_t i = 8; i < 16; ++i)
    EXPECT_EQ(Run(member_.Put(KeyAt(i, 32 + i), "value of")), kFreshInsert) << i;
  // A key that is there: the masked CAS fails, and the item is read then.
  EXPECT_EQ(Run(member_.Put(KeyAt(0, 32), "value of")), (Cost{.trips = 4,
                                                              .index_trips = 3,
                                                              .reads = 1 + 1 + 1,
                                                              .writes = 2,
                                                              .cas = 2,
                                                              .masked_cas = 1,
                                                              .bytes_read = 8 + kLine + 8 + 3 * 8,
                                                              .bytes_written = 2 * kLine + 3 * 8}));
}

TEST_F(NessieTrips, Search_TwoWhereverTheKeyStands) {
  // Given a key in its primary slot, and one in its secondary. When they are searched. Expect a trip for both
  // slots, and one for the item whose tag is the key's.
  Insert(KeyAt(0, 1));
  Insert(KeyAt(0, 2));
  EXPECT_EQ(Get(KeyAt(0, 1)), kSearch);
  EXPECT_EQ(Get(KeyAt(0, 2)), kSearch);
}

TEST_F(NessieTrips, SearchOfAnAbsentKey_BothSlotsTwice) {
  // Given empty slots, and slots with other keys. When keys are searched that are not there. Expect that both
  // slots are read twice, and no item.
  constexpr Cost kAbsent{.trips = 2, .index_trips = 2, .reads = 4, .bytes_read = 4 * 8};
  EXPECT_EQ(Get(KeyAt(0, 1)), kAbsent);
  Insert(KeyAt(0, 1));
  EXPECT_EQ(Get(KeyAt(0, 2)), kAbsent);
}

TEST_F(NessieTrips, InsertOfAPresentKey_ReadsTheItem) {
  // Given a key in its primary slot. When it is inserted again. Expect the first trip in vain, and one for
  // the item that is there.
  Insert(KeyAt(0, 1));
  EXPECT_EQ(Insert(KeyAt(0, 1)), (Cost{.trips = 2,
                                       .index_trips = 1,
                                       .reads = 2,
                                       .writes = 1,
                                       .masked_cas = 1,
                                       .bytes_read = 8 + kLine + 8,
                                       .bytes_written = kLine + 8}));
}

TEST_F(NessieTrips, ChangesOfAPresentKey_Four) {
  // Given a key. When it is updated, compared and set, and counted up. Expect a trip for the slots, one for
  // the item, one for the entry, one for the commit.
  Insert(KeyAt(0, 1));
  EXPECT_EQ(Run(member_.Update(KeyAt(0, 1), "new.....")), kChange);
  EXPECT_EQ(Run(CompareAndSet(KeyAt(0, 1), "new.....", "12345678")), kChange);
  EXPECT_EQ(Run(CompareAndSet(KeyAt(0, 1), "new.....", "wrong...")), kSearch) << "and nothing is written";
  EXPECT_EQ(Run(Increment(KeyAt(2, 3))).trips, 3u) << "a new key: no item to read";
  EXPECT_EQ(Run(Increment(KeyAt(2, 3))), kChange);
  EXPECT_FALSE(failed_);
}

TEST_F(NessieTrips, DeleteOfAPresentKey_Four) {
  // Given a key. When it is deleted, and deleted again. Expect what an update takes; and of a key that is not
  // there, two looks.
  Insert(KeyAt(0, 1));
  const Cost deleted = Run(member_.Delete(KeyAt(0, 1)));
  EXPECT_EQ(deleted.trips, 4u);
  EXPECT_EQ(deleted.index_trips, 3u);
  EXPECT_EQ(deleted.cas, 2u);
  EXPECT_LE(deleted.bytes_written, kChange.bytes_written);
  constexpr Cost kAbsent{.trips = 2, .index_trips = 2, .reads = 4, .bytes_read = 4 * 8};
  EXPECT_EQ(Run(member_.Delete(KeyAt(0, 1))), kAbsent);
  EXPECT_EQ(Run(member_.Update(KeyAt(0, 1), "new.....")), kAbsent);
}

TEST_F(NessieTrips, OneMigration_SevenTrips) {
  // Given a key both of whose slots are taken, and an item in its primary slot that can move. When the key is
  // inserted. Expect a trip that finds both taken; one that reads both items, one for the slots of their
  // keys; one that claims the destination, one that commits the copy; and two that put the key.
  Insert(KeyAt(0, 2));
  Insert(KeyAt(1, 3));
  EXPECT_EQ(Insert(KeyAt(0, 1)), (Cost{.trips = 7,
                                       .index_trips = 6,
                                       .reads = 1 + 2 + 4 + 1 + 1,
                                       .writes = 1 + 1 + 1,
                                       .cas = 2 + 2,
                                       .masked_cas = 1,
                                       .bytes_read = 8 + 2 * kLine + 4 * 8 + 8 + 8 + 5 * 8,
                                       .bytes_written = 3 * kLine + 5 * 8}));
  EXPECT_EQ(Get(KeyAt(0, 2)), kSearch) << "it has moved";
}

TEST_F(NessieTrips, TwoMigrations_FourTripsMore) {
  // Given a key both of whose slots are taken by items whose other slots are taken too. When the key is
  // inserted. Expect two more trips to follow the way, and two more to copy.
  Insert(KeyAt(0, 2));
  Insert(KeyAt(1, 3));
  Insert(KeyAt(2, 4));
  Insert(KeyAt(3, 5));
  EXPECT_EQ(Insert(KeyAt(0, 1)).trips, 11u);
  EXPECT_FALSE(failed_);
}

TEST_F(NessieTrips, NoPlace_TwoForEachStepOfTheWays) {
  // Given ways of more than two migrations from both slots of a key, the bound of this table. When the key is
  // inserted. Expect that the insert fails, has followed both to their bound, and has looked whether the key
  // is there: then it would have been refused.
  for (uint64_t i = 0; i < 6; ++i) Insert(KeyAt(i, i + 2));
  EXPECT_EQ(Insert(KeyAt(0, 1)).trips, 1u + 2 * 2 + kSearch.trips);
  EXPECT_TRUE(failed_);
}

TEST_F(NessieTrips, ItemsThatTheirWordsDoNotMeasure_OneMore) {
  // Given an item of 960 bytes, the most that a word says, and a larger one. When they are searched. Expect a
  // trip more for the latter: its first line says how long it is.
  const std::string small = KeyAt(0, 1);
  const std::string large = KeyAt(2, 3);
  const uint64_t most_value = 960 - sizeof(ItemHeader) - sizeof(pool::BlockHeader) - 8;
  member_.Now(member_.Insert(small, std::string(most_value, 'v')));
  member_.Now(member_.Insert(large, std::string(most_value + 64, 'v')));
  EXPECT_EQ(Get(small), (Cost{.trips = 2, .index_trips = 1, .reads = 3, .bytes_read = 2 * 8 + 960}));
  EXPECT_EQ(Get(large),
            (Cost{.trips = 3, .index_trips = 1, .reads = 4, .bytes_read = 2 * 8 + kLine + 960 + kLine}));
  EXPECT_EQ(Run(member_.Update(large, "new.....")).trips, kChange.trips + 1);
}

TEST(NessiePuts, OfNewKeys_AtMostThePapersTripsAtEveryLoad) {
  // Given a table of 4096 slots that does not grow, filled by puts to a load of table 1 of the paper; keys
  // that find no place are left out. When 4000 new keys are put there and each is deleted again.
  // Expect no more trips than the paper has for that load.
  constexpr uint64_t kSlots = 4096;
  constexpr uint64_t kPuts = 4000;
  constexpr std::array<std::pair<double, double>, 5> kTable1 = {
      {{0.1, 2.5}, {0.25, 3.5}, {0.5, 5.8}, {0.75, 9.9}, {0.9, 13.3}}};
  TableWorld world({.region_bytes = 32 << 20});
  TableMember member(world, "nessie", MakeNessieEngine, {{"slots", std::to_string(kSlots)}, {"grow", "no"}});
  uint64_t next = 0;
  uint64_t records = 0;
  const auto put = [&](const std::string& key) {
    const Result<PutOutcome> outcome = member.Try(member.Put(key, "value of"));
    if (!outcome.ok()) {
      EXPECT_EQ(outcome.error().code(), ErrorCode::kOutOfMemory);
    }
    if (next % 64 == 0) member.Now(member.Maintain());
    return outcome.ok();
  };
  for (const auto& [load, most] : kTable1) {
    while (static_cast<double>(records) < load * kSlots) records += put(fmt::format("k{}", next++));
    const OpTally before = member.tally(fabric::OpKind::kInsert);
    for (uint64_t placed = 0; placed < kPuts;) {
      const std::string key = fmt::format("k{}", next++);
      if (!put(key)) continue;
      ++placed;
      EXPECT_TRUE(member.Now(member.Delete(key)));
    }
    const OpTally& after = member.tally(fabric::OpKind::kInsert);
    ASSERT_EQ(after.operations - before.operations, kPuts);
    const double trips =
        static_cast<double>(after.end_to_end_trips - before.end_to_end_trips) / static_cast<double>(kPuts);
    RecordProperty(fmt::format("trips at load {}", load), std::to_string(trips));
    EXPECT_LE(trips, most) << "at load " << load;
    EXPECT_GE(trips, 2) << "at load " << load;
  }
  EXPECT_EQ(world.problem, "");
}

class NessieGrowth : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Sweeps, NessieGrowth, testing::Values("0", "1", "8"),
                         [](const auto& sweep) { return "Of" + sweep.param; });

TEST_P(NessieGrowth, OfALoneClient_NoPutStartsAgainForLong) {
  // Given an empty table of 64 slots. When one client puts 12000 keys, through eight doublings.
  // Expect that no put waits for a change that only this client could make: a few attempts for each at most,
  // however long the trails of keys are that migrate, or whose slots are split.
  constexpr uint64_t kKeys = 12'000;
  TableWorld world({.region_bytes = 32 << 20});
  TableMember member(world, "nessie", MakeNessieEngine, {{"sweep", GetParam()}});
  uint64_t worst = 0;
  uint64_t last = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    const Result<PutOutcome> put = member.Try(member.Put(fmt::format("k{}", i), "value of"));
    ASSERT_TRUE(put.ok()) << i << ": " << put.error().ToString();
    if (i % 64 == 0) member.Now(member.Maintain());
    const uint64_t trips = member.tally(fabric::OpKind::kInsert).end_to_end_trips;
    worst = std::max(worst, trips - last);
    last = trips;
  }
  const OpTally& puts = member.tally(fabric::OpKind::kInsert);
  RecordProperty("trips", std::to_string(static_cast<double>(puts.end_to_end_trips) / kKeys));
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("retries", std::to_string(static_cast<double>(puts.retries) / kKeys));
  EXPECT_EQ(puts.operations, kKeys);
  EXPECT_LE(worst, 400u);
  EXPECT_LE(static_cast<double>(puts.retries) / kKeys, 1);
  EXPECT_EQ(member.Now(member.Stats()).records, kKeys);
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::nessie
