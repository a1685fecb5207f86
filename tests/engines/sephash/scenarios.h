// Scenarios for the rounds of a sephash table: appends, merges and searches. Each returns what went wrong, or
// nothing; they are played with and without planted bugs.
#pragma once

#include <string>
#include <vector>

#include "tests/engines/sephash/world.h"

namespace farside::index::sephash {

// Rounds of two entries, and MainSegments that are never split.
inline OptionMap SmallRounds() { return {{"entries", "2"}, {"main", "64"}}; }

// A client falls asleep at every step of a change, and others go on meanwhile.
struct Nap {
  OptionMap table;
  std::vector<Request> before;     // by another client
  Request change;                  // of the client that falls asleep, which knows the table
  std::vector<Request> meanwhile;  // by the other one
};
std::string ChangerFallsAsleep(const Nap& nap);
// A client has appended an entry and falls asleep. Another one sees it, and then asks the filter.
std::string FilterIsTrusted();
// The same for changes of every kind, and for others that append a little, begin a round, begin so many
// rounds that the epoch comes again, or split.
std::string ChangersFallAsleep();

// A client has seen a slot and falls asleep. Meanwhile the epoch comes again, and the same slot has the same
// key again, in memory that was free before: the word must not be the same. With `deletes`, the word is that
// of a tombstone.
std::string WordOfASlotComesBack(bool deletes);
// A client is about to append to a slot that has padding. Meanwhile rounds are closed until the epoch comes
// again, and the slot has padding again: the word must not be the same.
std::string PaddingOfASlotComesBack();
// Two clients change keys in turn, by chance, in a table that merges and splits all the time. After every
// change, whatever block a slot of a CurSegment names, in whatever round, can be reached (sephash/3).
std::string SlotsNameWhatCanBeReached(uint64_t seeds);

// Two clients insert a key into the same slot.
std::string TwoInsertAKey(uint64_t seeds);

// A client remembers a MainSegment. Its memory is used again, for a later MainSegment of the same segment;
// then the client searches.
std::string MainComesBackAtItsAddress();
// The client is in the middle of a search then, at every step of it.
std::string MainComesBackDuringASearch();
// The search and the merge meet, on a fabric whose READs have no order.
std::string MainComesBackWhereReadsHaveNoOrder(uint64_t seeds);
// A client remembers a MainSegment that is not there any more, but whose bytes are.
std::string RememberedMainIsGone();

// CurSegments of several lines, which other clients fill and merge while they are read.
std::string LooksMeetMerges(uint64_t seeds);
// A look into which so many merges by the same client fall that the epoch comes again.
std::string LookMeetsOwnMerges();
// A look into which a merge by another client falls, and appends by the same client behind it.
std::string LookMeetsOwnAppends();
// A client inserts a key and puts others at the same time, and another client inserts the same key: the first
// one may see an entry behind the key's and not the key's.
std::string InsertMeetsOwnPuts(uint64_t seeds);

// Keys that no tag tells apart, in one segment, through merges and deletes.
std::string KeysWithTheSameTag();

// A cursor goes through a table that others split.
std::string CursorMeetsSplits();

}  // namespace farside::index::sephash
