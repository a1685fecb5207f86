// Every planted bug of the chime table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "check/campaign.h"
#include "index/chime/mutants.h"
#include "tests/engines/chime/checker_adapter.h"
#include "tests/engines/chime/count_scenarios.h"
#include "tests/engines/chime/hang_scenarios.h"
#include "tests/engines/chime/hotspot_scenarios.h"
#include "tests/engines/chime/inner_merge_scenarios.h"
#include "tests/engines/chime/merge_scenarios.h"
#include "tests/engines/chime/middle_scenarios.h"
#include "tests/engines/chime/scenarios.h"
#include "tests/engines/chime/turn_scenarios.h"
#include "tests/engines/evacuation_scenarios.h"
#include "tests/support/detector.h"
#include "tests/support/sanitized.h"
#include "tests/support/script_search.h"

namespace farside::index::chime {
namespace {

std::string Search(uint64_t seeds) {
  std::vector<std::shared_ptr<Engine>> engines = AllCheckerAdapters();
  for (const OptionMap& options : (*MakeChimeEngine({}))->stress_options())
    engines.push_back(*MakeChimeEngine(options));
  std::vector<Engine*> subjects;
  for (const auto& engine : engines) subjects.push_back(engine.get());
  check::CampaignOptions campaign;
  campaign.seeds = seeds;
  campaign.crash = true;
  campaign.sweep = false;
  campaign.shape = {.clients = 4, .operations = 10, .keys = 6};
  campaign.stop_at_first = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), campaign);
  if (report.violations == 0)
    return report.undecided == 0 ? "" : "undecided: " + report.first_undecided->problem;
  return "run " + report.first_violation->run.ToString() + ": " + report.first_violation->problem;
}

std::string SearchEvacuations(uint64_t seeds) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const OptionMap& options : (*MakeChimeEngine({}))->stress_options())
    engines.push_back(*MakeChimeEngine(options));
  return SearchScripts(engines, {.seeds = seeds, .shape = kEvacuations});
}

// The quick ones first.
std::vector<Detector> Detectors(uint64_t fewer = 1) {
  return {
      {"update of an absent key", UpdateOfAnAbsentKey},
      {"no key is reserved", KeysOfZerosAndOnes},
      {"a reader stops while its record moves",
       [] { return AReaderStopsWhileItsRecordMoves("chime", MakeChimeEngine); }},
      {"two keys with one tag", TwoKeysWithOneTag},
      {"cache with a bound", CacheWithABound},
      {"hotspots with a bound", HotspotsWithABound},
      {"another key stands there",
       [] { return AnotherKeyStandsThere(/*inline_keys=*/true, /*again=*/false); }},
      {"a key comes back elsewhere",
       [] { return AnotherKeyStandsThere(/*inline_keys=*/true, /*again=*/true); }},
      {"remembered keys are split away", [] { return RememberedKeysGoElsewhere(/*inline_keys=*/true, 0); }},
      {"twins whose hashes are alike", TwinsWithHashesThatAreAlike},
      {"keys of both halves",
       [] {
         return KeysOfBothHalves({{"span", "1"}, {"fanout", "16"}});
       }},
      {"the dead split parents", [] { return ParentsAreSplitByTheDead(/*fanout=*/4); }},
      {"scan with old nodes", ScanWithOldNodes},
      {"the parent has no pivot", ParentHasNoPivot},
      {"a key comes back", [] { return KeyGoesAndComesBack(/*inline_keys=*/true, /*reused=*/false); }},
      {"a leaf is used again", [] { return KeyGoesAndComesBack(/*inline_keys=*/true, /*reused=*/true); }},
      {"places are forgotten", [] { return KnownPlacesAreForgotten(/*inline_keys=*/true); }},
      {"a leaf is split and goes", [] { return ALeafIsSplitAndGoes(/*inline_keys=*/true, 1); }},
      {"two leaves go", [] { return TwoLeavesGo(/*inline_keys=*/true); }},
      {"cursor at a leaf that goes", [] { return CursorStandsAtALeafThatGoes(/*inline_keys=*/true); }},
      {"a remembered leaf is split", RememberedLeafIsSplit},
      {"a remembered leaf dies", RememberedLeafDies},
      {"a remembered leaf is taken over", RememberedLeafIsTakenOver},
      {"a successor is destroyed", SuccessorIsDestroyed},
      {"others have their turn", OthersHaveTheirTurn},
      {"inserts of one leaf", [=] { return InsertsOfOneLeaf(static_cast<int>(200 / fewer)); }},
      {"a client waits for a lock", ClientWaitsForALock},
      {"table dropped under a waiter", TableIsDroppedUnderAWaiter},
      {"evacuations", [=] { return SearchEvacuations(100 / fewer); }},
      {"readers meet a move", [=] { return ReadersMeetAMove(200 / fewer, 1, /*by_scan=*/false); }},
      {"readers meet a split", [=] { return ReadersMeetAMove(200 / fewer, 0, /*by_scan=*/false); }},
      {"scans meet a move", [=] { return ReadersMeetAMove(200 / fewer, 1, /*by_scan=*/true); }},
      {"owner dies while entries move", [] { return InserterDies(/*inline_keys=*/true, 2); }},
      {"owner dies in a split", [] { return InserterDies(/*inline_keys=*/true, 0); }},
      {"owner dies in a merge", [] { return DeleterDies(/*inline_keys=*/true); }},
      {"splits fail", [] { return InsertsFail(Hang::kRefused, /*span=*/1, /*dropped=*/false); }},
      {"inserts fail", [] { return InsertsFail(Hang::kRefused, /*span=*/8, /*dropped=*/true); }},
      {"both halves become empty", BothHalvesBecomeEmpty},
      {"a splitter is slow", [] { return SplitterIsSlow(/*the_new_one=*/true); }},
      {"a splitter is slow before another", [] { return SplitterIsSlow(/*the_new_one=*/false); }},
      {"owner dies in a merge of inner nodes",
       [] { return InnerMergerDies(/*inline_keys=*/true, /*first_too=*/true); }},
      {"a first child has moved", [] { return FirstChildHasMoved(/*inline_keys=*/true, 1); }},
      {"a scan comes to a dead parent", ScanComesToADeadParent},
      {"two operations learn of a merge", [=] { return TwoOperationsLearnOfAMerge(400 / fewer); }},
      {"an old read arrives late", [=] { return AnOldReadArrivesLate(400 / fewer); }},
      {"options", [=] { return RunDeleteHeavyWorkload(1, 400 / fewer, /*faults=*/false); }},
      {"scripts", [=] { return Search(400 / fewer); }},
  };
}

class ChimeMutant : public testing::TestWithParam<MutantName> {};

TEST_P(ChimeMutant, IsCaught) {
  // Given the chime table with one planted bug.
  // When the scenarios and searches run, one after the other.
  // Expect that one of them catches it.
  ExpectCaught(GetParam(), Detectors());
}

INSTANTIATE_TEST_SUITE_P(All, ChimeMutant, testing::ValuesIn(kAllMutants), NameOfBug);

TEST(ChimeMutants, BothHalvesUnderOneParent_AreMistakenForEachOther) {
  // Given one parent for the leaves of both halves. Fsck tells at once; but that is not why it must not be.
  // When leaves are merged, or a client dies while the parent is split. Expect that keys are taken for
  // others.
  const ScopedMutant mutant(kMergedAcross);
  const std::string merged = KeysOfBothHalves({{"span", "1"}, {"fanout", "16"}});
  EXPECT_NE(merged, "");
  EXPECT_EQ(merged.find("kCorrupt"), std::string::npos) << merged;
  const std::string split = ParentsAreSplitByTheDead(/*fanout=*/4, /*with_fsck=*/false);
  EXPECT_NE(split.find("is of lower and not of upper"), std::string::npos) << split;
}

TEST(ChimeMutants, WithoutABug_NothingIsCaught) {
  // Given the same detectors, and no bug. Expect that none of them catches anything.
  for (const Detector& detector : Detectors(kFewer)) EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::chime
