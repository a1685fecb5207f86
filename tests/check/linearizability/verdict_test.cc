// Hand-made histories: the violations that the checker must see, and the strange but allowed ones that it
// must not complain about. Unless said otherwise there is one key, absent at first.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "check/history.h"
#include "check/linearizability.h"

namespace farside::check {
namespace {

constexpr std::string_view kKey = "k";

class LinearizabilityTest : public testing::Test {
 protected:
  // An operation during which nothing else begins or ends.
  void Did(int client, const Call& call, Outcome outcome) {
    h_.Return(h_.Invoke(client, call), std::move(outcome));
  }
  void Got(int client, std::optional<std::string> value) {
    Did(client, Call::Get(kKey), Found{std::move(value)});
  }
  void DidPut(int client, std::string_view value) { Did(client, Call::Put(kKey, value), Stored{}); }
  OpId BeginPut(int client, std::string_view value) { return h_.Invoke(client, Call::Put(kKey, value)); }
  OpId BeginGet(int client) { return h_.Invoke(client, Call::Get(kKey)); }
  OpId Lost(int client, const Call& call) {
    const OpId id = h_.Invoke(client, call);
    h_.LoseAnswer(id);
    return id;
  }

  void ExpectLinearizable() const {
    const Verdict verdict = CheckLinearizable(h_, options_);
    EXPECT_EQ(verdict.answer, Answer::kLinearizable) << ToString(verdict) << "\n" << Chart(h_.operations());
  }
  void ExpectViolation() const {
    const Verdict verdict = CheckLinearizable(h_, options_);
    EXPECT_EQ(verdict.answer, Answer::kNotLinearizable) << Chart(h_.operations());
    EXPECT_EQ(verdict.key, kKey);
    EXPECT_LT(verdict.event, h_.events());
  }

  History h_;
  CheckOptions options_;
};

std::string Counter(uint64_t n) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(n >> (8 * i));
  return bytes;
}

using Violation = LinearizabilityTest;
using Allowed = LinearizabilityTest;

// ---- Violations.

TEST_F(Violation, StaleReadAfterCompletedPut) {
  // Given: a was replaced by b. When: a later Get finds a. Expect: a violation.
  DidPut(0, "a");
  DidPut(0, "b");
  Got(1, "a");
  ExpectViolation();
}

TEST_F(Violation, AbsentAfterCompletedPut) {
  // Given: a completed Put and no Delete. When: a Get finds nothing. Expect: a violation.
  DidPut(0, "a");
  Got(1, std::nullopt);
  ExpectViolation();
}

TEST_F(Violation, LostUpdate) {
  // Given: two clients that read a and compare-and-set from it at once. When: both are told that it was
  // applied. Expect: a violation, for one of the two updates is lost.
  DidPut(0, "a");
  const OpId first = h_.Invoke(1, Call::CompareAndSet(kKey, "a", "b"));
  const OpId second = h_.Invoke(2, Call::CompareAndSet(kKey, "a", "c"));
  h_.Return(first, Applied{true});
  h_.Return(second, Applied{true});
  ExpectViolation();
}

TEST_F(Violation, ValueResurrectedAfterDelete) {
  // Given: a was deleted, and seen to be gone. When: it is back. Expect: a violation.
  DidPut(0, "a");
  Did(1, Call::Delete(kKey), Applied{true});
  Got(2, std::nullopt);
  Got(2, "a");
  ExpectViolation();
}

TEST_F(Violation, ReadOfAValueNeverWritten) {
  // Given: only a was ever written. When: a Get finds b. Expect: a violation.
  DidPut(0, "a");
  Got(1, "b");
  ExpectViolation();
}

TEST_F(Violation, ReadOfATornValue) {
  // Given: aaaa is being replaced by bbbb. When: a concurrent Get finds aabb. Expect: a violation.
  DidPut(0, "aaaa");
  const OpId put = BeginPut(0, "bbbb");
  Got(1, "aabb");
  h_.Return(put, Stored{});
  ExpectViolation();
}

TEST_F(Violation, ReadFromTheFuture) {
  // Given: nothing was written yet. When: a Get finds a, which is put only later. Expect: a violation.
  Got(1, "a");
  DidPut(0, "a");
  ExpectViolation();
}

TEST_F(Violation, TwoInsertsOfOneKeyBothSucceed) {
  // Given: two concurrent Inserts and no Delete. When: both are applied. Expect: a violation.
  const OpId first = h_.Invoke(0, Call::Insert(kKey, "a"));
  const OpId second = h_.Invoke(1, Call::Insert(kKey, "b"));
  h_.Return(second, Applied{true});
  h_.Return(first, Applied{true});
  ExpectViolation();
}

TEST_F(Violation, DeleteReportedTwice) {
  // Given: one Put. When: two concurrent Deletes both say that they deleted it. Expect: a violation.
  DidPut(0, "a");
  const OpId first = h_.Invoke(1, Call::Delete(kKey));
  const OpId second = h_.Invoke(2, Call::Delete(kKey));
  h_.Return(first, Applied{true});
  h_.Return(second, Applied{true});
  ExpectViolation();
}

TEST_F(Violation, DeleteThatMissesAPresentKey) {
  // Given: a present key. When: a Delete finds nothing. Expect: a violation.
  DidPut(0, "a");
  Did(1, Call::Delete(kKey), Applied{false});
  ExpectViolation();
}

TEST_F(Violation, IncrementThatLosesACount) {
  // Given: two concurrent Increments of an absent counter. When: both return 1. Expect: a violation.
  const OpId first = h_.Invoke(0, Call::Increment(kKey));
  const OpId second = h_.Invoke(1, Call::Increment(kKey));
  h_.Return(first, Counted{1});
  h_.Return(second, Counted{1});
  ExpectViolation();
}

TEST_F(Violation, IncrementThatCountsTwice) {
  // Given: an Increment by 5 that returned 5. When: a Get finds 10. Expect: a violation.
  Did(0, Call::Increment(kKey, 5), Counted{5});
  Got(1, Counter(10));
  ExpectViolation();
}

TEST_F(Violation, LostIncrementThatHappensTwice) {
  // Given: one Increment whose answer was lost. When: first 1 is read, then 2. Expect: a violation, for a
  // retry by the engine is no excuse.
  Lost(0, Call::Increment(kKey));
  Got(1, Counter(1));
  Got(1, Counter(2));
  ExpectViolation();
}

TEST_F(Violation, TwoReadersSeeTwoWritesInOppositeOrders) {
  // Given: two Puts that overlap both readers. When: one sees a then b, the other b then a, one after the
  // other within the Puts. Expect: a violation.
  const OpId a = BeginPut(0, "a");
  const OpId b = BeginPut(1, "b");
  Got(2, "a");
  Got(3, "b");
  Got(2, "b");
  Got(3, "a");
  h_.Return(a, Stored{});
  h_.Return(b, Stored{});
  ExpectViolation();
}

TEST_F(Violation, NewOldInversionInsideAConcurrentPut) {
  // Given: a is being replaced by b. When: a Get finds b, and a later Get finds a, both during the Put.
  // Expect: a violation.
  DidPut(0, "a");
  const OpId put = BeginPut(0, "b");
  Got(1, "b");
  Got(2, "a");
  h_.Return(put, Stored{});
  ExpectViolation();
}

TEST_F(Violation, RefusedPutBecomesVisible) {
  // Given: a Put that ended with "nothing was changed". When: its value is found. Expect: a violation.
  h_.Refuse(BeginPut(0, "a"), "kContended: too many attempts");
  Got(1, "a");
  ExpectViolation();
}

TEST_F(Violation, RefusedDeleteTakesEffect) {
  // Given: a Delete that ended with "nothing was changed". When: the key is gone. Expect: a violation.
  DidPut(0, "a");
  h_.Refuse(h_.Invoke(1, Call::Delete(kKey)), "kUnavailable: node 2");
  Got(2, std::nullopt);
  ExpectViolation();
}

TEST_F(Violation, LostPutIsSeenThenVanishesThenIsSeenAgain) {
  // Given: a Put of b over a whose answer was lost. When: Gets find b, then a, then b again.
  // Expect: a violation: it happens at one moment, even if no client knows when.
  DidPut(0, "a");
  Lost(1, Call::Put(kKey, "b"));
  Got(2, "b");
  Got(2, "a");
  Got(2, "b");
  ExpectViolation();
}

TEST_F(Violation, LostPutIsOverwrittenAndComesBack) {
  // Given: a lost Put of b that was seen, and then overwritten by c. When: b is seen again.
  // Expect: a violation: the Put was spent.
  Lost(1, Call::Put(kKey, "b"));
  Got(2, "b");
  DidPut(0, "c");
  Got(2, "b");
  ExpectViolation();
}

TEST_F(Violation, OneLostDeleteExplainsOnlyOneAbsence) {
  // Given: one lost Delete. When: two values vanish. Expect: a violation.
  Lost(0, Call::Delete(kKey));
  DidPut(1, "a");
  Got(2, std::nullopt);
  DidPut(1, "b");
  Got(2, std::nullopt);
  ExpectViolation();
}

TEST_F(Violation, CompareAndSetSucceedsAgainstAValueNeverCurrent) {
  // Given: the value is a. When: a CompareAndSet from b is applied. Expect: a violation.
  DidPut(0, "a");
  Did(1, Call::CompareAndSet(kKey, "b", "c"), Applied{true});
  ExpectViolation();
}

TEST_F(Violation, CompareAndSetSucceedsAgainstAValueNoLongerCurrent) {
  // Given: a was replaced by b. When: a CompareAndSet from a is applied. Expect: a violation.
  DidPut(0, "a");
  DidPut(0, "b");
  Did(1, Call::CompareAndSet(kKey, "a", "c"), Applied{true});
  ExpectViolation();
}

TEST_F(Violation, CompareAndSetFailsAgainstTheCurrentValue) {
  // Given: the value is a. When: a CompareAndSet from a is not applied. Expect: a violation.
  DidPut(0, "a");
  Did(1, Call::CompareAndSet(kKey, "a", "b"), Applied{false});
  ExpectViolation();
}

TEST_F(Violation, CompareAndSetOfTheEmptyValueSucceedsOnAnAbsentKey) {
  // Given: an absent key. When: a CompareAndSet from "" is applied. Expect: a violation: absent is not
  // empty.
  Did(0, Call::CompareAndSet(kKey, "", "a"), Applied{true});
  ExpectViolation();
}

TEST_F(Violation, UpdateSucceedsOnAbsentKey) {
  // Given: an absent key. When: an Update is applied. Expect: a violation.
  Did(0, Call::Update(kKey, "a"), Applied{true});
  ExpectViolation();
}

TEST_F(Violation, UpdateFailsOnPresentKey) {
  // Given: a present key. When: an Update is not applied. Expect: a violation.
  DidPut(0, "a");
  Did(1, Call::Update(kKey, "b"), Applied{false});
  ExpectViolation();
}

TEST_F(Violation, FailedInsertBecomesVisible) {
  // Given: an Insert of b that was not applied because of a. When: b is found. Expect: a violation.
  DidPut(0, "a");
  Did(1, Call::Insert(kKey, "b"), Applied{false});
  Got(2, "b");
  ExpectViolation();
}

TEST_F(Violation, TwoPutsBothSayThatTheyInserted) {
  // Given: two concurrent Puts and no Delete. When: both report an insertion. Expect: a violation.
  const OpId first = BeginPut(0, "a");
  const OpId second = BeginPut(1, "b");
  h_.Return(first, Stored{.inserted = true});
  h_.Return(second, Stored{.inserted = true});
  ExpectViolation();
}

TEST_F(Violation, PutSaysThatItReplacedNothing) {
  // Given: an absent key. When: a Put reports that it replaced a value. Expect: a violation.
  Did(0, Call::Put(kKey, "a"), Stored{.inserted = false});
  ExpectViolation();
}

TEST_F(Violation, PreloadedValueIsNotFound) {
  // Given: a preloaded key. When: it is absent. Expect: a violation.
  options_.initial.emplace(kKey, "a");
  Got(0, std::nullopt);
  ExpectViolation();
}

TEST_F(Violation, ReadOfAValueNeverWrittenAmongManyConcurrentPuts) {
  // Given: 70 Puts that overlap everything, more than fit in one word of bits. When: a value is read that
  // none of them wrote. Expect: a violation.
  for (int i = 0; i < 70; ++i) BeginPut(i, "v" + std::to_string(i));
  for (int i = 0; i < 70; ++i) {
    h_.Return(OpId{static_cast<uint32_t>(i)}, Stored{});
    if (i == 35) Got(100, "v69");
  }
  Got(100, "v70");
  ExpectViolation();
}

// ---- Strange, but allowed.

TEST_F(Allowed, EmptyHistory) {
  // Given: nothing happened. Expect: linearizable.
  ExpectLinearizable();
}

TEST_F(Allowed, LostPutTakesEffectLongAfter) {
  // Given: a lost Put of a. When: others put, delete and read, and then a appears. Expect: linearizable.
  Lost(0, Call::Put(kKey, "a"));
  DidPut(1, "b");
  Got(2, "b");
  Did(1, Call::Delete(kKey), Applied{true});
  Got(2, std::nullopt);
  Got(2, "a");
  ExpectLinearizable();
}

TEST_F(Allowed, LostPutNeverHappens) {
  // Given: a lost Put. When: no client ever sees it. Expect: linearizable.
  DidPut(0, "a");
  Lost(1, Call::Put(kKey, "b"));
  Got(2, "a");
  Got(2, "a");
  ExpectLinearizable();
}

TEST_F(Allowed, OperationStillPendingAtTheEndHappened) {
  // Given: a Put that never returned. When: its value is found. Expect: linearizable.
  BeginPut(0, "a");
  Got(1, "a");
  ExpectLinearizable();
}

TEST_F(Allowed, LostDeleteExplainsAnAbsence) {
  // Given: a lost Delete before the Put. When: the value vanishes. Expect: linearizable.
  Lost(0, Call::Delete(kKey));
  DidPut(1, "a");
  Got(2, "a");
  Got(2, std::nullopt);
  ExpectLinearizable();
}

TEST_F(Allowed, TwoConcurrentPutsWhereReadersOverlap) {
  // Given: two concurrent Puts. When: two overlapping readers see them in different orders of return,
  // which some order of the Puts explains. Expect: linearizable.
  const OpId a = BeginPut(0, "a");
  const OpId b = BeginPut(1, "b");
  const OpId first = BeginGet(2);
  const OpId second = BeginGet(3);
  h_.Return(first, Found{"b"});
  h_.Return(second, Found{"a"});
  h_.Return(a, Stored{});
  h_.Return(b, Stored{});
  Got(2, "b");
  ExpectLinearizable();
}

TEST_F(Allowed, PutThatReturnsFirstHappensLast) {
  // Given: two concurrent Puts. When: the value of the one that returned first stays. Expect: linearizable.
  const OpId a = BeginPut(0, "a");
  const OpId b = BeginPut(1, "b");
  h_.Return(a, Stored{});
  h_.Return(b, Stored{});
  Got(2, "a");
  ExpectLinearizable();
}

TEST_F(Allowed, GetConcurrentWithEverything) {
  // Given: a Get that lasts for the whole history. When: it returns the value of the middle.
  // Expect: linearizable.
  const OpId get = BeginGet(9);
  DidPut(0, "a");
  DidPut(0, "b");
  DidPut(0, "c");
  h_.Return(get, Found{"b"});
  ExpectLinearizable();
}

TEST_F(Allowed, InsertFailsBecauseOfAConcurrentLostInsert) {
  // Given: an absent key and a lost Insert. When: another Insert is not applied, and the key is still found
  // absent before it. Expect: linearizable.
  Lost(0, Call::Insert(kKey, "a"));
  Got(1, std::nullopt);
  Did(1, Call::Insert(kKey, "b"), Applied{false});
  Got(1, "a");
  ExpectLinearizable();
}

TEST_F(Allowed, LostInsertHappensAfterADelete) {
  // Given: a lost Insert that could not apply while the key was present. When: the key is deleted, and the
  // value of the Insert appears. Expect: linearizable.
  DidPut(0, "a");
  Lost(1, Call::Insert(kKey, "b"));
  Got(2, "a");
  Did(0, Call::Delete(kKey), Applied{true});
  Got(2, "b");
  ExpectLinearizable();
}

TEST_F(Allowed, BothDeletesSucceedBecauseOfALostPutBetweenThem) {
  // Given: one Put and one lost Put. When: two Deletes are applied. Expect: linearizable.
  Lost(0, Call::Put(kKey, "b"));
  DidPut(1, "a");
  Did(2, Call::Delete(kKey), Applied{true});
  Did(3, Call::Delete(kKey), Applied{true});
  ExpectLinearizable();
}

TEST_F(Allowed, ChainOfLostOperationsExplainsAValue) {
  // Given: lost CompareAndSets c->d, b->c, a->b, invoked in the wrong order. When: a becomes d.
  // Expect: linearizable: all three happened, the last one first.
  DidPut(0, "a");
  Lost(1, Call::CompareAndSet(kKey, "c", "d"));
  Lost(2, Call::CompareAndSet(kKey, "b", "c"));
  Lost(3, Call::CompareAndSet(kKey, "a", "b"));
  Got(4, "a");
  Got(4, "d");
  ExpectLinearizable();
}

TEST_F(Allowed, TheStrongerOfTwoLostOperationsIsSavedForLater) {
  // Given: a lost Put of b and a lost CompareAndSet a->b. When: a becomes b, is deleted, and b is back.
  // Expect: linearizable: first the CompareAndSet, then the Put, which needs no a.
  DidPut(0, "a");
  Lost(1, Call::Put(kKey, "b"));
  Lost(2, Call::CompareAndSet(kKey, "a", "b"));
  Got(3, "b");
  Did(0, Call::Delete(kKey), Applied{true});
  Got(3, std::nullopt);
  Got(3, "b");
  ExpectLinearizable();
}

TEST_F(Allowed, LostIncrementsOfDifferentSizes) {
  // Given: lost Increments by 1, 2 and 4. When: the counter becomes 5, then 7. Expect: linearizable.
  Lost(0, Call::Increment(kKey, 1));
  Lost(0, Call::Increment(kKey, 2));
  Lost(0, Call::Increment(kKey, 4));
  Got(1, Counter(5));
  Got(1, Counter(7));
  ExpectLinearizable();
}

TEST_F(Allowed, LostIncrementOfSomethingThatIsNoCounter) {
  // Given: a value of 3 bytes and a lost Increment. When: the value stays. Expect: linearizable.
  DidPut(0, "abc");
  Lost(1, Call::Increment(kKey));
  Got(2, "abc");
  ExpectLinearizable();
}

TEST_F(Allowed, IncrementByZeroCreatesTheCounter) {
  // Given: an absent key. When: an Increment by 0 returns 0, and 0 is found. Expect: linearizable.
  Did(0, Call::Increment(kKey, 0), Counted{0});
  Got(1, Counter(0));
  ExpectLinearizable();
}

TEST_F(Allowed, CounterWrapsAround) {
  // Given: the largest counter. When: an Increment by 2 returns 1. Expect: linearizable.
  options_.initial.emplace(kKey, Counter(~uint64_t{0}));
  Did(0, Call::Increment(kKey, 2), Counted{1});
  ExpectLinearizable();
}

TEST_F(Allowed, PutOverwrittenByAConcurrentPutHappensLaterInstead) {
  // Given: a Put of b that overlaps a Put of c and a CompareAndSet c->d. When: b is found at last.
  // Expect: linearizable, although b could also have been overwritten unseen by c.
  DidPut(0, "a");
  const OpId b = BeginPut(1, "b");
  DidPut(2, "c");
  Did(3, Call::CompareAndSet(kKey, "c", "d"), Applied{true});
  h_.Return(b, Stored{});
  Got(4, "b");
  ExpectLinearizable();
}

TEST_F(Allowed, UnappliedCompareAndSetToTheSameValue) {
  // Given: a CompareAndSet a->a during a Put of a over b. When: it is not applied. Expect: linearizable.
  DidPut(0, "b");
  const OpId put = BeginPut(0, "a");
  Did(1, Call::CompareAndSet(kKey, "a", "a"), Applied{false});
  Did(1, Call::CompareAndSet(kKey, "a", "a"), Applied{true});
  h_.Return(put, Stored{});
  ExpectLinearizable();
}

TEST_F(Allowed, RefusedOperationsLeaveNoTrace) {
  // Given: refused operations of all sorts. When: the key stays as it was. Expect: linearizable.
  DidPut(0, "a");
  for (const Call& call :
       {Call::Put(kKey, "b"), Call::Delete(kKey), Call::Increment(kKey), Call::Get(kKey)}) {
    h_.Refuse(h_.Invoke(1, call), "kFenced: register anew");
  }
  Got(2, "a");
  ExpectLinearizable();
}

TEST_F(Allowed, EmptyAndBinaryKeysAndValues) {
  // Given: keys and values with zeros, or nothing in them. When: each is read back. Expect: linearizable.
  const std::string zeros(3, '\0');
  for (const std::string& key : {std::string(), zeros, std::string("\0k", 2)}) {
    Did(0, Call::Get(key), Found{std::nullopt});
    Did(0, Call::Put(key, ""), Stored{.inserted = true});
    Did(0, Call::Get(key), Found{""});
    Did(0, Call::CompareAndSet(key, "", zeros), Applied{true});
    Did(0, Call::Get(key), Found{zeros});
  }
  ExpectLinearizable();
}

// ---- Verdicts.

TEST_F(LinearizabilityTest, SeveralKeysFail_TheFirstEventIsReported) {
  // Given: violations of key b at event 5, of key a at event 9, and a good key c.
  // When: the history is checked.
  // Expect: key b, event 5.
  Did(0, Call::Put("b", "1"), Stored{});        // events 0, 1
  Did(0, Call::Put("c", "1"), Stored{});        // events 2, 3
  Did(0, Call::Get("b"), Found{std::nullopt});  // events 4, 5
  Did(0, Call::Put("a", "1"), Stored{});        // events 6, 7
  Did(0, Call::Get("a"), Found{std::nullopt});  // events 8, 9
  const Verdict verdict = CheckLinearizable(h_);
  EXPECT_EQ(verdict.answer, Answer::kNotLinearizable);
  EXPECT_EQ(verdict.key, "b");
  EXPECT_EQ(verdict.event, 5u);
  EXPECT_EQ(ToString(verdict), "key b is not linearizable: nothing explains event 5");
}

TEST_F(LinearizabilityTest, LimitReached_UndecidedNeverOk) {
  // Given: lost Increments by 1, 2, 4, ..., whose sums are all different, and a Get that needs one of them.
  // When: the checker may look at fewer configurations than there are sums.
  // Expect: undecided, with the key; and a decision under the usual limits.
  for (uint64_t i = 0; i < 10; ++i) Lost(0, Call::Increment(kKey, uint64_t{1} << i));
  Got(1, Counter(777));
  CheckOptions narrow;
  narrow.max_configurations = 100;
  CheckOptions brief;
  brief.max_steps = 100;
  for (const CheckOptions& options : {narrow, brief}) {
    const Verdict verdict = CheckLinearizable(h_, options);
    EXPECT_EQ(verdict.answer, Answer::kUndecided);
    EXPECT_FALSE(verdict.ok());
    EXPECT_EQ(verdict.key, kKey);
    EXPECT_EQ(ToString(verdict), "key k is undecided: gave up at event 11");
  }
  ExpectLinearizable();
}

TEST_F(LinearizabilityTest, OneKeyUndecidedAndOneFails_TheViolationIsReported) {
  // Given: a key that exceeds the limit, and later a violation of another.
  // When: the history is checked.
  // Expect: the violation.
  for (uint64_t i = 0; i < 10; ++i) Lost(0, Call::Increment("a", uint64_t{1} << i));
  Did(1, Call::Get("a"), Found{Counter(777)});
  Got(1, "never written");
  options_.max_configurations = 100;
  ExpectViolation();
}

}  // namespace
}  // namespace farside::check
