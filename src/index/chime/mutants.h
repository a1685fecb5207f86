// The planted bugs of the chime table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::chime {

// An insert looks for its key up to the first free slot only: behind a hole there may be a copy (chime/3).
inline constexpr MutantName kStopsAtVacancy{"chime/stops-at-first-vacancy"};
// A key that one READ does not show is absent (chime/4).
inline constexpr MutantName kMissNotConfirmed{"chime/miss-not-confirmed"};
// Between two looks at `moves`, entries may move as they like.
inline constexpr MutantName kMovesNotRaised{"chime/moves-not-raised"};
// Whoever does not find a key does not look whether the leaf still has it (chime/6).
inline constexpr MutantName kFenceIgnored{"chime/fence-ignored"};
// A moved entry is cleared before it is written where it goes (chime/3).
inline constexpr MutantName kSourceFirst{"chime/source-before-destination"};
// Whoever takes a leaf over takes it as it is (chime/2).
inline constexpr MutantName kNotNormalized{"chime/not-brought-to-rest"};
// Who finds a leaf in the middle of a split goes on to the new one (chime/5).
inline constexpr MutantName kOddIgnored{"chime/half-split-followed"};
// The entries that leave are cleared before the old leaf names the new one.
inline constexpr MutantName kClearedFirst{"chime/cleared-before-named"};
// A lock is taken over from an owner that may be alive (chime/2).
inline constexpr MutantName kLockBroken{"chime/lock-broken-without-fencing"};
// Nobody takes over the locks of the dead.
inline constexpr MutantName kNoTakeover{"chime/no-takeover"};
// A lock is released by a WRITE, which an atomic of somebody else may swallow.
inline constexpr MutantName kUnlockByWrite{"chime/unlock-by-write"};
// A change that finds nothing to do keeps the lock.
inline constexpr MutantName kRefusedKeepsLock{"chime/refused-keeps-lock"};
// A separator that is missing in a fresh parent is not inserted (chime/7).
inline constexpr MutantName kNotRepaired{"chime/half-split-not-repaired"};
// The root is changed, whoever has changed it meanwhile.
inline constexpr MutantName kRootOverwritten{"chime/root-overwritten"};
// Any key with the same prefix and tag is the key.
inline constexpr MutantName kPrefixIsKey{"chime/prefix-is-key"};
// An entry whose key is 0 is taken for one that is free.
inline constexpr MutantName kZeroKeyIsFree{"chime/zero-key-is-free"};
// A block is given back as soon as it is unlinked.
inline constexpr MutantName kReuseAtOnce{"chime/block-reused-at-once"};
// A scan takes the first READ of a leaf (chime/4).
inline constexpr MutantName kScanReadsOnce{"chime/scan-reads-once"};
// A scan goes to the leaf that the client remembers as the next, whatever the sibling is (chime/6).
inline constexpr MutantName kScanTrustsCache{"chime/scan-trusts-cache"};
// Who waits for a lock keeps its pin, and its memory of the tree, however long it takes (chime/10).
inline constexpr MutantName kWaitsWithPin{"chime/waits-with-its-pin"};
// An operation that has waited goes on, although its table may have been dropped meanwhile (chime/10).
inline constexpr MutantName kPinsPastADrop{"chime/pins-past-a-drop"};
// A dead leaf is changed like any other (chime/9).
inline constexpr MutantName kDeadIsChanged{"chime/insert-into-dead-leaf"};
// Who does not find a key in a dead leaf does not ask its heir (chime/9).
inline constexpr MutantName kHeirIgnored{"chime/heir-ignored"};
// Whoever takes over a leaf in the middle of a merge leaves its keys to the dead leaf (chime/9).
inline constexpr MutantName kMergeNotCompleted{"chime/merge-not-completed"};
// Whoever takes over a parent in the middle of a merge leaves it the dead child (chime/9).
inline constexpr MutantName kDeadChildKept{"chime/dead-child-kept"};
// A pivot is inserted although its leaf is dead (chime/9).
inline constexpr MutantName kDeadPivotInserted{"chime/dead-pivot-inserted"};
// A leaf that somebody has put a key into meanwhile goes all the same.
inline constexpr MutantName kAbsorbedNotEmpty{"chime/absorbed-while-not-empty"};
// A leaf is retired while its parent names it (chime/8).
inline constexpr MutantName kRetiredWhileNamed{"chime/retired-before-unlinked"};
// What a client remembers leads it to leaves that are gone (chime/8).
inline constexpr MutantName kFreedRemembered{"chime/freed-leaf-remembered"};
// What was read before it was to be forgotten is remembered afterwards (chime/8).
inline constexpr MutantName kOldReadRemembered{"chime/old-read-remembered"};
// A leaf that somebody died over is swept, and nobody is told (chime/8).
inline constexpr MutantName kSweptUnannounced{"chime/swept-unannounced"};
// A cursor goes on at the leaf that it knows, whatever has become of it (chime/8).
inline constexpr MutantName kCursorTrusts{"chime/cursor-trusts-its-leaf"};
// The cache of inner nodes grows without a bound.
inline constexpr MutantName kCacheUnbounded{"chime/cache-unbounded"};

// What stands where a key was found last is the key (chime/1).
inline constexpr MutantName kGuessNotCompared{"chime/speculation-not-compared"};
// A key that does not stand where it was found last is absent (chime/4).
inline constexpr MutantName kGuessIsFinal{"chime/speculation-final"};
// A dead leaf sends those to its heir whose keys had been split away from it (chime/9).
inline constexpr MutantName kHeirBeforeFence{"chime/heir-before-fence"};
// A dead leaf whose lock is taken over is given what its sibling had (chime/9).
inline constexpr MutantName kDeadInherits{"chime/dead-leaf-inherits"};
// The leaves of both halves of the keys have one parent, under which they are merged (chime/11).
inline constexpr MutantName kMergedAcross{"chime/merged-across-the-middle"};
// Keys of the upper half are taken for those of the lower one that differ in nothing else (chime/11).
inline constexpr MutantName kHalfIgnored{"chime/half-ignored"};
// Where a key of one half was found, a key of the other is looked for if their hashes are alike (chime/11).
inline constexpr MutantName kSpotsOfBothHalves{"chime/spots-of-both-halves"};
// Where keys were found is remembered although leaves have gone (chime/8).
inline constexpr MutantName kHotspotsKept{"chime/hotspots-outlive-leaves"};
// What is remembered of keys grows without a bound.
inline constexpr MutantName kHotspotsUnbounded{"chime/hotspots-unbounded"};

inline constexpr std::array kAllMutants = {
    kStopsAtVacancy,    kMissNotConfirmed,  kMovesNotRaised,   kFenceIgnored,      kSourceFirst,
    kNotNormalized,     kOddIgnored,        kClearedFirst,     kLockBroken,        kNoTakeover,
    kUnlockByWrite,     kRefusedKeepsLock,  kNotRepaired,      kRootOverwritten,   kPrefixIsKey,
    kZeroKeyIsFree,     kReuseAtOnce,       kScanReadsOnce,    kScanTrustsCache,   kCacheUnbounded,
    kWaitsWithPin,      kPinsPastADrop,     kDeadIsChanged,    kHeirIgnored,       kMergeNotCompleted,
    kDeadChildKept,     kDeadPivotInserted, kAbsorbedNotEmpty, kRetiredWhileNamed, kFreedRemembered,
    kOldReadRemembered, kSweptUnannounced,  kCursorTrusts,     kGuessNotCompared,  kGuessIsFinal,
    kHotspotsUnbounded, kHotspotsKept,      kHeirBeforeFence,  kDeadInherits,      kMergedAcross,
    kHalfIgnored,       kSpotsOfBothHalves,
};

}  // namespace farside::index::chime
