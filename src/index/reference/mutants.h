// The planted bugs of the reference table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::reference {

// A READ that shows the head of one change and the image of another is taken (reference/1).
inline constexpr MutantName kAcceptTornImage{"reference/accept-torn-image"};
// A search takes the image that was written last, whether the head names it or not (reference/3).
inline constexpr MutantName kNewestImageWins{"reference/newest-image-wins"};
// A change works on the bucket as it was before its lock was taken (reference/2).
inline constexpr MutantName kReadBeforeLock{"reference/read-before-lock"};
// A change writes over the image that the head names (reference/2).
inline constexpr MutantName kWriteCurrentImage{"reference/write-current-image"};
// The head is turned without waiting for the image (reference/1).
inline constexpr MutantName kCommitTogetherWithWrite{"reference/commit-together-with-write"};
// A change seals its image with the version of the last one (reference/4).
inline constexpr MutantName kVersionNotRaised{"reference/version-not-raised"};
// A lock is released by a WRITE, which an atomic of another client may swallow.
inline constexpr MutantName kUnlockByWrite{"reference/unlock-by-write"};
// No client takes the lock of a dead owner.
inline constexpr MutantName kNoTakeover{"reference/no-takeover"};
// A change whose completion was lost reports that nothing was changed.
inline constexpr MutantName kUnknownReportedAsRefused{"reference/unknown-reported-as-refused"};
// A scan leaves out the keys of a bucket that is locked.
inline constexpr MutantName kScanSkipsLockedBucket{"reference/scan-skips-locked-bucket"};

// ---- touches (evac/1)

// A touch writes what it has made of what stood there before it took the lock: it changes its entry whatever
// the entry holds by then.
inline constexpr MutantName kTouchByWrite{"reference/evacuates-by-write"};
// The block that a touch has emptied is handed out at once.
inline constexpr MutantName kTouchFreesAtOnce{"reference/evacuates-frees-at-once"};
// A touch that finds its record in another block by then retires the block all the same.
inline constexpr MutantName kTouchRetiresLosing{"reference/evacuates-retires-losing"};

inline constexpr std::array kAllMutants = {
    kAcceptTornImage,          kNewestImageWins,       kReadBeforeLock, kWriteCurrentImage,
    kCommitTogetherWithWrite,  kVersionNotRaised,      kUnlockByWrite,  kNoTakeover,
    kUnknownReportedAsRefused, kScanSkipsLockedBucket, kTouchByWrite,   kTouchFreesAtOnce,
    kTouchRetiresLosing,
};

}  // namespace farside::index::reference
