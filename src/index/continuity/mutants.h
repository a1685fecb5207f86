// The planted bugs of the continuity table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::continuity {

// ---- handlers: what readers see

// A pair is changed under an even sequence, which stays as it was (continuity/1).
inline constexpr MutantName kSequenceNotOdd{"continuity/sequence-not-odd"};
// An update writes over the slot that counts (continuity/2).
inline constexpr MutantName kUpdateInPlace{"continuity/update-in-place"};
// New bits are visible before they are durable (continuity/3).
inline constexpr MutantName kEvenBeforeDurable{"continuity/even-before-durable"};
// The pair that a handler was changing when it gave up on a line still counts as one that is being changed
// (continuity/6).
inline constexpr MutantName kHandlerLeftNamed{"continuity/handler-left-named"};

// A handler does not name the pair that it changes, which looks as if a power cut had left it (continuity/6).
inline constexpr MutantName kPairNotNamed{"continuity/pair-not-named"};
// A handler names no pair any more before the sequence is another one (continuity/6).
inline constexpr MutantName kUnnamedTooEarly{"continuity/unnamed-too-early"};
// A change that finds no free slot is refused, instead of asking for a group or a larger table.
inline constexpr MutantName kFullSegmentRefuses{"continuity/full-segment-refuses"};
// A change whose answer was lost is sent again.
inline constexpr MutantName kSentAgain{"continuity/sent-again"};

// ---- handlers: what survives a power cut

// A bit is stored before its record is durable (continuity/3).
inline constexpr MutantName kBitsBeforeRecord{"continuity/bits-before-record"};
// A slot is not flushed.
inline constexpr MutantName kSlotNotFlushed{"continuity/slot-not-flushed"};
// The bits do not wait for the slot.
inline constexpr MutantName kSlotNotDrained{"continuity/slot-not-drained"};
// A change is acknowledged before its bits are durable.
inline constexpr MutantName kBitsNotFlushed{"continuity/bits-not-flushed"};
// The same: they are flushed, and not waited for.
inline constexpr MutantName kBitsNotDrained{"continuity/bits-not-drained"};
// A block is linked before it is durable.
inline constexpr MutantName kBlockNotFlushed{"continuity/block-not-flushed"};
// The pointer to a group is stored after the bits of its slots.
inline constexpr MutantName kGroupAfterBits{"continuity/group-after-bits"};
// Bits of a group are stored before the pointer to it is durable (continuity/3).
inline constexpr MutantName kGroupNotFlushed{"continuity/group-not-flushed"};
// A group is linked before it is durable that it counts as one.
inline constexpr MutantName kCountNotFlushed{"continuity/count-not-flushed"};
// The same: the count is flushed, and not waited for.
inline constexpr MutantName kCountNotDrained{"continuity/count-not-drained"};

// A table is live before its pairs, or its root, are durable (pool durable/3).
inline constexpr MutantName kNewTableNotDurable{"continuity/new-table-not-durable"};
inline constexpr MutantName kNewRootNotDurable{"continuity/new-root-not-durable"};

// ---- growth

// The copies of a pair's records are not durable when the pair is marked (continuity/4).
inline constexpr MutantName kCopyNotFlushed{"continuity/copy-not-flushed"};
// The same of the copied slots alone, and of the wait for all of it.
inline constexpr MutantName kCopiedSlotNotFlushed{"continuity/copied-slot-not-flushed"};
inline constexpr MutantName kCopyNotDrained{"continuity/copy-not-drained"};
// A pair whose records were copied is not marked as moved (continuity/4).
inline constexpr MutantName kPairNotMarked{"continuity/pair-not-marked"};
// The next table takes changes before the mark is durable (continuity/4).
inline constexpr MutantName kMarkNotDurable{"continuity/mark-not-durable"};
// The same: the mark is flushed, and not waited for.
inline constexpr MutantName kMarkNotDrained{"continuity/mark-not-drained"};
// The next table is the current one before all pairs are moved (continuity/5).
inline constexpr MutantName kRootBeforeCopy{"continuity/root-before-copy"};
// What was moved to the last table counts for the next one.
inline constexpr MutantName kMovedNotReset{"continuity/moved-not-reset"};
// There is a next table before it is durable that no pair is moved to it.
inline constexpr MutantName kMovedNotDurable{"continuity/moved-not-durable"};
// There is a next table before it is durable that it has no groups.
inline constexpr MutantName kNoGroupsNotFlushed{"continuity/no-groups-not-flushed"};
inline constexpr MutantName kNoGroupsNotDrained{"continuity/no-groups-not-drained"};
// Pairs are moved to a table of which the root may not know after a power cut.
inline constexpr MutantName kNextNotDurable{"continuity/next-not-durable"};
// The old table has no next one before it is durable that it is not the current one (continuity/5).
inline constexpr MutantName kCurrentNotDurable{"continuity/current-not-durable"};
inline constexpr MutantName kCurrentNotDrained{"continuity/current-not-drained"};
// The old table is given back while readers may have it (continuity/5).
inline constexpr MutantName kOldTableFreedAtOnce{"continuity/old-table-freed-at-once"};

// ---- readers

// A segment is taken without a second look at the indicator (continuity/1).
inline constexpr MutantName kOneLook{"continuity/one-look"};
// A segment under an odd sequence is taken at once (continuity/1).
inline constexpr MutantName kOddTaken{"continuity/odd-taken"};
// An odd sequence that a power cut has left is waited for (continuity/6).
inline constexpr MutantName kOddLeftForEver{"continuity/odd-left-for-ever"};
// The sweep after a power cut leaves odd sequences behind: lookups take two trips for ever.
inline constexpr MutantName kOddNotSettled{"continuity/odd-not-settled"};
// The mark of a pair that was moved is not looked at (continuity/4).
inline constexpr MutantName kMarkIgnored{"continuity/mark-ignored"};
// A group is read without a look at the indicator (continuity/1).
inline constexpr MutantName kGroupUnchecked{"continuity/group-unchecked"};

// ---- touches (evac/1)

// A handler moves the block that a touch names whatever the slot of its key holds by then.
inline constexpr MutantName kTouchByWrite{"continuity/evacuates-by-write"};
// The block that a touch has emptied is handed out at once.
inline constexpr MutantName kTouchFreesAtOnce{"continuity/evacuates-frees-at-once"};
// A touch that the handler has refused retires the block all the same.
inline constexpr MutantName kTouchRetiresLosing{"continuity/evacuates-retires-losing"};

inline constexpr std::array kAllMutants = {
    kSequenceNotOdd,
    kUpdateInPlace,
    kEvenBeforeDurable,
    kBitsBeforeRecord,
    kSlotNotFlushed,
    kSlotNotDrained,
    kBitsNotFlushed,
    kBitsNotDrained,
    kBlockNotFlushed,
    kGroupAfterBits,
    kGroupNotFlushed,
    kCountNotFlushed,
    kCountNotDrained,
    kNewTableNotDurable,
    kNewRootNotDurable,
    kCopyNotFlushed,
    kCopiedSlotNotFlushed,
    kCopyNotDrained,
    kPairNotMarked,
    kMarkNotDurable,
    kMarkNotDrained,
    kRootBeforeCopy,
    kMovedNotReset,
    kMovedNotDurable,
    kNoGroupsNotFlushed,
    kNoGroupsNotDrained,
    kNextNotDurable,
    kCurrentNotDurable,
    kCurrentNotDrained,
    kOldTableFreedAtOnce,
    kOneLook,
    kOddTaken,
    kOddLeftForEver,
    kMarkIgnored,
    kGroupUnchecked,
    kHandlerLeftNamed,
    kOddNotSettled,
    kPairNotNamed,
    kUnnamedTooEarly,
    kFullSegmentRefuses,
    kSentAgain,
    kTouchByWrite,
    kTouchFreesAtOnce,
    kTouchRetiresLosing,
};

}  // namespace farside::index::continuity
