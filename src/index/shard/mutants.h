// The planted bugs of the shard table; tests/mutants must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::shard {

// ---- keys and slots

// A put fills the first free slot it sees, hole or not, by a plain CAS, as the paper has it: two puts of a key land in
// two slots, and a delete brings the older one back (shard/1).
inline constexpr MutantName kPublishedRefill{"shard/published-refill-and-delete"};
// A failed CAS counts as done.
inline constexpr MutantName kFailedCasIsDone{"shard/failed-cas-is-done"};
// The key of a block is not compared: any key with the same tag is it.
inline constexpr MutantName kTagIsKey{"shard/tag-is-key"};
// An entry is changed together with its flag (shard/2).
inline constexpr MutantName kFlagNotKept{"shard/flag-not-kept"};
// A block is given back as soon as it is unlinked.
inline constexpr MutantName kReuseAtOnce{"shard/block-reused-at-once"};
// A key goes to level 2 before the bucket says so (shard/4).
inline constexpr MutantName kOverflowSetLate{"shard/overflow-set-late"};
// An insert that is not an append takes no lock (shard/1).
inline constexpr MutantName kOverflowWithoutLock{"shard/overflow-without-lock"};
// The entry that makes room for a link is not moved to the node.
inline constexpr MutantName kLinkDropsEntry{"shard/link-drops-entry"};

// A bucket that was read under a lock is taken for the key's, although the table was resized meanwhile.
inline constexpr MutantName kUnitOfOldVersion{"shard/unit-of-old-version"};

// ---- resizing

// No middle state: whoever has seen an announcement writes as before, as in the paper's barrier (shard/6).
inline constexpr MutantName kNoCarefulMode{"shard/barrier-without-middle-state"};
// Buckets are split without waiting for those who have not seen the announcement (shard/5).
inline constexpr MutantName kSplitBeforeGrace{"shard/split-before-grace"};
// A bucket whose lines differ in their version is taken as it is (shard/3).
inline constexpr MutantName kTornAccepted{"shard/version-check-skipped"};
// The READ of a bucket that is newer than the known directory is taken as it is.
inline constexpr MutantName kNotRefreshed{"shard/metadata-not-refreshed"};
// A reader who has only seen the announcement does not look at the new unit (shard/7).
inline constexpr MutantName kChildNotRead{"shard/child-not-read"};
// A new unit that is empty is taken for a bucket without keys.
inline constexpr MutantName kUnsplitIsEmpty{"shard/unsplit-is-empty"};
// The overflow bit does not follow to the new unit (shard/4).
inline constexpr MutantName kOverflowNotPassedOn{"shard/overflow-bit-not-passed-on"};
// The tags are not refreshed by every eighth resize.
inline constexpr MutantName kStaleWindow{"shard/window-not-refreshed"};
// The insert that goes along with a split does not look whether the key was inserted meanwhile (shard/1).
inline constexpr MutantName kBlindFold{"shard/insert-folded-blindly"};
// Level 2 is split by the number of level 1.
inline constexpr MutantName kWrongNumber{"shard/level-2-split-by-wrong-number"};
// The old unit is written before the new one (shard/7).
inline constexpr MutantName kParentFirst{"shard/parent-first"};
// Whoever takes a lock over does not finish what was begun under it (shard/8).
inline constexpr MutantName kNotFinished{"shard/split-not-finished"};
// A split that is finished is written anew, with all that was changed since (shard/8).
inline constexpr MutantName kRedoneFromScratch{"shard/finished-from-scratch"};
// A lock is taken over from an owner that may be alive.
inline constexpr MutantName kLockBroken{"shard/lock-broken-without-fencing"};

inline constexpr std::array kAllMutants = {
    kPublishedRefill, kFailedCasIsDone,     kTagIsKey,         kFlagNotKept,    kReuseAtOnce,
    kOverflowSetLate, kOverflowWithoutLock, kLinkDropsEntry,   kNoCarefulMode,  kSplitBeforeGrace,
    kTornAccepted,    kNotRefreshed,        kChildNotRead,     kUnsplitIsEmpty, kOverflowNotPassedOn,
    kStaleWindow,     kWrongNumber,         kParentFirst,      kNotFinished,    kRedoneFromScratch,
    kLockBroken,      kBlindFold,           kUnitOfOldVersion,
};

}  // namespace farside::index::shard
