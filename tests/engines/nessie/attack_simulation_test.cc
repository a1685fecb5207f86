// What an attack on the table has found.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace farside::index::nessie
