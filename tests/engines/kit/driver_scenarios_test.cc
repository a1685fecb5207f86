// The drivers of a search and of a change (index/kit/keyed_index.h), rule by rule.
#include "tests/engines/kit/driver_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::toy {
namespace {

// Given a client with changes of one key in flight.
// When they run.
// Expect that each begins when the one before it has ended, and finds what that one left.
TEST(KitDriver, ChangesOfOneKeyGoOneAtATime) { EXPECT_EQ(ChangesOfOneKeyGoOneAtATime(), ""); }
TEST(KitDriver, ChangesOfTwoKeysGoAtOnce) { EXPECT_EQ(ChangesOfTwoKeysGoAtOnce(), ""); }

// Given puts of one key that wait for another one.
// When the first of them gets its turn.
// Expect that one change serves all of them, with the value of the last, and none is told before.
TEST(KitDriver, PutsThatWaitAreCoalesced) { EXPECT_EQ(PutsThatWaitAreCoalesced(), ""); }
TEST(KitDriver, ChangesThatDifferAreNotCoalesced) { EXPECT_EQ(ChangesThatDifferAreNotCoalesced(), ""); }
TEST(KitDriver, PassengersShareAnError) { EXPECT_EQ(PassengersShareAnError(), ""); }

// Given a put that has coalesced another one, for whose value there is no memory.
// When it fails.
// Expect that it goes on with its own value, and the other one fails alone.
TEST(KitDriver, OutOfMemoryForAPassenger_TheChangeGoesOnWithItsOwnValue) {
  EXPECT_EQ(OutOfMemoryForAPassenger_TheChangeGoesOnWithItsOwnValue(), "");
}
TEST(KitDriver, OutOfMemoryAlone_IsReported) { EXPECT_EQ(OutOfMemoryAlone_IsReported(), ""); }

// Given a put that has coalesced another one, and hangs.
// When its task is destroyed.
// Expect that the other one is told that the outcome is unknown, or gets its own turn if there can be none.
TEST(KitDriver, CarrierIsDestroyedInDoubt_PassengersDoNotKnow) {
  EXPECT_EQ(CarrierIsDestroyedInDoubt_PassengersDoNotKnow(), "");
}
TEST(KitDriver, CarrierIsDestroyedBeforeItDidAnything_PassengersGoOn) {
  EXPECT_EQ(CarrierIsDestroyedBeforeItDidAnything_PassengersGoOn(), "");
}

// Given attempts that meet other clients, or end with kContended.
// When there were enough of them.
// Expect that the operation waits without a pin and starts anew, for some leases at most.
TEST(KitDriver, AttemptsUnderOnePinAreBounded) { EXPECT_EQ(AttemptsUnderOnePinAreBounded(), ""); }
TEST(KitDriver, ContendedChangeWaitsWithoutPinOrDraft) {
  EXPECT_EQ(ContendedChangeWaitsWithoutPinOrDraft(), "");
}
TEST(KitDriver, ContendedChangeGivesUpAfterSomeLeases) {
  EXPECT_EQ(ContendedChangeGivesUpAfterSomeLeases(), "");
}
TEST(KitDriver, ContendedSearchWaitsWithoutPin) { EXPECT_EQ(ContendedSearchWaitsWithoutPin(), ""); }
TEST(KitDriver, OtherErrorsEndAChangeAtOnce) { EXPECT_EQ(OtherErrorsEndAChangeAtOnce(), ""); }

// Given a client whose searches of one key share trips.
// When one is on its way, a put ends, and others come.
// Expect that the next one serves all of those, and that they are told what the put has left.
TEST(KitDriver, SearchesThatWaitShareTheNext) { EXPECT_EQ(SearchesThatWaitShareTheNext(), ""); }
TEST(KitDriver, SearchesOfTwoKeysGoAtOnce) { EXPECT_EQ(SearchesOfTwoKeysGoAtOnce(), ""); }
TEST(KitDriver, SearchesAreAloneByDefault) { EXPECT_EQ(SearchesAreAloneByDefault(), ""); }

// Given a search that serves others.
// When it fails, or is destroyed.
// Expect that the others search for themselves.
TEST(KitDriver, SearchFails_TheOthersSearchForThemselves) {
  EXPECT_EQ(SearchFails_TheOthersSearchForThemselves(), "");
}
TEST(KitDriver, SearchIsDestroyed_TheOthersSearchForThemselves) {
  EXPECT_EQ(SearchIsDestroyed_TheOthersSearchForThemselves(), "");
}

// Given an operation that waits without a pin.
// When another client drops the table.
// Expect that the operation ends with kContended, and no attempt begins at the dropped table.
TEST(KitDriver, TableIsDroppedWhileAChangeWaits) { EXPECT_EQ(TableIsDroppedWhileAChangeWaits(), ""); }
TEST(KitDriver, TableIsDroppedWhileAChangeIsQueued) { EXPECT_EQ(TableIsDroppedWhileAChangeIsQueued(), ""); }
TEST(KitDriver, TableIsDroppedWhileASearchWaits) { EXPECT_EQ(TableIsDroppedWhileASearchWaits(), ""); }
TEST(KitDriver, TableIsDroppedWhileASearchIsQueued) { EXPECT_EQ(TableIsDroppedWhileASearchIsQueued(), ""); }

}  // namespace
}  // namespace farside::index::toy
