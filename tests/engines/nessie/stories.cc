#include "tests/engines/nessie/stories.h"

#include <algorithm>
#include <chrono>

#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {

using fabric::OpKind;
using fabric::OpOutcome;
using std::chrono::milliseconds;

namespace {

// Longer than any client has to wait for another one that is not stopped, and shorter than a lease.
constexpr Nanos kStop = milliseconds(6);
constexpr Nanos kAtOnce = std::chrono::microseconds(500);

WorldOptions WithStops() {
  WorldOptions options;
  options.chaos.longest_sleep = kStop;
  return options;
}

std::string Moves() { return KeyAt({4, 1, 2}); }
std::string MovesToo() { return KeyAt({4, 2, 2}); }
std::string Stays() { return KeyAt({1, 3, 2}); }
std::string MovesBoth() { return KeyAt({6, 5, 2}); }

void GrowFor(Play& play, Member& actor, Member& other) {
  play.Announce({&actor, &other});
  play.Activate();
  play.Learn(actor);
}

Story Insertion() {
  return {.name = "an insert",
          .set = [](Play& play, Member&, Member& other) { play.Do(other, Put(At2(), "0")); },
          .change = Insert(K(), "1"),
          .keys = {K(), TakesPrimary(), TakesSecondary(), At2()}};
}

Story ChangeOf(const std::string& name, const Request& change) {
  return {.name = name,
          .set = [](Play& play, Member&, Member&) { StandsInSecondary(play); },
          .change = change,
          .keys = {K(), TakesSecondary(), At2(), At3()},
          .without_room = {TakesPrimary()}};
}

// Of the ways from its two slots, the one from slot 1 is shorter.
Story Chain() {
  const std::vector<std::string> keys = {KeyAt({0, 1}), KeyAt({1, 2}), KeyAt({2, 3})};
  const std::string last = KeyAt({1, 0});
  Story story{.name = "a chain of migrations",
              .set =
                  [=](Play& play, Member&, Member& other) {
                    for (const std::string& key : keys) play.Do(other, Put(key, "0"));
                  },
              .change = Put(last, "1"),
              .keys = keys,
              .without_room = {At3()}};
  story.keys.push_back(last);
  return story;
}

Story Split() {
  return {.name = "a split",
          .set =
              [](Play& play, Member& actor, Member& other) {
                play.Do(other, Put(Moves(), "0"));
                play.Do(other, Put(Stays(), "0"));
                GrowFor(play, actor, other);
              },
          .change = Put(MovesToo(), "1"),
          .keys = {Moves(), MovesToo(), Stays(), MovesBoth()},
          .miss = 4};  // a home is unsplit, and the reader does not expect it any more
}

Story Sweep() {
  return {.name = "a sweep",
          .of_actor = {{"sweep", "4"}},
          .set =
              [](Play& play, Member& actor, Member& other) {
                for (const std::string& key : {Moves(), Stays(), MovesBoth()}) play.Do(other, Put(key, "0"));
                GrowFor(play, actor, other);
              },
          .change = Put(MovesToo(), "1"),
          .keys = {Moves(), MovesToo(), Stays(), MovesBoth()}};
}

Story Growth(bool announces) {
  return {.name = announces ? "the announcement of growth" : "growth that comes to count",
          .of_actor = {{"max_load", "0.000001"}},
          .set =
              [=](Play& play, Member& actor, Member& other) {
                play.Do(other, Put(Moves(), "0"));
                play.Do(other, Put(Stays(), "0"));
                other.Now(other.Sync());
                actor.Now(actor.Sync());
                if (announces) return;
                actor.Now(actor.Get("looks"));
                for (int round = 0; round < 6; ++round) {
                  play.Learn(other);
                  actor.Now(actor.Maintain());
                }
              },
          .change = Get(Moves()),
          .keys = {Moves(), MovesToo(), Stays(), MovesBoth()},
          .grows = true};
}

}  // namespace

// The actor and the reader know that the table has grown, but no slot is split.
Story UpdateInUnsplitSlot() {
  Story story{.name = "an update in an unsplit slot",
              .set =
                  [](Play& play, Member& actor, Member& other) {
                    play.DoAll(other, {Put(MovesBoth(), "0"), Put(Stays(), "0")});
                    GrowFor(play, actor, other);
                    play.Learn(other);
                  },
              .change = Update(MovesBoth(), "1"),
              .keys = {MovesBoth(), KeyAt({5, 6, 2}), KeyAt({6, 7, 2})}};
  return story;
}

// The actor knows only of the announcement: it does not split.
Story InsertIntoUnsplitSlot() {
  Story story = UpdateInUnsplitSlot();
  story.name = "an insert into an unsplit slot";
  story.set = [](Play& play, Member& actor, Member& other) {
    play.Do(other, Put(Stays(), "0"));
    play.Announce({&actor, &other});
    play.Activate();
    play.Learn(other);
  };
  story.change = Insert(MovesBoth(), "1");
  return story;
}

Story UpdateOfLargeItem() {
  Story story = ChangeOf("an update of a large item", Update(K(), std::string(2000, 'b')));
  story.set = [](Play& play, Member&, Member& other) {
    play.DoAll(other, {Put(K(), std::string(2000, 'a')), Put(At2(), "0")});
  };
  return story;
}

namespace {

// What has stopped does so before the n-th verb of the change, or just behind it.
bool StopAt(Play& play, Member& actor, const Request& change, uint64_t verb, FaultKind kind) {
  const uint64_t first = play.world.fabric.verbs_posted();
  play.world.Arm(verb, kind);
  play.Begin(actor, change);
  play.world.Drive([&] { return play.over() || play.world.fabric.fault_fired(); });
  play.world.Disarm();
  return play.world.fabric.fault_fired() || play.world.fabric.verbs_posted() > first + verb;
}

uint64_t TripsOf(const Member& member) {
  return member.tally(OpKind::kSearch).end_to_end_trips +
         member.tally(OpKind::kSearch, OpOutcome::kRefused).end_to_end_trips;
}

// Plays the story with an actor that stops at every verb, and then `then`.
template <class Then>
std::string AtEveryStop(const Story& story, Then then) {
  for (const FaultKind kind : {FaultKind::kSleepBefore, FaultKind::kSleepAfter}) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      Play play(story.table, WithStops());
      Member& actor = play.Enter(story.of_actor);
      Member& other = play.Enter();
      play.Do(actor, Get(K()));
      play.Do(other, Get(K()));
      story.set(play, actor, other);
      more = StopAt(play, actor, story.change, verb, kind);
      play.LetPass(std::chrono::microseconds(50));  // what was posted takes effect
      then(play, actor, other);
      const std::string problem = play.End();
      if (!problem.empty()) return fmt::format("{}: {} verb {}: {}", story.name, Name(kind), verb, problem);
      if (verb > 300) return "there is no end to it";
    }
  }
  return "";
}

}  // namespace

std::vector<StoryOfTwo> StoriesOfTwo() {
  const auto free_primary = [](Play& play, Member& other) { play.Do(other, Delete(TakesPrimary())); };
  const std::string twin = KeyWithTheTagOf(K());
  Story entries{.name = "two entries of a key",
                .set = [](Play& play, Member&, Member& other) { play.Do(other, Put(TakesPrimary(), "0")); },
                .change = Insert(K(), "1"),
                .keys = {K(), twin, At2()}};
  Story others = Insertion();
  others.name = "entries of other keys in both slots";
  others.change = Insert(TakesSecondary(), "1");
  others.keys.push_back(twin);
  Story copies = ChangeOf("a migration and an update", Put(TakesSecondary(), "1"));
  Story deleted = ChangeOf("a migration and a delete", Put(TakesSecondary(), "1"));
  Story back = ChangeOf("a migration to the secondary slot and an update", Put(TakesPrimary(), "1"));
  back.set = [](Play& play, Member&, Member&) { StandsInPrimary(play); };
  back.keys = {K(), TakesPrimary(), At2(), At3()};
  back.without_room = {TakesSecondary()};
  return {{.story = entries, .between = free_primary, .second = Insert(K(), "2")},
          {.story = others, .second = Insert(twin, "2")},
          {.story = copies, .second = Update(K(), "2")},
          {.story = deleted, .second = Delete(K())},
          {.story = back, .second = Update(K(), "2")}};
}

std::vector<Story> Stories() {
  return {Insertion(),
          ChangeOf("an update", Update(K(), "1")),
          ChangeOf("a delete", Delete(K())),
          ChangeOf("a migration", Put(TakesSecondary(), "1")),
          Chain(),
          Split(),
          Sweep(),
          Growth(/*announces=*/true),
          Growth(/*announces=*/false)};
}

namespace {

std::vector<std::string> KeysToReadOf(const Story& story) {
  std::vector<std::string> keys = story.keys;
  keys.insert(keys.end(), story.without_room.begin(), story.without_room.end());
  return keys;
}

void ReadAll(Play& play, Member& reader, const std::vector<std::string>& keys, Reads& reads) {
  for (const std::string& key : keys) {
    const uint64_t trips_before = TripsOf(reader);
    const Nanos began = play.world.fabric.Now();
    const std::string found = reader.Now(reader.Get(key));
    if (play.world.fabric.Now() - began > kAtOnce) play.world.Complain("a read of " + key + " waits");
    uint64_t& most = found == "absent" ? reads.most_of_misses : reads.most_of_hits;
    most = std::max(most, TripsOf(reader) - trips_before);
    play.Do(reader, Get(key));  // for the history
  }
}

}  // namespace

std::string ReadsWhileStopped(const Story& story, Reads& reads) {
  const std::vector<std::string> keys = KeysToReadOf(story);
  return AtEveryStop(story, [&](Play& play, Member&, Member& other) { ReadAll(play, other, keys, reads); });
}

// A second client that waits for the first one takes steps without end.
std::string ReadsWhileTwoStopped(const StoryOfTwo& two, ReadsOfTwo& reads) {
  constexpr uint64_t kMostSteps = 60;
  const std::vector<std::string> keys = KeysToReadOf(two.story);
  bool more = true;
  for (uint64_t steps = 0; steps < kMostSteps && more; ++steps) {
    more = false;
    const std::string problem = AtEveryStop(two.story, [&](Play& play, Member&, Member& other) {
      if (two.between) two.between(play, other);
      Member& second = play.Enter();
      play.Do(second, Get(K()));
      play.Begin(second, two.second, steps);
      more = more || !play.OverOf(second);
      play.Stop(second, kStop);
      play.LetPass(std::chrono::microseconds(50));  // what was posted takes effect
      reads.both_pending += play.At(0).is(Kind::kPending) && play.At(1).is(Kind::kPending) ? 1 : 0;
      ReadAll(play, other, keys, reads);
    });
    if (!problem.empty()) return fmt::format("the second one stops after {} steps: {}", steps, problem);
  }
  return "";
}

std::string WritesWhileStopped(const Story& story, Writes& writes) {
  // One key after the other, each in a play of its own.
  for (const std::string& key : story.keys) {
    const std::string problem = AtEveryStop(story, [&](Play& play, Member& actor, Member& other) {
      const bool at_own_slot = play.HasPending(key, /*on_the_way=*/false);
      const bool on_the_way = play.HasPending(key, /*on_the_way=*/true);
      const bool stopped = !play.OverOf(actor);
      const Nanos began = play.world.fabric.Now();
      play.Do(other, Put(key, "of other"));
      play.Do(other, Delete(key));
      play.Do(other, Insert(key, "of other again"));
      const bool waited = play.world.fabric.Now() - began > kAtOnce;
      writes.went_on += stopped && !waited ? 1 : 0;
      writes.waited_at_own_slot += waited && at_own_slot ? 1 : 0;
      writes.waited_for_room += waited && !at_own_slot ? 1 : 0;
      if (waited && !on_the_way) play.world.Complain("a put of " + key + " waits for no pending entry");
    });
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string DiesInTheMiddle(const Story& story) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    Play play(story.table);
    Member& victim = play.Enter(story.of_actor);
    Member& late = play.Enter();
    play.Do(victim, Get(K()));
    play.Do(late, Get(K()));
    story.set(play, victim, late);
    more = play.DieAt(victim, verb, kind, story.change);
    play.Kill(victim);
    Member& fresh = play.Enter();
    for (const std::string& key : story.keys) play.Do(fresh, Get(key));
    if (story.grows) {
      play.Announce({&late});
      play.Activate();
    }
    for (size_t i = 0; i < story.keys.size(); ++i) {
      const std::string& key = story.keys[(i + verb) % story.keys.size()];
      if (i % 2 == 0) play.DoAll(late, {Put(key, "of late"), Get(key)});
      if (i % 2 == 1) play.DoAll(fresh, {Delete(key), Get(key), Insert(key, "of fresh")});
    }
    for (const std::string& key : story.keys) play.DoAll(late, {Update(key, "updated"), Get(key)});
    return play.End();
  });
}

}  // namespace farside::index::nessie
