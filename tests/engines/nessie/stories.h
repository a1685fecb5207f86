// Changes in the middle of which a client stops, or dies, at every verb; and what others may expect then.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/engines/nessie/world.h"

namespace farside::index::nessie {

struct Story {
  std::string name;
  OptionMap table = {};
  OptionMap of_actor = {};  // options that only the client has which stops or dies
  // Brings the table to where the change begins.
  std::function<void(Play& play, Member& actor, Member& other)> set;
  Request change;                              // of the actor
  std::vector<std::string> keys = {};          // that others ask for: present and absent ones
  std::vector<std::string> without_room = {};  // that others only read: the table would have to grow for them
  bool grows = false;                          // it is about the growth of the table
  uint64_t miss = 3;  // the most trips of a read of an absent key when the actor has stopped
};
inline void PrintTo(const Story& story, std::ostream* out) { *out << story.name; }
inline std::string NameOfStory(const testing::TestParamInfo<Story>& story) {
  return NameOf(story.param.name);
}
// Of a put, an update, a delete, a chain of migrations, a split, a sweep, and growth.
std::vector<Story> Stories();
// The dearest for readers: an update and an insert where the slots of the key are unsplit, and an update of
// an item whose size does not fit into its word.
Story UpdateInUnsplitSlot();
Story InsertIntoUnsplitSlot();
Story UpdateOfLargeItem();

// Two clients that stop: first the actor, at every verb of its change, then another one, at every step of its
// own.
struct StoryOfTwo {
  Story story;
  std::function<void(Play& play, Member& other)> between = nullptr;  // when the actor has stopped
  Request second;
};
// Entries of one key in both of its slots; entries of other keys there, of which one has its tag; a migrator
// and a writer of the key that it moves.
std::vector<StoryOfTwo> StoriesOfTwo();

// The actor stops at every verb. Others read every key, and must not wait. What went wrong, or nothing.
struct Reads {
  uint64_t most_of_hits = 0;    // trips
  uint64_t most_of_misses = 0;  // trips
};
std::string ReadsWhileStopped(const Story& story, Reads& reads);
struct ReadsOfTwo : Reads {
  uint64_t both_pending = 0;  // plays in which both slots of the key had entries
};
std::string ReadsWhileTwoStopped(const StoryOfTwo& story, ReadsOfTwo& reads);

// The actor stops at every verb. Another client puts, deletes and inserts every key, and must not wait unless
// one of the key's own slots has a pending entry; or, for a new key without an empty slot, every way to one.
struct Writes {
  uint64_t went_on = 0;
  uint64_t waited_at_own_slot = 0;
  uint64_t waited_for_room = 0;
};
std::string WritesWhileStopped(const Story& story, Writes& writes);

// The actor dies at every verb. One client that knows the table and a new one change every key, and the table
// is whole in the end.
std::string DiesInTheMiddle(const Story& story);

}  // namespace farside::index::nessie
