// The planted bugs of the reference table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::reference {

inline constexpr MutantName kAcceptTornImage{"reference/accept-torn-image"};
inline constexpr MutantName kNewestImageWins{"reference/newest-image-wins"};
inline constexpr MutantName kReadBeforeLock{"reference/read-before-lock"};
inline constexpr MutantName kWriteCurrentImage{"reference/write-current-image"};
inline constexpr MutantName kCommitTogetherWithWrite{"reference/commit-together-with-write"};
inline constexpr MutantName kVersionNotRaised{"reference/version-not-raised"};
inline constexpr MutantName kUnlockByWrite{"reference/unlock-by-write"};
inline constexpr MutantName kNoTakeover{"reference/no-takeover"};
inline constexpr MutantName kUnknownReportedAsRefused{"reference/unknown-reported-as-refused"};
inline constexpr MutantName kScanSkipsLockedBucket{"reference/scan-skips-locked-bucket"};

inline constexpr std::array kAllMutants = {
    kAcceptTornImage,  kNewestImageWins, kReadBeforeLock, kWriteCurrentImage,        kCommitTogetherWithWrite,
    kVersionNotRaised, kUnlockByWrite,   kNoTakeover,     kUnknownReportedAsRefused, kScanSkipsLockedBucket,
};

}  // namespace farside::index::reference
