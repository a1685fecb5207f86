// The planted bugs of the shard table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::shard {

// ---- keys and slots

// A put fills the first free slot it sees, hole or not, by a plain CAS, as the paper has it: two puts of a
// key land in two slots, and a delete brings the older one back (shard/1).
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
// An insert under a lock goes to the unit that was the key's when the lock was asked for.
inline constexpr MutantName kUnitOfOldVersion{"shard/insert-into-unit-of-old-version"};
// An insert goes to a line of level 2 of a version that another operation of the client knows to be over.
inline constexpr MutantName kLineOfOldVersion{"shard/insert-into-line-of-old-version"};
// An insert does not ask whether the holder of a second lock is dead.
inline constexpr MutantName kSecondLockNotHelped{"shard/second-lock-not-helped"};
// A client that holds a lock waits for another one.
inline constexpr MutantName kSecondLockAwaited{"shard/second-lock-awaited"};
// For a change, level 1 is read when level 2 was read already (shard/1).
inline constexpr MutantName kLevel2First{"shard/level-2-read-first"};
// The block that the location cache names is taken, whatever the bucket says (shard/9).
inline constexpr MutantName kCacheNotCompared{"shard/cache-not-compared"};
// A search together with others takes a key that is not in its bucket for absent, whatever the overflow bit
// says (shard/4).
inline constexpr MutantName kOverflowNotAskedFor{"shard/together-without-overflow"};
// The block that the location cache names is read before the line that says whether it is the key's
// (shard/9).
inline constexpr MutantName kCacheBlockFirst{"shard/cache-block-read-first"};
// Locations are used however old they are, where READs have no order (shard/9).
inline constexpr MutantName kCacheOfAnyEpoch{"shard/cache-of-any-epoch"};

// An entry that is remembered is changed without a look, however long ago it was seen (shard/11).
inline constexpr MutantName kRememberedOfAnyAge{"shard/remembered-of-any-age"};
// An entry counts as seen in the epoch that its client knew when the READ had completed (shard/11).
inline constexpr MutantName kRememberedAsOfItsEnd{"shard/remembered-as-of-its-end"};
// An entry is changed without a look, however long ago it was seen, in a table that has grown since
// (shard/11).
inline constexpr MutantName kRememberedOfAnyVersion{"shard/remembered-of-any-version"};
// An entry is changed without a look, however long ago it was seen, although a resize is announced
// (shard/11).
inline constexpr MutantName kRememberedWhileAnnounced{"shard/remembered-while-announced"};
// A delete of an entry that is not in its slot any more takes the key for absent (shard/11).
inline constexpr MutantName kRememberedIsAll{"shard/remembered-delete-asks-no-further"};
// A block that was unlinked without a look is not retired (shard/11).
inline constexpr MutantName kRememberedNotRetired{"shard/remembered-block-not-retired"};

// A put that has lost ends at once, whatever has replaced the entry: a counter, too (shard/12).
inline constexpr MutantName kYieldsToAny{"shard/yields-to-any"};
// The same behind a client that has changed nothing but the flag of the entry (shard/12).
inline constexpr MutantName kYieldsToAFlag{"shard/yields-to-a-flag"};
// The same of a put that has only remembered the entry that was replaced, perhaps before it began (shard/12).
inline constexpr MutantName kYieldsOnMemory{"shard/yields-on-memory"};

// ---- resizing (more in index/kit/mutants.h)

// No middle state: a client that has seen an announcement writes as before, as in the paper's barrier
// (shard/6).
inline constexpr MutantName kNoCarefulMode{"shard/barrier-without-middle-state"};
// A bucket whose lines differ in their version is taken as it is (shard/3).
inline constexpr MutantName kTornAccepted{"shard/version-check-skipped"};
// The READ of a bucket that is newer than the known directory is taken as it is.
inline constexpr MutantName kNotRefreshed{"shard/metadata-not-refreshed"};
// A reader that has only seen the announcement does not look at the new unit (shard/7).
inline constexpr MutantName kChildNotRead{"shard/child-not-read"};
// A new unit that is empty is taken for a bucket without keys.
inline constexpr MutantName kUnsplitIsEmpty{"shard/unsplit-is-empty"};
// The overflow bit does not follow to the new unit (shard/4).
inline constexpr MutantName kOverflowNotPassedOn{"shard/overflow-bit-not-passed-on"};
// Level 2 is looked through for keys of the unit from its end to its beginning, and without a second look
// where READs have no order, while other clients split it (shard/4).
inline constexpr MutantName kOverflowProvedCarelessly{"shard/overflow-proved-carelessly"};
// The tags are not refreshed by every eighth resize.
inline constexpr MutantName kStaleWindow{"shard/window-not-refreshed"};
// The insert that goes along with a split does not look whether the key was inserted meanwhile (shard/1).
inline constexpr MutantName kBlindFold{"shard/insert-folded-blindly"};
// Level 2 is split by the number of level 1.
inline constexpr MutantName kWrongNumber{"shard/level-2-split-by-wrong-number"};
// The old unit is written before the new one (shard/7).
inline constexpr MutantName kParentFirst{"shard/parent-first"};
// What the front lines of the old bucket will have is taken from the others first (shard/7).
inline constexpr MutantName kBackLinesFirst{"shard/back-lines-first"};
// An insert that expects to split does not look at level 2, whatever the overflow bit says (shard/1).
inline constexpr MutantName kLevel2NotReadBySplit{"shard/level-2-not-read-by-split"};
// The bucket that a key was in before it was split is taken for the key's.
inline constexpr MutantName kBucketOfParent{"shard/bucket-of-parent"};
// A client that takes a lock over does not finish what was begun under it (shard/8).
inline constexpr MutantName kNotFinished{"shard/split-not-finished"};
// A split that is finished is written anew, with all that was changed since (shard/8).
inline constexpr MutantName kRedoneFromScratch{"shard/finished-from-scratch"};
// A lock is taken over from an owner that may be alive.
inline constexpr MutantName kLockBroken{"shard/lock-broken-without-fencing"};
// A walk through the whole table takes a unit as it is, although its split has begun (shard/7).
inline constexpr MutantName kHalfSplitWalked{"shard/half-split-walked"};
// A walk or a cursor does not go on to units that the table got meanwhile.
inline constexpr MutantName kWalkEndsEarly{"shard/walk-ends-early"};
inline constexpr MutantName kCursorEndsEarly{"shard/cursor-ends-early"};

// ---- touches (evac/1)

// A touch changes its entry whatever the entry holds by then.
inline constexpr MutantName kTouchByWrite{"shard/evacuates-by-write"};
// The block that a touch has emptied is handed out at once.
inline constexpr MutantName kTouchFreesAtOnce{"shard/evacuates-frees-at-once"};
// A touch whose CAS has failed retires the block all the same.
inline constexpr MutantName kTouchRetiresLosing{"shard/evacuates-retires-losing"};

inline constexpr std::array kAllMutants = {
    kTouchByWrite,
    kTouchFreesAtOnce,
    kTouchRetiresLosing,
    kPublishedRefill,
    kFailedCasIsDone,
    kTagIsKey,
    kFlagNotKept,
    kReuseAtOnce,
    kOverflowSetLate,
    kOverflowWithoutLock,
    kLinkDropsEntry,
    kNoCarefulMode,
    kTornAccepted,
    kNotRefreshed,
    kChildNotRead,
    kUnsplitIsEmpty,
    kOverflowNotPassedOn,
    kStaleWindow,
    kWrongNumber,
    kParentFirst,
    kNotFinished,
    kRedoneFromScratch,
    kLockBroken,
    kBlindFold,
    kHalfSplitWalked,
    kUnitOfOldVersion,
    kSecondLockNotHelped,
    kSecondLockAwaited,
    kLevel2First,
    kCacheNotCompared,
    kCacheBlockFirst,
    kOverflowNotAskedFor,
    kCacheOfAnyEpoch,
    kWalkEndsEarly,
    kCursorEndsEarly,
    kLineOfOldVersion,
    kOverflowProvedCarelessly,
    kBackLinesFirst,
    kLevel2NotReadBySplit,
    kBucketOfParent,
    kRememberedOfAnyAge,
    kRememberedAsOfItsEnd,
    kRememberedOfAnyVersion,
    kRememberedWhileAnnounced,
    kRememberedIsAll,
    kRememberedNotRetired,
    kYieldsToAny,
    kYieldsToAFlag,
    kYieldsOnMemory,
};

}  // namespace farside::index::shard
