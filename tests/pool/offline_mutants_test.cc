// The planted bugs of clients that go offline and come back are caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pool/mutants.h"
#include "tests/pool/offline_scenarios.h"

namespace farside::pool {
namespace {

struct Planted {
  const MutantName* bug;
  std::string (*play)();
  const char* problem;
};

constexpr char kUsedAgain[] = "memory is used again under an operation";
constexpr char kOutOfForce[] = "an operation acts on a word that is out of force";
constexpr char kAdded[] = "a listener has added to memory that was used again";

const std::vector<Planted>& AllPlanted() {
  static const std::vector<Planted> all = {
      {&kOfflineNotAwaited, TheOfflinePulseIsLate, kUsedAgain},
      {&kOfflineOverDetached, AVerbIsOnItsWayWhenItsClientShouldGoOffline, kUsedAgain},
      {&kOfflineInOperation, AnOperationIsInFlightWhenItsClientShouldGoOffline, kUsedAgain},
      {&kOfflineAdds, ATableIsDroppedWhileAClientGoesOffline, kAdded},
      {&kOnlineBeginsEarly, ThePulseOfAReturnIsLate, kUsedAgain},
      {&kOnlineOneNode, ThePulseOfAReturnIsLate, kUsedAgain},
      {&kOnlineReadsFirst, AnAnnouncementIsMadeWhileAClientComesBack, kOutOfForce},
      {&kOnlineNoRider, AnAnnouncementIsMadeWhileAClientComesBack, kOutOfForce},
      {&kOnlineAdds, ATableIsDroppedWhileAClientIsOffline, kAdded},
      {&kAddUnvalidated, ATableIsDroppedWhileAClientSyncs, kAdded},
      {&kLookUncapped, ALookIsAnsweredLate, kUsedAgain},
      {&kCapWhenAnswered, ALookIsAnsweredLate, kUsedAgain},
      {&kOfflineBirth, ABlockIsRetiredAfterAReturn,
       "a sweep frees what another client is about to give back"},
      {&kDisownOffline, AClientGivesUpItsChunksAfterADeath, "a block is lost"},
  };
  return all;
}

TEST(OfflineMutant, EachIsCaughtByName) {
  // Given clients that break one rule of going offline and coming back.
  // When the scenario of that rule is played.
  // Expect that memory is used again too early, that an operation acts on old news, or that a block is lost.
  for (const Planted& planted : AllPlanted()) {
    const ScopedMutant mutant(*planted.bug);
    EXPECT_EQ(planted.play(), planted.problem) << planted.bug->text;
  }
}

TEST(OfflineMutants, WithoutOneNothingIsCaught) {
  for (const Planted& planted : AllPlanted()) EXPECT_EQ(planted.play(), "") << planted.bug->text;
}

}  // namespace
}  // namespace farside::pool
