// The rules of the engine kit's drivers, each played with the toy table: what went wrong, or nothing.
#pragma once

#include <string>

namespace farside::index::toy {

// ---- changes of one key
std::string ChangesOfOneKeyGoOneAtATime();
std::string ChangesOfTwoKeysGoAtOnce();
std::string PutsThatWaitAreCoalesced();
std::string ChangesThatDifferAreNotCoalesced();
std::string PassengersShareAnError();
std::string OutOfMemoryForAPassenger_TheChangeGoesOnWithItsOwnValue();
std::string OutOfMemoryAlone_IsReported();
std::string CarrierIsDestroyedInDoubt_PassengersDoNotKnow();
std::string CarrierIsDestroyedBeforeItDidAnything_PassengersGoOn();

// ---- attempts
std::string AttemptsUnderOnePinAreBounded();
std::string ContendedChangeWaitsWithoutPinOrDraft();
std::string ContendedChangeGivesUpAfterSomeLeases();
std::string ContendedSearchWaitsWithoutPin();
std::string OtherErrorsEndAChangeAtOnce();

// ---- searches that share trips
std::string SearchesThatWaitShareTheNext();
std::string SearchesOfTwoKeysGoAtOnce();
std::string SearchesAreAloneByDefault();
std::string SearchFails_TheOthersSearchForThemselves();
std::string SearchIsDestroyed_TheOthersSearchForThemselves();

// ---- dropped tables
std::string TableIsDroppedWhileAChangeWaits();
std::string TableIsDroppedWhileAChangeIsQueued();
std::string TableIsDroppedWhileASearchWaits();
std::string TableIsDroppedWhileASearchIsQueued();

}  // namespace farside::index::toy
