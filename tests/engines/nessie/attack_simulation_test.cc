// What an attack on the table has found.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/nessie/layout.h"
#include "index/nessie/nessie.h"
#include "tests/support/table_world.h"

namespace farside::index::nessie {
namespace {

class Member : public TableMember {
 public:
  Member(TableWorld& world, OptionMap options)
      : TableMember(world, "nessie", MakeNessieEngine, std::move(options)) {}
};

// Time for a grace period, and for the growth that waits for it.
void Settle(Member& one, Member& other) {
  for (int i = 0; i < 6; ++i) {
    for (Member* member : {&one, &other}) {
      member->Now(member->Maintain());
      member->Now(member->Pause(std::chrono::milliseconds(1)));
      member->Now(member->Get("none"));
    }
  }
}

std::string Key(int i) { return fmt::format("key{}", i); }

// A small table of many clients goes many versions by one resize. While that is announced, no slot of the new
// versions may be split: so the trails are long, and changes must do with them.
TEST(NessieAttack, AnnouncementOfManyVersionsLeavesTrailsThatChangesCanLookAt) {
  TableWorld world;
  const OptionMap options{{"slots", "4"}, {"burst", "100000"}, {"max_load", "0.1"}, {"sweep", "0"}};
  Member one(world, options);
  Member idle(world, options);
  one.Now(one.Maintain());
  bool was_announced = false;
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j <= i; ++j) {
      one.Now(one.Put(Key(j), fmt::format("{}", i)));
      ASSERT_EQ(world.problem, "") << i << " " << j;
    }
    was_announced = was_announced || one.index().growth() % 2 == 1;
    one.Now(one.Maintain());
    if (i % 2 == 1) Settle(one, idle);
  }
  EXPECT_TRUE(was_announced);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(one.Now(one.Get(Key(i))), "11");
  one.Now(one.Verify());
  EXPECT_EQ(world.problem, "");
}

// One resize goes few versions, and changes look at no more slots than that: a root that announces more is
// damaged.
TEST(NessieAttack, RootThatAnnouncesMoreVersionsThanAResizeGoesIsDamaged) {
  TableWorld world;
  Member one(world, {{"slots", "4"}});
  one.Now(one.Put(Key(0), "value"));
  std::byte* const root = world.memory().data() + one.roots()[0].offset;
  const uint64_t segment = LoadU64(root + kDirectoryOffset);
  for (uint32_t steps = 1; steps <= kMostTrailOfChange; ++steps)
    StoreU64(root + kDirectoryOffset + steps * sizeof(uint64_t), segment);
  StoreU64(root, StateWord::Announced(1, kMostTrailOfChange).word());
  Member late(world, {{"slots", "4"}});
  const Result<PutOutcome> put = late.Try(late.Put(Key(1), "value"));
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kCorrupt) << put.error().ToString();
}

// grow=no is what one client does, and not what the table is.
TEST(NessieAttack, ClientThatDoesNotGrowTheTableWorksWithOneThatHasGrown) {
  TableWorld world;
  Member grower(world, {{"slots", "4"}, {"burst", "0"}, {"max_load", "0.2"}});
  Member other(world, {{"slots", "4"}, {"grow", "no"}});
  grower.Now(grower.Maintain());
  for (int i = 0; i < 3; ++i) {
    grower.Now(grower.Put(Key(i), "value"));
    Settle(grower, other);
  }
  ASSERT_EQ(world.problem, "");
  ASSERT_GE(grower.index().growth(), 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(other.Now(other.Get(Key(i))), "value");
  EXPECT_EQ(world.problem, "");
}

// The n-th key of "a0", "a1" ... with these slots in a table that has not grown.
std::string KeyAt(const Shape& shape, uint64_t primary, uint64_t secondary, int nth = 0) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("a{}", i);
    const KeyHash hash(Hash64(AsBytes(key)));
    const bool fits = hash.SlotOf(shape, Candidate::kPrimary, 1) == primary &&
                      hash.SlotOf(shape, Candidate::kSecondary, 1) == secondary;
    if (fits && nth-- == 0) return key;
  }
}

// A client makes room for a key by moving another one, and dies when that one stands twice. The second copy
// is room for the next client: it must not be taken for a circle.
TEST(NessieAttack, CopyThatADeadClientLeftIsRoom) {
  const Shape shape{.initial_bits = 4};
  const OptionMap options{{"slots", "16"}, {"grow", "no"}};
  const std::string moved = KeyAt(shape, 9, 3);
  const std::string wanted = KeyAt(shape, 9, 5);
  bool stood_twice = false;
  for (uint64_t nth = 0;; ++nth) {
    TableWorld world;
    Member one(world, options);
    Member two(world, options);
    one.Now(one.Put(KeyAt(shape, 5, 6), "circle"));
    one.Now(one.Put(KeyAt(shape, 6, 5), "circle"));
    one.Now(one.Put(moved, "moved"));
    two.Now(two.Maintain());
    if (!one.RunAndDieAt(nth, fabric::sim::FaultKind::kCrashAfter, one.Put(wanted, "dies"))) break;
    if (!one.crashed()) continue;
    two.Now(two.Put(wanted, "lives"));
    ASSERT_EQ(world.problem, "") << nth;
    EXPECT_EQ(two.Now(two.Get(wanted)), "lives");
    EXPECT_EQ(two.Now(two.Get(moved)), "moved");
    two.Now(two.Verify());
    ASSERT_EQ(world.problem, "") << nth;
    stood_twice = true;
  }
  EXPECT_TRUE(stood_twice);
}

// A client takes a number for a move and sleeps until the log has come round: its entry takes the place of a
// later one. A cursor that needs that one must not end without it.
TEST(NessieAttack, LateEntryOfTheMoveLogHidesNoLaterMove) {
  const Shape shape{.initial_bits = 8};
  TableWorld world;
  Member one(world, {{"slots", "256"}, {"grow", "no"}});
  const uint64_t root = one.roots()[0].offset;
  const std::string moved = KeyAt(shape, 200, 20);
  one.Now(one.Put(KeyAt(shape, 10, 11), "first"));
  one.Now(one.Put(KeyAt(shape, 150, 151), "taken"));
  one.Now(one.Put(moved, "moved"));
  // 256 moves were made, and the client of the first one sleeps.
  StoreU64(world.memory().data() + root + kMovesOffset, kLogEntries);
  Cursor cursor;
  std::vector<Record> all = one.Now(one.Page(cursor));
  ASSERT_EQ(all.size(), 1);
  one.Now(one.Put(KeyAt(shape, 200, 150), "makes the other one move"));
  ASSERT_EQ(LoadU64(world.memory().data() + root + kMovesOffset), kLogEntries + 1);
  ASSERT_EQ(LoadU64(world.memory().data() + root + kLogOffset), kLogEntries + 1);
  // It wakes up.
  StoreU64(world.memory().data() + root + kLogOffset, 1);
  StoreU64(world.memory().data() + root + kLogOffset + 8, 4711);
  while (true) {
    const std::vector<Record> page = one.Now(one.Page(cursor));
    if (page.empty()) break;
    all.insert(all.end(), page.begin(), page.end());
  }
  EXPECT_EQ(world.problem, "");
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Record& record) { return record.key == moved; }));
}

}  // namespace
}  // namespace farside::index::nessie
