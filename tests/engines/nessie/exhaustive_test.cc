// The real nessie table on a real pool, four slots: all interleavings of a few operations.
#include <gtest/gtest.h>

#include <string>

#include "tests/engines/nessie/explored.h"

namespace farside::index::nessie {
namespace {

using check::Exploration;
using check::Explore;

void ExpectNothing(const Explored& explored, uint64_t least_histories) {
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found, explored.scenario), "");
  EXPECT_GE(found.histories, least_histories);
  testing::Test::RecordProperty("states", std::to_string(found.states));
  testing::Test::RecordProperty("histories", std::to_string(found.histories));
  testing::Test::RecordProperty("complete", found.conclusion == check::Conclusion::kNothing ? "yes" : "cut");
}

class ExhaustiveNessie : public testing::TestWithParam<bool> {
 protected:
  ExhaustiveNessie() { explored_.scenario.freedoms.ordered_reads = GetParam(); }

  Explored explored_;
};
INSTANTIATE_TEST_SUITE_P(Reads, ExhaustiveNessie, testing::Values(true, false),
                         [](const auto& ordered) { return ordered.param ? "InOrder" : "InAnyOrder"; });

TEST_P(ExhaustiveNessie, TwoInsertAKeyAndAThirdReads_OneSucceeds) {
  // Given an empty table, on a fabric that orders READs or does not. When two clients insert a key, of which one
  // may die or lose a completion, and a third reads it. Expect that nothing is wrong in any interleaving, and
  // that a successor goes on.
  TwoPutAKey(explored_);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, TwoPutAKeyWhoseSlotComesFree_TheOneInTheSecondarySlotGivesWay) {
  // Given a key whose primary slot is taken. When that is emptied, and two clients put the key. Expect the same.
  TwoPutAKeyWhereASlotComesFree(explored_);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, BlindInsertMeetsADeleteAndAnInsert_OneInsertSucceeds) {
  // Given a key in its secondary slot. When a client that may die inserts it into the primary one without a
  // look, and another deletes and inserts it. Expect the same.
  InsertMeetsAChange(explored_);
  ExpectNothing(explored_, 1);
}

class ExhaustiveNessieMigration : public testing::TestWithParam<std::tuple<bool, Direction, Beside>> {};
INSTANTIATE_TEST_SUITE_P(
    All, ExhaustiveNessieMigration,
    testing::Combine(testing::Bool(), testing::Values(Direction::kToPrimary, Direction::kToSecondary),
                     testing::Values(Beside::kPut, Beside::kDelete, Beside::kPutAndDelete, Beside::kReader)));

TEST_P(ExhaustiveNessieMigration, KeyIsMovedWhileItIsChangedAndRead_NothingIsLost) {
  // Given a key in one of its slots, on a fabric that orders READs or does not. When a put of another key that
  // has to move it may die or lose a completion, and beside it the key is put, deleted and read. Expect that
  // nothing is wrong in any interleaving, and that a successor finds both keys and changes them.
  const auto [ordered, direction, beside] = GetParam();
  Explored explored;
  explored.scenario.freedoms.ordered_reads = ordered;
  MigrationMeets(explored, direction, beside);
  ExpectNothing(explored, 1);
}

TEST_P(ExhaustiveNessie, KeyGoesToItsOtherSlotAndComesBack_AReaderFindsIt) {
  // Given a key in its secondary slot. When it is moved to the primary one and back, and a client reads it
  // meanwhile. Expect that it is found, in every interleaving.
  KeyGoesAndComesBack(explored_);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, KeyIsMadeAnewInItsOtherSlot_AnUpdateDoesNotTakeItForACopy) {
  // Given a key that was moved once. When one client updates it, and another deletes it and inserts it into its
  // other slot. Expect that nothing is wrong.
  KeyIsMadeAnewInItsOtherSlot(explored_);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, MigratorLeavesAClaimOrTwoCopies_TwoChangeTheKey) {
  // Given what a migrator leaves that may die at every verb. When one client updates the key and another deletes
  // it. Expect that nothing is wrong.
  TwoMeetWhatAMigratorLeft(explored_);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, WriterLeavesAPendingEntryOverAValue_ASuccessorTakesItBack) {
  // Given a put that may die at every verb. When another client puts the key, and a third reads it twice. Expect
  // that nothing is wrong.
  SuccessorMeetsAPendingEntry(explored_, /*fresh=*/false);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, WriterLeavesAFreshEntry_ASuccessorTakesItBack) {
  // Given the same where there was no value. Expect the same.
  SuccessorMeetsAPendingEntry(explored_, /*fresh=*/true);
  ExpectNothing(explored_, 1);
}

TEST_P(ExhaustiveNessie, WriterLeavesAFreshEntryBesideTheKey_ASuccessorTakesItBack) {
  // Given the same where the key stands in its other slot. Expect the same.
  SuccessorMeetsAFreshEntryBesideTheKey(explored_);
  ExpectNothing(explored_, 1);
}

class ExhaustiveNessieSplit : public testing::TestWithParam<std::tuple<bool, Moving>> {};
INSTANTIATE_TEST_SUITE_P(All, ExhaustiveNessieSplit,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Moving::kPut, Moving::kInsert, Moving::kDelete,
                                                          Moving::kReader)));

TEST_P(ExhaustiveNessieSplit, SlotIsSplitBesideAClientThatKnowsOnlyTheAnnouncement_NothingIsLost) {
  // Given a table that has just grown, and a client that knows only that this was announced. When one client
  // splits a slot and puts a key there, and the other changes or reads a key that moves; of which one may die.
  // Expect that nothing is wrong in any interleaving, and that a successor finds both keys.
  const auto [ordered, moving] = GetParam();
  Explored explored(OptionMap{{"grow", "yes"}});
  explored.scenario.freedoms.ordered_reads = ordered;
  SplitMeets(explored, moving);
  ExpectNothing(explored, 1);
}

}  // namespace
}  // namespace farside::index::nessie
