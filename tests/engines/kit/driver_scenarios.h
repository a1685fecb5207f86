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

// ---- dropped tables
std::string TableIsDroppedWhileAChangeWaits();
std::string TableIsDroppedWhileAChangeIsQueued();
std::string TableIsDroppedWhileASearchWaits();

}  // namespace farside::index::toy
