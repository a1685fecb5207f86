// Scenarios for splits of a sephash table and for its directory, and for clients that die on the way. Each
// returns what went wrong, or nothing; they are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/sephash/world.h"

namespace farside::index::sephash {

// Rounds of two entries, MainSegments of two: the fourth key splits the first segment. Tags last for two
// splits.
inline OptionMap SmallSegments() { return {{"entries", "2"}, {"main", "1"}, {"depth_bits", "1"}}; }

// What a client does when it dies, at every verb of it and in every way.
enum class Dying {
  kAppend,   // a put into a round with room
  kInsert,   // a strict change
  kDelete,   // by a tombstone
  kMerge,    // a put that fills a round
  kSplit,    // a put that fills a round, the merge of which doubles the directory
  kRenewal,  // the same for a segment that was split before: its entries get the tags of the next group
};
// Which keys the others touch first when it is dead: those of the segment that was split, so that it is
// merged again, or those of the sibling.
enum class Then { kStay, kMove };
// Others never wait for a lease: the time that they take is part of what may be wrong.
std::string ClientDies(Dying dying, Then then, size_t nodes = 1);

// A client dies when it has split a segment and the directory does not know it. Another client comes to the
// sibling, completes the directory, and dies at every verb of that.
std::string CompleterDies(size_t nodes = 1);

// A client dies in the same way. Another one walks through the table, by READs only.
std::string WalkMeetsASiblingThatTheDirectoryDoesNotKnow();

// A client knows a table as it was when it had one segment; then others split it again and again.
std::string DirectoryIsSeveralSplitsBehind(size_t nodes = 1);
// A client knows the segment as it was; then it is split, and merged again.
std::string SplitSegmentIsMergedAgain();

// Segments are split so soon that merges have not renewed all of their tags, which last for two splits.
std::string SplitsComeBeforeTagsAreRenewed();

// Clients with stale directories and clients that split meet, by chance.
std::string StaleClientsMeetSplits(uint64_t seeds, size_t nodes = 1);

}  // namespace farside::index::sephash
