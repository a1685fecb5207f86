// The planted bugs of the engine kit: rules that every engine rests on are broken once, here, and caught by
// name (tests/engines/kit).
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::kit {

// ---- operations

// An operation that has waited goes on, although its table may have been dropped meanwhile.
inline constexpr MutantName kPinsPastADrop{"kit/pins-past-a-drop"};
// An operation waits with its pin.
inline constexpr MutantName kWaitsPinned{"kit/waits-with-its-pin"};
// A block that was allocated and not published is kept while no pin protects it from a sweep.
inline constexpr MutantName kDraftWithoutPin{"kit/draft-kept-without-pin"};
// Passengers are told that they are done before the change has done anything.
inline constexpr MutantName kCompletedTooEarly{"kit/completed-too-early"};
// Passengers fail with the change that found no memory for the last of their values.
inline constexpr MutantName kPassengersShareTheFailure{"kit/passengers-share-out-of-memory"};
// A change that was out of memory tries again with the value of a passenger that it has released.
inline constexpr MutantName kValueOfAPassenger{"kit/value-of-a-released-passenger"};
// Passengers of a change that is destroyed on the way try again, although it may have had an effect.
inline constexpr MutantName kReleasedInDoubt{"kit/passengers-released-in-doubt"};

// ---- searches that share trips

// A search that comes while another one of its key is on its way gets the answer of that one (search/1).
inline constexpr MutantName kJoinsSearchUnderWay{"kit/joins-search-under-way"};

// ---- locks

// A lock is released by a WRITE, although failed CAS store back what they have read (lock/1).
inline constexpr MutantName kReleasedByWriteAnyway{"kit/released-by-write-anyway"};
// A lock is released twice (lock/1).
inline constexpr MutantName kReleasedTwice{"kit/released-twice"};
// A lock is released in no order behind the last change (lock/1).
inline constexpr MutantName kReleaseNotOrdered{"kit/release-not-ordered"};

// ---- growing

// What was announced counts without waiting for clients that have not seen the announcement (growth/1).
inline constexpr MutantName kSplitBeforeGrace{"kit/split-before-grace"};
// The segment of a version is written to the directory after that version was announced.
inline constexpr MutantName kDirectoryWrittenLate{"kit/directory-written-late"};
// The state is taken from the READ that brings the directory, whose lines have no order.
inline constexpr MutantName kStateOfSameRead{"kit/state-of-the-same-read"};
// No client goes on with a resize whose preparer has died.
inline constexpr MutantName kPreparerNotFollowed{"kit/preparer-not-followed"};

inline constexpr std::array kAllMutants = {
    kPinsPastADrop,
    kWaitsPinned,
    kDraftWithoutPin,
    kCompletedTooEarly,
    kPassengersShareTheFailure,
    kValueOfAPassenger,
    kReleasedInDoubt,
    kJoinsSearchUnderWay,
    kReleasedByWriteAnyway,
    kReleasedTwice,
    kReleaseNotOrdered,
    kSplitBeforeGrace,
    kDirectoryWrittenLate,
    kStateOfSameRead,
    kPreparerNotFollowed,
};

}  // namespace farside::index::kit
