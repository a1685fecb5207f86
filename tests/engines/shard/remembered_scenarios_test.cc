// Clients of a shard table that change keys where they remember them (shard/11).
#include "tests/engines/shard/remembered_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::shard {
namespace {

TEST(ShardRemembered, WordNamesAnotherKeyByNow_TheOtherKeyIsNotReplaced) {
  // Given a client that remembers an entry, whose block was used again for another key with the same tag
  // When it puts its key: it has seen the entry before the block was unlinked, or while it was
  // Expect that the other key keeps its value
  EXPECT_EQ(RememberedWordNamesAnotherKey(Remembered::kLongAgo), "");
  EXPECT_EQ(RememberedWordNamesAnotherKey(Remembered::kDuringGrace), "");
}

TEST(ShardRemembered, UnitIsSplit_ChangesOfAClientThatRemembersAreNotLost) {
  // Given a client that remembers where keys are, in a unit that another client splits
  // When it changes them at every step of that, and knows only the announcement, or also that it counts
  // Expect that every change is there afterwards
  EXPECT_EQ(RememberedUnitIsSplit(Meets::kAnnouncement), "");
  EXPECT_EQ(RememberedUnitIsSplit(Meets::kNewVersion), "");
}

TEST(ShardRemembered, EntryIsReplaced_EveryChangeIsToldWhatIsTrue) {
  // Given a client that remembers where a key is, and another one that has replaced or deleted it since
  // When the first one changes the key in every way
  // Expect the answers and values that a look would have brought, and no block lost
  EXPECT_EQ(RememberedEntryIsReplaced(), "");
}

TEST(ShardRemembered, PutMeetsARival_ItLosesOnlyToAPut) {
  // Given a key that a client puts
  // When another client puts it, counts, swaps it, or sets the overflow bit in its word, at every step of
  // that or before Expect that the put is seen afterwards, unless the other one put the key meanwhile, and
  // that it then ends at once
  for (const Against rival :
       {Against::kPut, Against::kIncrement, Against::kCompareAndSet, Against::kOverflow}) {
    for (const bool remembers : {false, true})
      EXPECT_EQ(PutMeetsARival(rival, remembers), "") << static_cast<int>(rival) << remembers;
  }
}

}  // namespace
}  // namespace farside::index::shard
