// Scenarios for the shard table in which no client dies: what a few clients do to each other, step by step,
// where chance would need too long.
//
// Each returns what went wrong, or nothing. They are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/shard/expected_values.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {

// Two keys whose entries look the same but for where their blocks are.
std::string TwoKeysWithOneTag();

// Each of two clients holds the lock that the other one needs to put its key into level 2.
std::string EachNeedsTheLockOfTheOther();

// A cursor goes from page to page while the table grows three times and units are split behind and before it.
std::string CursorWhileTheTableGrows();

// A client walks through the table, and falls asleep on the way; meanwhile a resize counts, and units are
// split.
std::string WalkWhileTheTableGrows();

// A client has cached where a key is. Its block is replaced, reused for the same key, and so named by the
// same entry again, when the client reads both at once, many times, on a fabric that samples READs in order
// or not: at every step of the put in turn.
std::string CachedBlockIsReused(uint64_t seeds, bool ordered_reads);

// A bucket of two lines is split while many read a key that stays, but goes from its second line to its
// first: a client that takes the first line as it was before and the second as it is afterwards finds it in
// neither.
std::string ReadersMeetASplit(uint64_t seeds);

// A resize goes several versions at once, and a client splits a unit to the last of them. A client that only
// knows that the resize was announced looks at most at the unit that a key moves to by the first.
std::string LateReaderMeetsSeveralVersions();

// Many read the directory while the next version is announced: at every step of that in turn.
std::string ReadersMeetAnAnnouncement(uint64_t seeds);

// Two insert one key at once: a client that only knows that a resize was announced, into level 2, because the
// bucket is full; the other perhaps when a third one has split the bucket, which has unused slots then.
std::string TwoInsertAKeyWhileAThirdSplits(uint64_t seeds);

// Two clients, each with many operations in flight, put distinct keys, and insert the same ones, while the
// table grows under them. Operations of one client share what it knows of the table, so each may find that
// others have learned more.
std::string ManyOperationsInFlight(uint64_t seeds, const std::string& burst);

}  // namespace farside::index::shard
