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

// ---- handlers: what survives a power cut

// A bit is stored before its record is durable (continuity/3).
inline constexpr MutantName kBitsBeforeRecord{"continuity/bits-before-record"};
// A slot is not flushed.
inline constexpr MutantName kSlotNotFlushed{"continuity/slot-not-flushed"};
// The bits do not wait for the slot.
inline constexpr MutantName kSlotNotDrained{"continuity/slot-not-drained"};
// A change is acknowledged before its bits are durable.
inline constexpr MutantName kBitsNotFlushed{"continuity/bits-not-flushed"};
// A block is linked before it is durable.
inline constexpr MutantName kBlockNotFlushed{"continuity/block-not-flushed"};
// The pointer to a group is stored after the bits of its slots.
inline constexpr MutantName kGroupAfterBits{"continuity/group-after-bits"};

// ---- growth

// The copies of a pair's records are not durable when the pair is marked (continuity/4).
inline constexpr MutantName kCopyNotFlushed{"continuity/copy-not-flushed"};
// A pair whose records were copied is not marked as moved (continuity/4).
inline constexpr MutantName kPairNotMarked{"continuity/pair-not-marked"};
// The next table takes changes before the mark is durable (continuity/4).
inline constexpr MutantName kMarkNotDurable{"continuity/mark-not-durable"};
// The next table is the current one before all pairs are moved (continuity/5).
inline constexpr MutantName kRootBeforeCopy{"continuity/root-before-copy"};
// What was moved to the last table counts for the next one.
inline constexpr MutantName kMovedNotReset{"continuity/moved-not-reset"};
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

inline constexpr std::array kAllMutants = {
    kSequenceNotOdd,   kUpdateInPlace,  kEvenBeforeDurable, kBitsBeforeRecord, kSlotNotFlushed,
    kSlotNotDrained,   kBitsNotFlushed, kBlockNotFlushed,   kGroupAfterBits,   kCopyNotFlushed,
    kPairNotMarked,    kMarkNotDurable, kRootBeforeCopy,    kMovedNotReset,    kOldTableFreedAtOnce,
    kOneLook,          kOddTaken,       kOddLeftForEver,    kMarkIgnored,      kGroupUnchecked,
    kHandlerLeftNamed, kOddNotSettled,
};

}  // namespace farside::index::continuity
