#include "tests/engines/sephash/split_scenarios.h"

#include <chrono>
#include <string>
#include <vector>

#include "base/random.h"

namespace farside::index::sephash {
namespace {

// Far less than a lease.
constexpr auto kMostTime = std::chrono::milliseconds(2);

// A key of the first segment of the first node: one that stays there when it is split, or one that moves.
std::string KeyThat(bool moves, int nth, size_t nodes) {
  return KeyFor(
      [=](uint64_t hash) {
        std::vector<fabric::NodeId> all;
        for (size_t node = 0; node < nodes; ++node) all.push_back(static_cast<fabric::NodeId>(node));
        return ((hash & 1) != 0) == moves && (nodes == 1 || pool::PickNode(hash, all) == 0);
      },
      nth);
}

struct Story {
  OptionMap table;
  std::vector<Request> before;
  Request dying;
};

Story StoryOf(Dying dying, size_t nodes) {
  const auto stays = [=](int nth) { return KeyThat(false, nth, nodes); };
  const auto moves = [=](int nth) { return KeyThat(true, nth, nodes); };
  const std::vector<Request> two = {Put(stays(0), "0"), Put(moves(0), "0")};
  const std::vector<Request> three = {Put(stays(0), "0"), Put(moves(0), "0"), Put(stays(1), "0")};
  const OptionMap rounds = {{"entries", "3"}, {"main", "64"}};
  switch (dying) {
    case Dying::kAppend: return {rounds, two, Put(stays(0), "dying")};
    case Dying::kInsert: return {rounds, three, Insert(moves(1), "dying")};
    case Dying::kDelete: return {rounds, three, Delete(moves(0))};
    case Dying::kMerge: return {{{"entries", "2"}, {"main", "64"}}, three, Put(stays(0), "dying")};
    case Dying::kSplit:
      return {{{"entries", "2"}, {"main", "1"}, {"depth_bits", "4"}}, three, Put(moves(1), "dying")};
    case Dying::kRenewal: {
      std::vector<Request> before = three;
      for (const std::string& key : {moves(1), stays(2)}) before.push_back(Put(key, "0"));
      return {SmallSegments(), before, Put(stays(3), "dying")};
    }
  }
  return {};
}

}  // namespace

std::string ClientDies(Dying dying, Then then, size_t nodes) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    const Story story = StoryOf(dying, nodes);
    Play play(story.table, {.nodes = nodes});
    Member& victim = play.Enter();
    Member& late = play.Enter();
    play.Do(late, Get(KeyThat(false, 0, nodes)));
    play.Do(late, Get(KeyThat(true, 0, nodes)));
    play.DoAll(victim, story.before);
    more = play.DieAt(victim, verb, kind, story.dying);
    play.Kill(victim);
    const Nanos began = play.world.fabric.Now();
    Member& fresh = play.Enter();
    for (int i = 0; i < 3; ++i) {
      play.Do(late, Put(KeyThat(then == Then::kMove, i, nodes), "of late"));
      play.Do(fresh, Insert(KeyThat(then == Then::kMove, i + 1, nodes), "of fresh"));
    }
    for (int i = 0; i < 3; ++i) {
      play.Do(fresh, Get(KeyThat(then != Then::kMove, i, nodes)));
      play.Do(fresh, Update(KeyThat(then != Then::kMove, i, nodes), "updated"));
      play.Do(late, Delete(KeyThat(then != Then::kMove, i, nodes)));
    }
    if (play.world.fabric.Now() - began > kMostTime) return "others wait for the dead client";
    return play.End();
  });
}

namespace {

// The last verb of a split is the CAS of the directory's entry. A client that waits for it can die before it.
const OptionMap kWaits = {{"zero_wait", "no"}};

uint64_t VerbsOf(const Story& story, size_t nodes) {
  Play play(story.table, {.nodes = nodes});
  Member& victim = play.Enter(kWaits);
  play.DoAll(victim, story.before);
  const uint64_t first = play.world.fabric.verbs_posted();
  play.Do(victim, story.dying);
  return play.world.fabric.verbs_posted() - first;
}

}  // namespace

std::string WalkMeetsASiblingThatTheDirectoryDoesNotKnow() {
  const Story story = StoryOf(Dying::kSplit, 1);
  Play play(story.table);
  Member& victim = play.Enter(kWaits);
  Member& walker = play.Enter();
  play.DoAll(victim, story.before);
  play.DieAt(victim, VerbsOf(story, 1) - 1, FaultKind::kCrashBefore, story.dying);
  play.Kill(victim);
  if (play.image().SegmentAt(1) != 0) return "the directory knows the sibling";
  if (play.image().MetaAt(0).depth() != 1) return "the segment is not split";
  pool::Reached reached;
  walker.Now(walker.Walk(reached));
  walker.Now(walker.List());
  if (play.image().SegmentAt(1) != 0) return "the walk has changed the directory";
  return play.End();
}

std::string CompleterDies(size_t nodes) {
  const Story story = StoryOf(Dying::kSplit, nodes);
  const uint64_t verbs = VerbsOf(story, nodes);
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    Play play(story.table, {.nodes = nodes});
    Member& victim = play.Enter(kWaits);
    Member& completer = play.Enter();
    Member& late = play.Enter();
    play.Do(completer, Get(KeyThat(false, 0, nodes)));
    play.Do(late, Get(KeyThat(false, 0, nodes)));
    play.DoAll(victim, story.before);
    play.DieAt(victim, verbs - 1, FaultKind::kCrashBefore, story.dying);
    play.Kill(victim);
    if (nodes == 1 && play.image().SegmentAt(1) != 0) return "the directory knows the sibling";
    if (nodes == 1 && play.image().MetaAt(0).depth() != 1) return "the segment is not split";
    more = play.DieAt(completer, verb, kind, Put(KeyThat(true, 2, nodes), "of completer"));
    play.Kill(completer);
    const Nanos began = play.world.fabric.Now();
    for (int i = 0; i < 3; ++i) play.Do(late, Put(KeyThat(false, i, nodes), "of late"));
    for (int i = 0; i < 3; ++i) play.Do(late, Insert(KeyThat(true, i + 2, nodes), "of late"));
    if (play.world.fabric.Now() - began > kMostTime) return "others wait for the dead client";
    if (nodes == 1 && play.image().SegmentAt(1) == 0) return "the directory does not know the sibling";
    return play.End();
  });
}

std::string DirectoryIsSeveralSplitsBehind(size_t nodes) {
  for (const char* depth_bits : {"1", "2", "4"}) {
    Play play({{"entries", "2"}, {"main", "1"}, {"depth_bits", depth_bits}},
              {.region_bytes = 8 << 20, .nodes = nodes});
    Member& writer = play.Enter();
    std::vector<Member*> late;
    for (int i = 0; i < 5; ++i) {
      late.push_back(&play.Enter());
      play.Do(*late.back(), Get("k0"));
    }
    // Twice: a segment that a split has made is not split before the one that it was split from is merged.
    const int keys = 60 * static_cast<int>(nodes);
    for (int i = 0; i < 2 * keys; ++i) play.Do(writer, Put(fmt::format("k{}", i % keys), "old"));
    if (DetailOf(writer.Now(writer.Stats()), "depth") < 4) return "the table has not grown";
    for (int i = 0; i < keys; ++i) {
      const std::string key = fmt::format("k{}", i);
      play.Do(*late[0], Get(key));
      if (i % 4 == 0) play.Do(*late[1], Put(key, "of late"));
      if (i % 4 == 1) play.Do(*late[2], Insert(key, "of late"));
      if (i % 4 == 2) play.Do(*late[3], Delete(key));
      if (i % 4 == 3) play.Do(*late[4], Update(key, "of late"));
    }
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("depth_bits={}: {}", depth_bits, problem);
  }
  return "";
}

std::string SplitSegmentIsMergedAgain() {
  Play play(SmallSegments());
  Member& writer = play.Enter();
  Member& late = play.Enter();
  play.Do(late, Get("k0"));
  play.DoAll(writer, {Put(KeyOf(0, 1, 0), "0"), Put(KeyOf(1, 1, 0), "0"), Put(KeyOf(0, 1, 1), "0"),
                      Put(KeyOf(1, 1, 1), "0")});
  if (play.image().MetaAt(0).depth() != 1) return "the segment is not split";
  play.DoAll(writer, {Put(KeyOf(0, 1, 0), "1"), Put(KeyOf(0, 1, 0), "2")});
  if (play.image().MainAt(0).sibling != 0) return "the segment is not merged again";
  play.DoAll(late, {Get(KeyOf(1, 1, 0)), Put(KeyOf(1, 1, 1), "of late")});
  return play.End();
}

// A merge renews as many tags as a trip reads blocks. The MainSegment of each half of a split has more.
std::string SplitsComeBeforeTagsAreRenewed() {
  constexpr int kKeys = 1200;
  World world;
  Member member(world, {{"entries", "126"}, {"main", "1"}, {"depth_bits", "1"}});
  for (int i = 0; i < kKeys; ++i) member.Now(member.Put(fmt::format("k{}", i), std::to_string(i)));
  if (DetailOf(member.Now(member.Stats()), "depth") < 3) return "the table has not grown";
  for (int i = 0; i < kKeys; ++i) {
    const std::string found = member.Now(member.Get(fmt::format("k{}", i)));
    if (found != std::to_string(i)) return fmt::format("k{} is {}", i, found);
  }
  member.Audit();
  return world.problem;
}

std::string StaleClientsMeetSplits(uint64_t seeds, size_t nodes) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Play play(
        {{"entries", seed % 3 == 0 ? "3" : "2"}, {"main", "1"}, {"depth_bits", seed % 2 == 0 ? "1" : "2"}},
        {.seed = seed, .nodes = nodes, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    Random random(seed);
    std::vector<Member*> members;
    for (int i = 0; i < 4; ++i) {
      members.push_back(&play.Enter());
      play.Do(*members.back(), Get("k0"));
    }
    for (int i = 0; i < 6; ++i) play.Do(*members[0], Put(fmt::format("k{}", i), "old"));
    for (int round = 0; round < 5; ++round) {
      for (Member* member : members) {
        const std::string key = fmt::format("k{}", random.Below(10));
        const std::string value = fmt::format("{} of {}", round, random.Below(1000));
        switch (random.Below(4)) {
          case 0: play.Begin(*member, Insert(key, value)); break;
          case 1: play.Begin(*member, Delete(key)); break;
          case 2: play.Begin(*member, Get(key)); break;
          default: play.Begin(*member, Put(key, value)); break;
        }
      }
      play.Finish();
    }
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

}  // namespace farside::index::sephash
