// The real shard table on a real pool, one or two units: all interleavings of a few operations.
#include <gtest/gtest.h>

#include "tests/engines/shard/explored.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {
namespace {

using check::Exploration;
using check::Explore;

TEST(ExhaustiveShard, TwoPutAndDeleteAKeyThroughAHole_AllInterleavingsAreLinearizable) {
  // Given a full bucket with a hole that another key has left
  // When two clients put and delete one key of it, which takes the lock, and a third reads it twice
  // Expect that nothing is wrong in any interleaving, and that the key does not stand twice in the end
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}});
  PutsAndDeletesThroughAHole(explored);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found), "");
  EXPECT_GT(found.histories, 100u);
}

TEST(ExhaustiveShard, WriterThatAppendsMayDie_ReaderAndSuccessorAreNotMisled) {
  // Given an empty bucket
  // When two clients append one key to it, of which one may die or lose a completion, beside a reader
  // Expect that nothing is wrong, and a successor finds what was acknowledged and goes on
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}});
  AppendsOfOneKey(explored);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found), "");
  EXPECT_GT(found.histories, 20u);
}

TEST(ExhaustiveShard, SplitMeetsAnAppendByAClientThatOnlyKnowsTheAnnouncement_NeitherIsLost) {
  // Given a unit that a client that may die is about to split
  // When a client that only knows that the resize was announced appends a key that moves, and another such
  // reads it
  // Expect that nothing is wrong, that a successor finishes the split, and that the table is whole
  const std::string stays = KeyFor([](const KeyHash& hash) { return (hash.hash() & 1) == 0; });
  const std::string moves = KeyFor([](const KeyHash& hash) { return (hash.hash() & 1) == 1; });
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}, {"burst", "0"}});
  SplitMeetsAnAppend(explored, stays, moves);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found), "");
  EXPECT_GT(found.histories, 50u);
}

// Whether READs keep their order, and whether clients are told so.
struct ReadOrder {
  bool is_kept = true;
  bool is_promised = true;
};

Exploration ExploreSplitsAtLevel2(ReadOrder order) {
  const auto unit = [](const KeyHash& hash, Candidate candidate) { return hash.number(candidate) & 1; };
  OverflowKeys keys;
  keys.first = KeyFor([&](const KeyHash& hash) { return unit(hash, Candidate::kLevel1) == 0; });
  keys.second = KeyFor([&](const KeyHash& hash) { return unit(hash, Candidate::kLevel1) == 1; });
  // Its only line is that of unit 1, and is moved to that of unit 3.
  keys.overflow = KeyFor([&](const KeyHash& hash) {
    return unit(hash, Candidate::kLevel1) == 0 && (hash.number(Candidate::kFirstChoice) & 3) == 3 &&
           (hash.number(Candidate::kSecondChoice) & 3) == 3;
  });
  Explored explored({{"buckets", "2"}, {"slots", "1"}, {"overflow_slots", "1"}, {"burst", "0"}});
  explored.scenario.freedoms.ordered_reads = order.is_kept;
  explored.scenario.freedoms.promise_ordered_reads = order.is_promised;
  SplitsMeetAtLevel2(explored, keys);
  return Explore(explored.scenario);
}

TEST(ExhaustiveShard, OverflowIsProvedWhileAKeyMoves_WhereReadsKeepTheirOrder_OnePassFindsTheKey) {
  // Given a key in a line of level 2 that a client is about to split, on a fabric that orders READs
  // When another client splits the key's own unit, and looks through level 2 for keys of it, in one pass
  // Expect that the key is found afterwards, in every interleaving
  const Exploration found = ExploreSplitsAtLevel2({.is_kept = true, .is_promised = true});
  EXPECT_EQ(found.conclusion, check::Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveShard, OverflowIsProvedWhileAKeyMoves_WhereReadsHaveNoOrder_TwoPassesFindTheKey) {
  // Given the same on a fabric that does not order READs, and says so. Expect the same
  const Exploration found = ExploreSplitsAtLevel2({.is_kept = false, .is_promised = false});
  EXPECT_EQ(found.conclusion, check::Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveShard, OverflowIsProvedWhileAKeyMoves_OnAFabricThatBreaksItsPromise_TheKeyIsMissed) {
  // Given the same on a fabric that says that it orders READs, and does not
  // Expect that the search shows what the order is needed for: an interleaving in which the key is lost
  const Exploration found = ExploreSplitsAtLevel2({.is_kept = false, .is_promised = true});
  EXPECT_NE(found.conclusion, check::Conclusion::kNothing);
  EXPECT_NE(found.conclusion, check::Conclusion::kLimit) << found.ToString();
}

TEST(ExhaustiveShard, UpdateOfARememberedKeyWhoseBlockIsReused_ReplacesNoOtherKey) {
  // Given a client that remembers an entry.
  // When it syncs and updates the key, while another one deletes the key, gives its block back and puts
  // another key with the same tag into the same slot.
  // Expect that nothing is wrong in any interleaving.
  const Exploration found = ExploreReusedBlock(Call::Update("k0", "1"));
  EXPECT_EQ(ProblemOf(found), "");
  EXPECT_GT(found.histories, 20u);
}

TEST(ExhaustiveShard, DeleteOfARememberedKeyWhoseBlockIsReused_DeletesNoOtherKey) {
  // The same with a delete
  const Exploration found = ExploreReusedBlock(Call::Delete("k0"));
  EXPECT_EQ(ProblemOf(found), "");
  EXPECT_GT(found.histories, 20u);
}

TEST(ExhaustiveShard, PutsThatLose_AreAsIfJustBeforeTheWinner) {
  // Given a key that two clients put, each of which knows where it is or does not
  // When a third one counts, swaps, deletes, or updates it
  // Expect that the answers and values are those of some order, in any interleaving
  static constexpr std::string_view kOne{"\1\0\0\0\0\0\0\0", 8};
  static constexpr std::string_view kNine{"\11\0\0\0\0\0\0\0", 8};
  for (const Call& beside : {Call::Increment("k"), Call::CompareAndSet("k", kOne, kNine), Call::Delete("k"),
                             Call::Update("k", kNine)}) {
    for (const bool remember : {false, true}) {
      const Exploration found = ExplorePutsThatLose(beside, remember);
      EXPECT_EQ(ProblemOf(found), "") << static_cast<int>(beside.kind) << remember;
      EXPECT_GT(found.histories, 20u);
    }
  }
}

}  // namespace
}  // namespace farside::index::shard
