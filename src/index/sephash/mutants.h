// The planted bugs of the sephash table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::sephash {

// A READ that shows entries of several rounds is taken (sephash/1).
inline constexpr MutantName kTornLookTaken{"sephash/torn-look-taken"};
// So is one into which several commits of this client may have fallen (sephash/1).
inline constexpr MutantName kOwnCommitsIgnored{"sephash/own-commits-ignored"};
// A search takes entries of the last round for those of this one (sephash/1).
inline constexpr MutantName kEntryOfLastRoundTaken{"sephash/entry-of-last-round-taken"};
// A search takes the entry that was appended first.
inline constexpr MutantName kOldestEntryWins{"sephash/oldest-entry-wins"};
// A slot is free if the one before it is not (sephash/2).
inline constexpr MutantName kFreeSlotByPair{"sephash/free-slot-by-pair"};
// After a CAS that failed, a strict change goes on to the next slot whatever has taken this one (sephash/2).
inline constexpr MutantName kNextSlotUnseen{"sephash/next-slot-unseen"};
// Behind a slot that was taken meanwhile, the next one counts as free, though the look shows an entry of the
// round in it (sephash/2).
inline constexpr MutantName kFilledSlotTaken{"sephash/filled-slot-taken"};
// A put appends where it has found the last free slot, whatever the slots before that one have (sephash/2).
inline constexpr MutantName kWindowTrusted{"sephash/window-trusted"};
// A merge retires at once what slots of the CurSegment still name (sephash/3).
inline constexpr MutantName kRetiredWhileNamed{"sephash/retired-while-named"};
// A segment that a split has made retires what slots of the old segment still name (sephash/3).
inline constexpr MutantName kMovedStayNamed{"sephash/moved-stay-named"};
// The padding of a round is that of another round (sephash/4).
inline constexpr MutantName kPaddingNotUnique{"sephash/padding-not-unique"};
// A merge retires nothing of what the last one has dropped (sephash/3).
inline constexpr MutantName kDroppedForgotten{"sephash/dropped-forgotten"};
// The walk does not know of what the last merge has dropped (sephash/3).
inline constexpr MutantName kWalkWithoutDropped{"sephash/walk-without-dropped"};
// The filter is set when the entry is there already (sephash/6).
inline constexpr MutantName kFilterAfterCas{"sephash/filter-after-cas"};
// The filter of a round that is over is set (sephash/6).
inline constexpr MutantName kFilterOfOldMain{"sephash/filter-of-old-main"};
// A search samples the filter before the meta word (sephash/5).
inline constexpr MutantName kFilterBeforeMeta{"sephash/filter-before-meta"};
// A search relies on the order of READs where they have none (sephash/5).
inline constexpr MutantName kReadsTakenInAnyOrder{"sephash/reads-taken-in-any-order"};
// A search takes the MainSegment that it remembers together with a later round (sephash/5).
inline constexpr MutantName kOldMainTaken{"sephash/old-main-taken"};
// A MainSegment at the same address is taken for the one that was there before (sephash/5).
inline constexpr MutantName kAddressIsName{"sephash/address-is-name"};
// An entry has a fingerprint of the entry that it replaces.
inline constexpr MutantName kFp2OfLastRound{"sephash/fp2-of-last-round"};
// A merge leaves out what was appended last.
inline constexpr MutantName kMergeDropsLast{"sephash/merge-drops-last"};
// A merge is made from the slots that a put has read, though there are more.
inline constexpr MutantName kPartialLookMerged{"sephash/partial-look-merged"};
// The meta word names a MainSegment before it is written (sephash/7).
inline constexpr MutantName kCommitBeforeMain{"sephash/commit-before-main"};
// A client whose merge came too late retires what it would have replaced (sephash/9).
inline constexpr MutantName kLoserRetires{"sephash/loser-retires"};
// A split does not begin a round: a client that has not seen it appends all the same (sephash/10).
inline constexpr MutantName kSplitKeepsEpoch{"sephash/split-keeps-epoch"};
// A key is searched and appended where the directory says, whatever the segment says of itself (sephash/10).
inline constexpr MutantName kDepthIgnored{"sephash/depth-ignored"};
// The MainSegment of a split does not name the sibling (sephash/7).
inline constexpr MutantName kSiblingForgotten{"sephash/sibling-forgotten"};
// A MainSegment that names no sibling is taken for the end of the way: the directory is not asked
// (sephash/11).
inline constexpr MutantName kDirectoryNotAsked{"sephash/directory-not-asked"};
// No client makes the directory's entry of a sibling but the one that has split (sephash/12).
inline constexpr MutantName kSiblingNotCompleted{"sephash/sibling-not-completed"};
// The directory names a sibling before it is there (sephash/13).
inline constexpr MutantName kEntryBeforeSegment{"sephash/entry-before-segment"};
// A part of the directory has whatever its memory had before (sephash/13).
inline constexpr MutantName kPartNotEmpty{"sephash/part-not-empty"};
// The depth bits of an entry are those of the depth that the directory knows (sephash/8).
inline constexpr MutantName kOldDepthBits{"sephash/old-depth-bits"};
// A merge does not see that an entry with the tag of the group before is of the same key (sephash/8).
inline constexpr MutantName kTagsBeforeForgotten{"sephash/tags-before-forgotten"};
// A split that ends a group leaves the tags of the group before as they are (sephash/8).
inline constexpr MutantName kTagsNotRenewed{"sephash/tags-not-renewed"};
// A cursor passes over segments that were split from those that its client knows.
inline constexpr MutantName kCursorSkipsSibling{"sephash/cursor-skips-sibling"};
// The walk, which only reads, makes the directory's entry of a sibling.
inline constexpr MutantName kWalkCompletes{"sephash/walk-completes"};
// The walk does not know of the spare memory.
inline constexpr MutantName kWalkWithoutSpare{"sephash/walk-without-spare"};
// Spare memory is written while clients may still read what it was (sephash/3).
inline constexpr MutantName kSpareWithoutGrace{"sephash/spare-without-grace"};
// Clients that find the spare memory at the same time all use it.
inline constexpr MutantName kSpareTakenTwice{"sephash/spare-taken-twice"};

// ---- touches (evac/1)

// A touch appends its entry whatever the slot holds by then.
inline constexpr MutantName kTouchByWrite{"sephash/evacuates-by-write"};
// The block that a touch has emptied is handed out at once, and not when no slot names it any more.
inline constexpr MutantName kTouchFreesAtOnce{"sephash/evacuates-frees-at-once"};
// A touch whose CAS has failed retires the block all the same.
inline constexpr MutantName kTouchRetiresLosing{"sephash/evacuates-retires-losing"};

inline constexpr std::array kAllMutants = {
    kTornLookTaken,        kOwnCommitsIgnored,   kEntryOfLastRoundTaken, kOldestEntryWins,
    kFreeSlotByPair,       kNextSlotUnseen,      kFilledSlotTaken,       kWindowTrusted,
    kRetiredWhileNamed,    kMovedStayNamed,      kPaddingNotUnique,      kDroppedForgotten,
    kWalkWithoutDropped,   kFilterAfterCas,      kFilterOfOldMain,       kFilterBeforeMeta,
    kReadsTakenInAnyOrder, kOldMainTaken,        kAddressIsName,         kFp2OfLastRound,
    kMergeDropsLast,       kPartialLookMerged,   kCommitBeforeMain,      kLoserRetires,
    kSplitKeepsEpoch,      kDepthIgnored,        kSiblingForgotten,      kDirectoryNotAsked,
    kSiblingNotCompleted,  kEntryBeforeSegment,  kPartNotEmpty,          kOldDepthBits,
    kTagsNotRenewed,       kTagsBeforeForgotten, kCursorSkipsSibling,    kWalkCompletes,
    kWalkWithoutSpare,     kSpareTakenTwice,     kSpareWithoutGrace,     kTouchByWrite,
    kTouchFreesAtOnce,     kTouchRetiresLosing,
};

}  // namespace farside::index::sephash
