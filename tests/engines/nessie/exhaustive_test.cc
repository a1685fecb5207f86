// The real nessie table on a real pool, four slots: all interleavings of a few operations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "tests/engines/nessie/explored.h"
#include "tests/support/sanitized.h"

namespace farside::index::nessie {
namespace {

using check::Conclusion;
using check::Exploration;
using check::Explore;

// Whether a client of a scenario may wait for another one that never goes on. If none does, all states are
// visited.
enum class Waits : uint8_t { kNever, kForOthers };
// What a search has to see at least: a part of what it saw when this was written.
struct Least {
  uint64_t states = 0;
  uint64_t histories = 0;
};

void ExpectNothing(const Explored& explored, Waits waits, Least least) {
  const Exploration found = Explore(explored.scenario);
  if (waits == Waits::kNever) {
    EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
  } else {
    EXPECT_EQ(ProblemOf(found), "");
  }
  EXPECT_GE(found.states, least.states);
  EXPECT_GE(found.histories, least.histories);
  testing::Test::RecordProperty("states", std::to_string(found.states));
  testing::Test::RecordProperty("histories", std::to_string(found.histories));
}

bool IsLong() { return std::getenv("FARSIDE_LONG") != nullptr; }

// Some million states: too many for a sanitizer. With a reader they are more than a hundred million, of which
// the long run looks at a part. It shows nothing up to there.
void ExpectNothingWithinLimit(Explored& explored, Waits waits, Least least) {
  if (!kSanitized && !IsLong()) return ExpectNothing(explored, waits, least);
  explored.scenario.max_states = kSanitized ? 100'000 : 50'000'000;
  const Exploration found = Explore(explored.scenario);
  testing::Test::RecordProperty("states", std::to_string(found.states));
  testing::Test::RecordProperty("histories", std::to_string(found.histories));
  const bool at_limit =
      found.conclusion == Conclusion::kLimit && found.states == explored.scenario.max_states;
  EXPECT_EQ(at_limit ? "" : ProblemOf(found), "");
  EXPECT_GE(found.histories, 10u);
}

// On a fabric that does not order READs: whatever happens where they are ordered happens there too.
class ExhaustiveNessie : public testing::Test {
 protected:
  ExhaustiveNessie() { explored_.scenario.freedoms.ordered_reads = false; }

  Explored explored_;
};

TEST_F(ExhaustiveNessie, TwoInsertAKeyAndAThirdReads_OneSucceeds) {
  // Given an empty table. When two clients insert a key, of which one
  // may die or lose a completion, and a third reads it. Expect that nothing is wrong in any interleaving, and
  // that a successor goes on.
  TwoPutAKey(explored_);
  ExpectNothing(explored_, Waits::kForOthers, {.states = 20'000, .histories = 60});
}

TEST_F(ExhaustiveNessie, TwoPutAKeyWhoseSlotComesFree_TheOneInTheSecondarySlotGivesWay) {
  // Given a key whose primary slot is taken. When that is emptied, and two clients put the key. Expect the
  // same.
  TwoPutAKeyWhereASlotComesFree(explored_);
  ExpectNothing(explored_, Waits::kNever, {.states = 100'000, .histories = 40});
}

TEST_F(ExhaustiveNessie, BlindInsertMeetsADeleteAndAnInsert_OneInsertSucceeds) {
  // Given a key in its secondary slot. When a client that may die inserts it into the primary one without a
  // look, and another deletes and inserts it. Expect the same.
  InsertMeetsAChange(explored_);
  ExpectNothing(explored_, Waits::kForOthers, {.states = 150'000, .histories = 60});
}

class ExhaustiveNessieMigration : public testing::TestWithParam<std::tuple<Direction, Beside>> {};
INSTANTIATE_TEST_SUITE_P(All, ExhaustiveNessieMigration,
                         testing::Combine(testing::Values(Direction::kToPrimary, Direction::kToSecondary),
                                          testing::Values(Beside::kPut, Beside::kDelete)));

TEST_P(ExhaustiveNessieMigration, KeyIsMovedWhileItIsChangedAndRead_NothingIsLost) {
  // Given a key in one of its slots. When a put of another key that has to move it may die or lose a
  // completion, and beside it the key is put or deleted, and read. Expect that nothing is wrong in any
  // interleaving, and that a successor finds both keys and changes them.
  const auto [direction, beside] = GetParam();
  Explored explored;
  explored.scenario.freedoms.ordered_reads = false;
  MigrationMeets(explored, direction, beside, /*is_read=*/true);
  ExpectNothing(explored, Waits::kForOthers, {.states = 200'000, .histories = 40});
}

class ExhaustiveNessieTwoWritersOf : public testing::TestWithParam<Direction> {};
INSTANTIATE_TEST_SUITE_P(All, ExhaustiveNessieTwoWritersOf,
                         testing::Values(Direction::kToPrimary, Direction::kToSecondary));

TEST_P(ExhaustiveNessieTwoWritersOf, KeyIsMovedWhileTwoChangeIt_NothingIsLost) {
  // Given a key in one of its slots. When a put of another key that has to move it may die, and beside it one
  // client puts the key and another one deletes it. Expect the same. With FARSIDE_LONG a fourth client reads
  // the key meanwhile.
  Explored explored(OptionMap{{"chain", "1"}}, Retries::kNever);
  explored.scenario.freedoms.ordered_reads = false;
  MigrationMeets(explored, GetParam(), Beside::kPutAndDelete, IsLong());
  ExpectNothingWithinLimit(explored, Waits::kNever, {.states = 4'000'000, .histories = 50});
}

TEST_F(ExhaustiveNessie, KeyGoesToItsOtherSlotAndComesBack_AReaderFindsIt) {
  // Given a key in its secondary slot. When it is moved to the primary one and back, and a client reads it
  // meanwhile. Expect that it is found, in every interleaving.
  KeyGoesAndComesBack(explored_);
  ExpectNothing(explored_, Waits::kNever, {.states = 2'000, .histories = 12});
}

TEST_F(ExhaustiveNessie, KeyIsMadeAnewInItsOtherSlot_AnUpdateDoesNotTakeItForACopy) {
  // Given a key that was moved once. When one client updates it, and another deletes it and inserts it into
  // its other slot. Expect that nothing is wrong.
  KeyIsMadeAnewInItsOtherSlot(explored_);
  ExpectNothing(explored_, Waits::kForOthers, {.states = 15'000, .histories = 40});
}

TEST_F(ExhaustiveNessie, MigratorLeavesAClaimOrTwoCopies_TwoChangeTheKey) {
  // Given what a migrator leaves that may die at every verb. When one client updates the key and another
  // deletes it. Expect that nothing is wrong.
  TwoMeetWhatAMigratorLeft(explored_);
  ExpectNothing(explored_, Waits::kForOthers, {.states = 40'000, .histories = 40});
}

TEST_F(ExhaustiveNessie, WriterLeavesAPendingEntryOverAValue_ASuccessorTakesItBack) {
  // Given a put that may die at every verb. When another client puts the key, and a third reads it twice.
  // Expect that nothing is wrong.
  SuccessorMeetsAPendingEntry(explored_, /*fresh=*/false);
  ExpectNothing(explored_, Waits::kNever, {.states = 2'000, .histories = 30});
}

TEST_F(ExhaustiveNessie, WriterLeavesAFreshEntry_ASuccessorTakesItBack) {
  // Given the same where there was no value. Expect the same.
  SuccessorMeetsAPendingEntry(explored_, /*fresh=*/true);
  ExpectNothing(explored_, Waits::kNever, {.states = 2'500, .histories = 30});
}

TEST_F(ExhaustiveNessie, WriterLeavesAFreshEntryBesideTheKey_ASuccessorTakesItBack) {
  // Given the same where the key stands in its other slot. Expect the same.
  SuccessorMeetsAFreshEntryBesideTheKey(explored_);
  ExpectNothing(explored_, Waits::kNever, {.states = 1'000, .histories = 20});
}

class ExhaustiveNessieSplit : public testing::TestWithParam<Moving> {};
INSTANTIATE_TEST_SUITE_P(All, ExhaustiveNessieSplit,
                         testing::Values(Moving::kPut, Moving::kInsert, Moving::kDelete));

TEST_P(ExhaustiveNessieSplit, SlotIsSplitBesideAClientThatKnowsOnlyTheAnnouncement_NothingIsLost) {
  // Given a table that has just grown, and a client that knows only that this was announced. When one client
  // splits a slot and puts a key there, and the other changes a key that moves; of which one may die. Expect
  // that nothing is wrong in any interleaving, and that a successor finds both keys.
  Explored explored(OptionMap{{"grow", "yes"}});
  explored.scenario.freedoms.ordered_reads = false;
  SplitMeets(explored, GetParam(), /*is_read=*/false);
  ExpectNothing(explored, Waits::kForOthers, {.states = 5'000, .histories = 25});
}

TEST_P(ExhaustiveNessieSplit, SlotIsSplitWhileAKeyOfItIsChangedAndRead_NothingIsLost) {
  // Given the same, and a reader that knows only of the announcement, too. Expect the same.
  Explored explored(OptionMap{{"grow", "yes"}}, Retries::kNever);
  explored.scenario.freedoms.ordered_reads = false;
  SplitMeets(explored, GetParam(), /*is_read=*/true);
  ExpectNothing(explored, Waits::kForOthers, {.states = 60'000, .histories = 40});
}

TEST(ExhaustiveNessieTwoWriters, SlotIsSplitWhileTwoChangeAKeyOfIt_NothingIsLost) {
  // Given the same. When one client puts the key that moves, and another one deletes it. Expect the same.
  // With FARSIDE_LONG a fourth client reads the key meanwhile.
  Explored explored(OptionMap{{"grow", "yes"}}, Retries::kNever);
  explored.scenario.freedoms.ordered_reads = false;
  SplitMeets(explored, Moving::kPutAndDelete, IsLong());
  ExpectNothingWithinLimit(explored, Waits::kForOthers, {.states = 2'500'000, .histories = 100});
}

}  // namespace
}  // namespace farside::index::nessie
