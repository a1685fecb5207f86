// The planted bugs of the chime table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::chime {

// An insert searches for its key up to the first free slot only: there may be a copy behind it (chime/3).
inline constexpr MutantName kStopsAtVacancy{"chime/stops-at-first-vacancy"};
// A key that one READ does not show is absent (chime/4).
inline constexpr MutantName kMissNotConfirmed{"chime/miss-not-confirmed"};
// Between two looks at `moves`, entries may move as they like.
inline constexpr MutantName kMovesNotRaised{"chime/moves-not-raised"};
// A search that does not find its key does not check whether the leaf still has the key's range (chime/6).
inline constexpr MutantName kFenceIgnored{"chime/fence-ignored"};
// A moved entry is cleared before it is written where it goes (chime/3).
inline constexpr MutantName kSourceFirst{"chime/source-before-destination"};
// A client that takes over the lock of a leaf does not bring the leaf to rest (chime/2).
inline constexpr MutantName kNotNormalized{"chime/not-brought-to-rest"};
// A search that finds a leaf in the middle of a split goes on to the new leaf (chime/5).
inline constexpr MutantName kOddIgnored{"chime/half-split-followed"};
// The entries that leave are cleared before the old leaf names the new one (chime/5).
inline constexpr MutantName kClearedFirst{"chime/cleared-before-named"};
// A client takes over the lock of an owner that may be alive (chime/2).
inline constexpr MutantName kLockBroken{"chime/lock-broken-without-fencing"};
// No client takes over the locks of dead clients (chime/2).
inline constexpr MutantName kNoTakeover{"chime/no-takeover"};
// A change that finds nothing to do keeps the lock.
inline constexpr MutantName kRefusedKeepsLock{"chime/refused-keeps-lock"};
// A lock that is handed over to a change which is destroyed before it goes on stays taken (chime/13).
inline constexpr MutantName kHandedToTheDestroyed{"chime/handed-to-the-destroyed"};
// A lock is handed over as often as changes of the client wait for it (chime/13).
inline constexpr MutantName kHandedOverForEver{"chime/handed-over-for-ever"};
// A lock is handed over when the change is only posted (chime/13).
inline constexpr MutantName kHandedOverWhenPosted{"chime/handed-over-when-posted"};
// A split does not raise the count of the leaf (chime/14).
inline constexpr MutantName kSplitNotCounted{"chime/split-not-counted"};
// A leaf that dies does not raise its count (chime/14).
inline constexpr MutantName kDeathNotCounted{"chime/death-not-counted"};
// A client that takes over a lock raises the count only if the leaf is not at rest (chime/14).
inline constexpr MutantName kRaisedIfNotAtRest{"chime/count-raised-if-not-at-rest"};
// A pivot that is missing in a parent that was just READ is not inserted (chime/7).
inline constexpr MutantName kNotRepaired{"chime/half-split-not-repaired"};
// The root is overwritten, although another client may have changed it.
inline constexpr MutantName kRootOverwritten{"chime/root-overwritten"};
// Any key with the same prefix and tag is taken for the key.
inline constexpr MutantName kPrefixIsKey{"chime/prefix-is-key"};
// An entry whose key is 0 is taken for a free one.
inline constexpr MutantName kZeroKeyIsFree{"chime/zero-key-is-free"};
// A block is freed as soon as it is unlinked, and not retired.
inline constexpr MutantName kReuseAtOnce{"chime/block-reused-at-once"};
// A scan takes a leaf as it was READ, at rest or not (chime/4).
inline constexpr MutantName kScanReadsOnce{"chime/scan-reads-once"};
// A scan goes on to the leaf that the cached parent names next, whatever the sibling is (chime/6).
inline constexpr MutantName kScanTrustsCache{"chime/scan-trusts-cache"};
// An operation that waits for a lock keeps its pin, however long it takes (chime/10).
inline constexpr MutantName kWaitsWithPin{"chime/waits-with-its-pin"};
// A dead leaf is changed like any other (chime/9).
inline constexpr MutantName kDeadIsChanged{"chime/insert-into-dead-leaf"};
// A search that does not find its key in a dead leaf does not go to the heir (chime/9).
inline constexpr MutantName kHeirIgnored{"chime/heir-ignored"};
// A client that takes over the lock of a leaf in the middle of a merge does not give it the dead leaf's range
// (chime/9).
inline constexpr MutantName kMergeNotCompleted{"chime/merge-not-completed"};
// A client that takes over the lock of a parent in the middle of a merge does not clear the dead child's
// pivot (chime/9).
inline constexpr MutantName kDeadChildKept{"chime/dead-child-kept"};
// A pivot is inserted although its leaf is dead (chime/9).
inline constexpr MutantName kDeadPivotInserted{"chime/dead-pivot-inserted"};
// A leaf is merged although another client has inserted a key.
inline constexpr MutantName kAbsorbedNotEmpty{"chime/absorbed-while-not-empty"};
// A leaf is retired while its parent names it (chime/8).
inline constexpr MutantName kRetiredWhileNamed{"chime/retired-before-unlinked"};
// A client does not forget cached nodes when leaves were freed (chime/8).
inline constexpr MutantName kFreedRemembered{"chime/freed-leaf-remembered"};
// A node that was READ before the cache was cleared goes into the cache afterwards (chime/8).
inline constexpr MutantName kOldReadRemembered{"chime/old-read-remembered"};
// A sweep frees leaves that a dead client had unlinked, and does not raise `merges` (chime/8).
inline constexpr MutantName kSweptUnannounced{"chime/swept-unannounced"};
// A cursor goes on at the leaf that it names, although that may have been freed (chime/8).
inline constexpr MutantName kCursorTrusts{"chime/cursor-trusts-its-leaf"};
// The cache of inner nodes grows without a bound.
inline constexpr MutantName kCacheUnbounded{"chime/cache-unbounded"};

// The entry at a hotspot is taken for that of the key, without a comparison (chime/1).
inline constexpr MutantName kGuessNotCompared{"chime/speculation-not-compared"};
// A key that is not at its hotspot is taken for absent (chime/4).
inline constexpr MutantName kGuessIsFinal{"chime/speculation-final"};
// A search goes to the heir of a dead leaf for a key that was split off before the leaf died (chime/9).
inline constexpr MutantName kHeirBeforeFence{"chime/heir-before-fence"};
// A client that takes over the lock of a dead leaf gives it the range of its sibling (chime/9).
inline constexpr MutantName kDeadInherits{"chime/dead-leaf-inherits"};
// The leaves of both halves have one parent, under which they are merged (chime/11).
inline constexpr MutantName kMergedAcross{"chime/merged-across-the-middle"};
// Keys of the upper half are taken for those of the lower half with the same other bits (chime/11).
inline constexpr MutantName kHalfIgnored{"chime/half-ignored"};
// The hotspot of a key is used for a key of the other half whose hash collides (chime/11).
inline constexpr MutantName kSpotsOfBothHalves{"chime/spots-of-both-halves"};
// Hotspots are not cleared when leaves were freed (chime/8).
inline constexpr MutantName kHotspotsKept{"chime/hotspots-outlive-leaves"};
// The hotspots grow without a bound.
inline constexpr MutantName kHotspotsUnbounded{"chime/hotspots-unbounded"};

// An inner node that was READ after its death goes into the cache (chime/8).
inline constexpr MutantName kDeadInnerRemembered{"chime/dead-inner-remembered"};
// A dead inner node is changed like any other (chime/12).
inline constexpr MutantName kDeadInnerChanged{"chime/dead-inner-changed"};
// An inner node is merged with one that is not its sibling, over another that the parent does not know yet.
inline constexpr MutantName kInnerMergedOver{"chime/inner-merged-over-another"};
// The heir of an inner node gets its child before the node is dead.
inline constexpr MutantName kInnerFilledFirst{"chime/inner-filled-before-the-other-is-dead"};
// A client that takes over the lock of an inner node in the middle of a merge does not give it the dead
// node's range (chime/12).
inline constexpr MutantName kInnerNotCompleted{"chime/inner-merge-not-completed"};
// A parent does not count its children that have died (chime/12).
inline constexpr MutantName kDeathsNotCounted{"chime/inner-deaths-not-counted"};
// The parents of leaves of both halves are merged (chime/11).
inline constexpr MutantName kParentsAcross{"chime/parents-merged-across-the-middle"};
// A leaf that is remembered as the first child of its parent is taken for one (StaysFirst).
inline constexpr MutantName kFirstRemembered{"chime/first-child-remembered"};
// A split that fails keeps the memory that it has taken.
inline constexpr MutantName kFailedSplitKeeps{"chime/failed-split-keeps-memory"};
// An insert that fails keeps the block that it has taken.
inline constexpr MutantName kFailedInsertKeeps{"chime/failed-insert-keeps-memory"};

// ---- touches (evac/1)

// A touch writes what it has made of what stood there before it took the lock: it changes its entry whatever
// the entry holds by then.
inline constexpr MutantName kTouchByWrite{"chime/evacuates-by-write"};
// The block that a touch has emptied is handed out at once.
inline constexpr MutantName kTouchFreesAtOnce{"chime/evacuates-frees-at-once"};
// A touch that finds its record in another block by then retires the block all the same.
inline constexpr MutantName kTouchRetiresLosing{"chime/evacuates-retires-losing"};

inline constexpr std::array kAllMutants = {
    kStopsAtVacancy,    kMissNotConfirmed,     kMovesNotRaised,      kFenceIgnored,
    kSourceFirst,       kNotNormalized,        kOddIgnored,          kClearedFirst,
    kLockBroken,        kNoTakeover,           kSplitNotCounted,     kDeathNotCounted,
    kRaisedIfNotAtRest, kHandedToTheDestroyed, kHandedOverForEver,   kHandedOverWhenPosted,
    kRefusedKeepsLock,  kNotRepaired,          kRootOverwritten,     kPrefixIsKey,
    kZeroKeyIsFree,     kReuseAtOnce,          kScanReadsOnce,       kScanTrustsCache,
    kCacheUnbounded,    kWaitsWithPin,         kDeadIsChanged,       kHeirIgnored,
    kMergeNotCompleted, kDeadChildKept,        kDeadPivotInserted,   kAbsorbedNotEmpty,
    kRetiredWhileNamed, kFreedRemembered,      kOldReadRemembered,   kSweptUnannounced,
    kCursorTrusts,      kGuessNotCompared,     kGuessIsFinal,        kHotspotsUnbounded,
    kHotspotsKept,      kHeirBeforeFence,      kDeadInherits,        kMergedAcross,
    kHalfIgnored,       kSpotsOfBothHalves,    kDeadInnerRemembered, kDeadInnerChanged,
    kInnerMergedOver,   kInnerFilledFirst,     kInnerNotCompleted,   kDeathsNotCounted,
    kParentsAcross,     kFailedSplitKeeps,     kFirstRemembered,     kFailedInsertKeeps,
    kTouchByWrite,      kTouchFreesAtOnce,     kTouchRetiresLosing,
};

}  // namespace farside::index::chime
