// Every planted bug of the engine kit is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <vector>

#include "index/kit/mutants.h"
#include "tests/engines/kit/driver_scenarios.h"
#include "tests/engines/kit/growth_scenarios.h"
#include "tests/engines/kit/lock_scenarios.h"
#include "tests/support/detector.h"

namespace farside::index::toy {
namespace {

std::vector<Detector> Detectors() {
  return {
      {"puts that wait are coalesced", PutsThatWaitAreCoalesced},
      {"out of memory for a passenger", OutOfMemoryForAPassenger_TheChangeGoesOnWithItsOwnValue},
      {"carrier is destroyed in doubt", CarrierIsDestroyedInDoubt_PassengersDoNotKnow},
      {"contended change waits without pin or draft", ContendedChangeWaitsWithoutPinOrDraft},
      {"table is dropped while a change waits", TableIsDroppedWhileAChangeWaits},
      {"table is dropped while a change is queued", TableIsDroppedWhileAChangeIsQueued},
      {"table is dropped while a search waits", TableIsDroppedWhileASearchWaits},
      {"table is dropped while a search is queued", TableIsDroppedWhileASearchIsQueued},
      {"searches that wait share the next", SearchesThatWaitShareTheNext},
      {"counter under a lock", [] { return CounterUnderALock(/*stores_back=*/false); }},
      {"counter under a lock, failed CAS store back", [] { return CounterUnderALock(/*stores_back=*/true); }},
      {"growth waits for operations in flight", growing::GrowthWaitsForOperationsInFlight},
      {"preparer dies", growing::PreparerDies},
      {"directory is read while a resize is announced",
       [] { return growing::DirectoryIsReadWhileAResizeIsAnnounced(400); }},
  };
}

class KitMutant : public testing::TestWithParam<MutantName> {};

TEST_P(KitMutant, IsCaught) {
  // Given the engine kit with one planted bug.
  // When its scenarios run with the toy table and the growing table.
  // Expect that one of them catches it.
  ExpectCaught(GetParam(), Detectors());
}

INSTANTIATE_TEST_SUITE_P(All, KitMutant, testing::ValuesIn(kit::kAllMutants), NameOfBug);

TEST(KitMutants, WithoutOneNothingIsCaught) {
  for (const Detector& detector : Detectors()) EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::toy
