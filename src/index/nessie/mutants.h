// The planted bugs of the nessie table; a test must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::index::nessie {

// ---- searches

// The secondary slot is read when the primary one was found without the key, and then the key is absent.
inline constexpr MutantName kSlotsReadInTurn{"nessie/slots-read-in-turn"};
// A miss is told without a second look at the words.
inline constexpr MutantName kMissAtOnce{"nessie/miss-at-once"};
// A reader takes a claim for an item.
inline constexpr MutantName kClaimIsItem{"nessie/claim-is-item"};
// A pending entry hides the value before it.
inline constexpr MutantName kPendingHides{"nessie/pending-hides-previous"};
// The key of an item is not compared: any key with the same tag is it.
inline constexpr MutantName kTagIsKey{"nessie/tag-is-key"};

// ---- words and items

// All empty words are alike: a slot that was filled and emptied looks as before (nessie/7).
inline constexpr MutantName kEmptyIsZero{"nessie/empty-is-zero"};
// An item is given back as soon as it is unlinked.
inline constexpr MutantName kReusedAtOnce{"nessie/item-reused-at-once"};
// Of two clients that unlink an item, the one whose CAS fails retires it too (nessie/10).
inline constexpr MutantName kLoserRetires{"nessie/loser-retires"};

// ---- pending entries

// The pending entry of a writer that may be alive is taken back (nessie/5).
inline constexpr MutantName kTakenBackUnfenced{"nessie/taken-back-without-fencing"};
// A client that meets the pending entry of a live writer takes it back (nessie/6).
inline constexpr MutantName kLiveEntryHelped{"nessie/live-entry-helped"};
// A client that meets the pending entry of a live writer finishes it, and a writer whose commit fails tries
// again (nessie/6).
inline constexpr MutantName kLiveEntryFinished{"nessie/live-entry-finished"};
// The pending entry of a dead writer is finished, without a look at the other slot (nessie/5).
inline constexpr MutantName kDeadEntryFinished{"nessie/dead-entry-finished"};
// A fresh entry commits although the key is live in the other slot (nessie/3).
inline constexpr MutantName kFreshBesideLive{"nessie/fresh-beside-live"};
// Two fresh entries of one key both commit (nessie/4).
inline constexpr MutantName kBothFreshGoOn{"nessie/both-fresh-go-on"};
// A writer leaves a claim in the key's other slot (nessie/3).
inline constexpr MutantName kClaimLeft{"nessie/claim-left"};
// A client that meets two copies removes the newer one (nessie/2).
inline constexpr MutantName kCopyRemoved{"nessie/copy-removed"};
// A writer whose commit fails, because its entry is gone, answers that the change is done.
inline constexpr MutantName kFailedCommitIgnored{"nessie/failed-commit-ignored"};
// Two copies are told from words that were not there at one time (nessie/2).
inline constexpr MutantName kCopiesToldAtOnce{"nessie/copies-told-at-once"};

// ---- migration

// A claim names the item of the source, and not a copy with one move more (nessie/1).
inline constexpr MutantName kItemChangesSlots{"nessie/item-changes-slots"};
// The source is cleared before the copy is live, as the paper has it (nessie/1).
inline constexpr MutantName kSourceClearedFirst{"nessie/source-cleared-first"};
// A migration clears the source by the trip that makes the copy live: the one may overtake the other
// (nessie/1).
inline constexpr MutantName kSourceClearedWithCommit{"nessie/source-cleared-with-commit"};
// A migration does not read the source behind its claim (nessie/1).
inline constexpr MutantName kSourceNotReadAgain{"nessie/source-not-read-again"};
// A migration that is given up keeps its claim.
inline constexpr MutantName kClaimKept{"nessie/aborted-migration-keeps-claim"};
// A migration whose claim was removed takes its copy for live (nessie/1).
inline constexpr MutantName kLostClaimIgnored{"nessie/lost-claim-ignored"};
// A migration to a lower slot does not enter its key in the move log (nessie/11).
inline constexpr MutantName kMoveNotEntered{"nessie/move-not-entered"};
// A cursor does not look up the keys that have moved behind it (nessie/11).
inline constexpr MutantName kMovesNotRead{"nessie/moves-not-read"};

// ---- spare lines

// A spare line is used again as soon as no slot names it.
inline constexpr MutantName kSpareWithoutGrace{"nessie/spare-line-without-grace"};
// A client takes over the spare line of a dead one while a slot may still name it.
inline constexpr MutantName kSpareBeforeEntry{"nessie/spare-taken-over-before-entry"};

// ---- cursors

// A cursor is past the records of a page before the page is there: an error loses them.
inline constexpr MutantName kCursorAdvancesFirst{"nessie/cursor-advances-first"};
// A cursor trusts one READ of many slots, whose lines are sampled at different times (nessie/12).
inline constexpr MutantName kRangeReadOnce{"nessie/range-read-once"};

// ---- growth

// No middle state: a client that has seen an announcement does not look at the new slots (nessie/9).
inline constexpr MutantName kNoMiddleState{"nessie/growth-without-middle-state"};
// A client that splits a slot reads the parent before it has marked the slot (nessie/8).
inline constexpr MutantName kParentReadBeforeMark{"nessie/parent-read-before-mark"};
// A client that splits a slot does not look at the other slot of the key that moves (nessie/8).
inline constexpr MutantName kOtherSlotNotLookedAt{"nessie/other-slot-not-looked-at"};
// A writer does not look whether its slot was split behind its entry (nessie/8).
inline constexpr MutantName kOwnTrailNotLookedAt{"nessie/own-trail-not-looked-at"};
// A writer leaves the marks of clients that split slots of its key (nessie/8).
inline constexpr MutantName kMarkLeft{"nessie/mark-left"};

// ---- touches (evac/1)

// A touch puts its entry into its slot whatever the slot holds by then.
inline constexpr MutantName kTouchByWrite{"nessie/evacuates-by-write"};
// The block that a touch has emptied is handed out at once.
inline constexpr MutantName kTouchFreesAtOnce{"nessie/evacuates-frees-at-once"};
// A touch whose CAS has failed retires the block all the same.
inline constexpr MutantName kTouchRetiresLosing{"nessie/evacuates-retires-losing"};

inline constexpr std::array kAllMutants = {
    kSlotsReadInTurn,
    kMissAtOnce,
    kClaimIsItem,
    kPendingHides,
    kTagIsKey,
    kEmptyIsZero,
    kReusedAtOnce,
    kTakenBackUnfenced,
    kLiveEntryHelped,
    kLiveEntryFinished,
    kDeadEntryFinished,
    kFreshBesideLive,
    kBothFreshGoOn,
    kClaimLeft,
    kCopyRemoved,
    kCopiesToldAtOnce,
    kSourceClearedFirst,
    kSourceClearedWithCommit,
    kSourceNotReadAgain,
    kClaimKept,
    kNoMiddleState,
    kParentReadBeforeMark,
    kOtherSlotNotLookedAt,
    kOwnTrailNotLookedAt,
    kMarkLeft,
    kMoveNotEntered,
    kMovesNotRead,
    kSpareWithoutGrace,
    kSpareBeforeEntry,
    kCursorAdvancesFirst,
    kRangeReadOnce,
    kItemChangesSlots,
    kLoserRetires,
    kFailedCommitIgnored,
    kLostClaimIgnored,
    kTouchByWrite,
    kTouchFreesAtOnce,
    kTouchRetiresLosing,
};

}  // namespace farside::index::nessie
