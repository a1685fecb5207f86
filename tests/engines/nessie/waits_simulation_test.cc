// Every case in which a change of a nessie table waits for another client, and that it waits no longer
// (docs/engines/nessie.md, "When an operation waits").
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {
namespace {

using std::chrono::milliseconds;

// Shorter than a lease, and longer than any client needs that does not wait.
constexpr Nanos kStop = milliseconds(6);
constexpr Nanos kAtOnce = std::chrono::microseconds(500);

const OptionMap kDoesNotGrow = {{"grow", "no"}};

class NessieWaits : public testing::Test {
 protected:
  // The writer stops with a pending entry in the slot.
  static void StopWithEntry(Play& play, Member& writer, const Request& request, uint64_t slot) {
    ASSERT_TRUE(play.BeginUntil(writer, request, [&] { return play.Has(slot, Kind::kPending, request.key); }))
        << "there is never an entry of " << request.key << " in slot " << slot;
    play.Stop(writer, kStop);
  }
  static bool EndsAtOnce(Play& play, Member& member, const Request& request) {
    const Nanos began = play.world.fabric.Now();
    play.Do(member, request);
    return play.world.fabric.Now() - began <= kAtOnce;
  }
  // What the member has begun waits as long as the writer has stopped, and not much longer.
  static void ExpectWaits(Play& play, const Member& member, const Member& writer) {
    play.LetPass(kStop / 2);
    EXPECT_FALSE(play.OverOf(member)) << "it does not wait";
    play.FinishOf(writer);
    const Nanos ended = play.world.fabric.Now();
    play.FinishOf(member);
    EXPECT_LE(play.world.fabric.Now() - ended, kAtOnce) << "it waits for more";
  }
};

TEST_F(NessieWaits, EntryOfTheSameKey_AnInsertWaitsThatHasAnEntryItself) {
  // Given a client that has stopped with a fresh entry in the key's secondary slot. When the primary one
  // comes free, and another client makes a fresh entry there. Expect that it waits for the first one.
  Play play(kDoesNotGrow);
  Member& writer = play.Enter();
  Member& other = play.Enter();
  play.Enter();
  play.Do(other, Put(TakesPrimary(), "0"));
  StopWithEntry(play, writer, Insert(K(), "1"), 1);
  play.Do(other, Delete(TakesPrimary()));
  ASSERT_TRUE(play.BeginUntil(other, Insert(K(), "2"), [&] { return play.Has(0, Kind::kPending, K()); }));
  ExpectWaits(play, other, writer);
  EXPECT_EQ(play.End(), "");
}

TEST_F(NessieWaits, EntriesOfOtherKeysInBothSlots_AnInsertWaitsForOneOfThem) {
  // Given two clients that have stopped with entries of other keys in both slots of a key. When a third
  // inserts the key. Expect that it waits until one of them has gone on, and then moves what that one has
  // put.
  Play play(kDoesNotGrow);
  Member& at_primary = play.Enter();
  Member& at_secondary = play.Enter();
  Member& inserter = play.Enter();
  Member& reader = play.Enter();
  StopWithEntry(play, at_primary, Insert(TakesPrimary(), "1"), 0);
  StopWithEntry(play, at_secondary, Insert(TakesSecondary(), "2"), 1);
  play.Stop(at_secondary, kStop + milliseconds(2));
  play.Begin(inserter, Insert(K(), "3"));
  ExpectWaits(play, inserter, at_primary);
  EXPECT_FALSE(play.OverOf(at_secondary));
  EXPECT_TRUE(EndsAtOnce(play, reader, Get(K())));
  EXPECT_EQ(play.End(), "");
}

TEST_F(NessieWaits, EntryInOneSlotOnly_AnInsertDoesNotWait) {
  // Given the same with one of the two. Expect that the insert goes the other way.
  Play play(kDoesNotGrow);
  Member& at_primary = play.Enter();
  Member& inserter = play.Enter();
  play.Do(inserter, Put(TakesSecondary(), "0"));
  StopWithEntry(play, at_primary, Insert(TakesPrimary(), "1"), 0);
  EXPECT_TRUE(EndsAtOnce(play, inserter, Insert(K(), "2")));
  EXPECT_FALSE(play.OverOf(at_primary));
  EXPECT_EQ(play.End(), "");
}

TEST_F(NessieWaits, EntryAtTheEndOfBothWays_AnInsertWaitsAndOtherKeysDoNot) {
  // Given keys in both slots of a key that can only go to slot 2, and a client that has stopped with an entry
  // there. When another client inserts the key. Expect that it waits for that client, although no slot of its
  // own has an entry; and that what stands in them is changed at once meanwhile.
  const std::string at_0 = KeyAt({0, 2});
  const std::string at_1 = KeyAt({1, 2});
  Play play(kDoesNotGrow);
  Member& writer = play.Enter();
  Member& inserter = play.Enter();
  Member& other = play.Enter();
  play.DoAll(other, {Put(at_0, "0"), Put(at_1, "0")});
  StopWithEntry(play, writer, Insert(At2(), "1"), 2);
  play.Begin(inserter, Insert(K(), "2"));
  for (const std::string& key : {at_0, at_1}) EXPECT_TRUE(EndsAtOnce(play, other, Update(key, "3")));
  EXPECT_TRUE(EndsAtOnce(play, other, Get(K())));
  ExpectWaits(play, inserter, writer);
  EXPECT_EQ(play.End(), "");
}

TEST_F(NessieWaits, EntryUnderATrailThatIsTooLong_AnUpdateWaits) {
  // Given a table that has grown six times and was not split, and a client that has stopped with an entry in
  // slot 0. When another client updates a key with a trail of seven slots that ends there. Expect that it
  // waits: the trail has to be shortened first, and what is pending may belong to the slot above.
  const std::string pending = KeyAt({4, 2, 7});
  const std::string updated = KeyAt({1, 252, 7});
  Play play;
  Member& writer = play.Enter();
  Member& other = play.Enter();
  play.Enter();
  play.Do(other, Put(updated, "0"));
  for (int growth = 0; growth < 6; ++growth) play.Grow();
  ASSERT_EQ(play.world.state().version(), 7);
  StopWithEntry(play, writer, Insert(pending, "1"), 0);
  play.Begin(other, Update(updated, "2"));
  ExpectWaits(play, other, writer);
  EXPECT_TRUE(play.At(4).is_effective()) << "the trail was not shortened";
  EXPECT_EQ(play.End(), "");
}

TEST_F(NessieWaits, OperationIsDestroyedAtEveryStep_ItsClientTakesItsEntryBack) {
  // Given a key in one of its slots, or nowhere. When a change of it is destroyed after every step, behind
  // its entry too, and its client changes the key once more. Expect that this does not wait.
  for (const bool is_present : {false, true}) {
    uint64_t entries = 0;
    bool more = true;
    for (uint64_t steps = 0; more; ++steps) {
      Play play(kDoesNotGrow);
      Member& member = play.Enter();
      // Also where the key is nowhere it was put before: a client that is destroyed while it claims its first
      // chunk for records cannot allocate any more.
      play.Do(member, Put(K(), "0"));
      if (!is_present) play.Do(member, Delete(K()));
      {
        Task<bool> change = is_present ? member.Update(K(), "lost") : member.Insert(K(), "lost");
        change.Start();
        for (uint64_t step = 0; step < steps && !change.done(); ++step) play.world.fabric.Step();
        more = !change.done();
      }
      play.LetPass(std::chrono::microseconds(50));  // what was posted takes effect
      entries += play.At(0).is(Kind::kPending) ? 1 : 0;
      EXPECT_TRUE(EndsAtOnce(play, member, Put(K(), "1"))) << "destroyed after " << steps << " steps";
      play.Do(member, Get(K()));
      EXPECT_TRUE(play.Has(0, Kind::kLive, K()));
      // The history knows nothing of the change that was destroyed: an insert may have been done.
      EXPECT_EQ(is_present ? play.End() : play.world.problem, "");
    }
    EXPECT_GT(entries, 2u);
  }
}

// ---- growth

// Four keys that can only change places with each other, and one that has no place beside them.
class NessieWaitsForGrowth : public NessieWaits {
 protected:
  // Of the clients, one has stopped in the middle of a read: so the grace of a growth is not over.
  void StopWithoutAPlace() {
    play_.DoAll(other_, {Put(KeyAt({0, 1}), "0"), Put(KeyAt({1, 0}), "0"), Put(At2(), "0"), Put(At3(), "0")});
    play_.Begin(reader_, Get(At2()), 1);
    ASSERT_FALSE(play_.OverOf(reader_));
    play_.Stop(reader_, kStop);
    play_.Begin(inserter_, Insert(WithoutAPlace(), "1"));
    play_.LetPass(kStop / 2);
    EXPECT_FALSE(play_.OverOf(inserter_)) << "it does not wait";
  }
  static std::string WithoutAPlace() { return KeyAt({0, 1}, 1); }

  Play play_;
  Member& reader_ = play_.Enter();
  Member& inserter_ = play_.Enter();
  Member& other_ = play_.Enter();
};

TEST_F(NessieWaitsForGrowth, KeyHasNoPlace_ItsInsertWaitsAndOtherKeysDoNot) {
  // Given keys that fill the slots of a key, and each other's. When a client inserts that key, and another
  // one has stopped. Expect that the insert waits for the growth of the table; that other keys are changed
  // and found at once meanwhile; and that it ends when the table has grown.
  StopWithoutAPlace();
  EXPECT_EQ(play_.world.state().phase(), Phase::kAnnounced);
  for (const std::string& key : {K(), At2()}) {
    EXPECT_TRUE(EndsAtOnce(play_, other_, Update(key, "2")));
    EXPECT_TRUE(EndsAtOnce(play_, other_, Get(key)));
  }
  EXPECT_TRUE(EndsAtOnce(play_, other_, Get(WithoutAPlace())));
  EXPECT_FALSE(play_.OverOf(reader_));
  play_.FinishOf(inserter_);
  EXPECT_TRUE(play_.OverOf(reader_));
  EXPECT_GE(play_.world.state().version(), 2);
  EXPECT_EQ(play_.End(), "");
}

TEST_F(NessieWaitsForGrowth, PlaceComesFreeMeanwhile_TheInsertTakesIt) {
  // Given the same. When a key is deleted that stands in one of the slots. Expect that the insert ends at
  // once, before the table has grown.
  StopWithoutAPlace();
  play_.Do(other_, Delete(K()));
  play_.LetPass(milliseconds(1));
  EXPECT_TRUE(play_.OverOf(inserter_));
  EXPECT_FALSE(play_.OverOf(reader_));
  EXPECT_EQ(play_.world.state().version(), 1);
  EXPECT_EQ(play_.End(), "");
}

}  // namespace
}  // namespace farside::index::nessie
