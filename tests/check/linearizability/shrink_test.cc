// The shortest honest story of a violation. Random violations are shrunk in cross_check_test.cc.
#include "check/shrink.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "check/history.h"
#include "check/linearizability.h"

namespace farside::check {
namespace {

void Did(History& h, int client, const Call& call, Outcome outcome) {
  h.Return(h.Invoke(client, call), std::move(outcome));
}

Witness WitnessOf(const History& h, const CheckOptions& options = {}) {
  const Verdict verdict = CheckLinearizable(h, options);
  EXPECT_EQ(verdict.answer, Answer::kNotLinearizable) << Chart(h.operations());
  return Shrink(h, verdict, options);
}

std::vector<std::string> Lines(std::span<const Operation> operations) {
  std::vector<std::string> lines;
  for (const Operation& operation : operations) lines.push_back(ToString(operation));
  return lines;
}

bool Fails(const Witness& witness) {
  CheckOptions options;
  if (witness.initial) options.initial.emplace(witness.key, *witness.initial);
  return CheckLinearizable(witness.operations, options).answer == Answer::kNotLinearizable;
}

using Story = std::vector<std::string>;

TEST(Shrink, StaleReadInALongStory_OnlyTheTwoPutsAndTheReadRemain) {
  // Given: a stale read between many harmless operations on two keys, before and after it.
  // When: it is shrunk.
  // Expect: the Put of the old value, the Put that replaced it, and the Get that found the old value.
  History h;
  for (int i = 0; i < 5; ++i) {
    Did(h, 0, Call::Put("other", "x"), Stored{});
    Did(h, 1, Call::Put("k", "v" + std::to_string(i)), Stored{});
    Did(h, 2, Call::Get("k"), Found{"v" + std::to_string(i)});
  }
  Did(h, 1, Call::Put("k", "new"), Stored{});
  Did(h, 2, Call::Get("k"), Found{"new"});
  Did(h, 3, Call::Get("k"), Found{"v4"});
  Did(h, 1, Call::Put("k", "newer"), Stored{});
  Did(h, 2, Call::Get("k"), Found{"newer"});

  const Witness witness = WitnessOf(h);
  EXPECT_EQ(witness.key, "k");
  EXPECT_EQ(witness.initial, std::nullopt);
  EXPECT_EQ(Lines(witness.operations),
            (Story{"client 1: Put(k, v4) -> ok", "client 1: Put(k, new) -> ok", "client 3: Get(k) -> v4"}));
  EXPECT_EQ(witness.left_out, 12u);
  EXPECT_TRUE(Fails(witness));
}

TEST(Shrink, TwoInsertsBothApplied_BothRemain) {
  // Given: two overlapping Inserts that were both applied, with reads around them.
  // When: it is shrunk.
  // Expect: the two Inserts, neither of which may be left out.
  History h;
  Did(h, 2, Call::Get("k"), Found{std::nullopt});
  const OpId first = h.Invoke(0, Call::Insert("k", "a"));
  const OpId second = h.Invoke(1, Call::Insert("k", "b"));
  Did(h, 2, Call::Get("k"), Found{std::nullopt});
  h.Return(first, Applied{true});
  h.Return(second, Applied{true});
  Did(h, 2, Call::Get("k"), Found{"b"});

  const Witness witness = WitnessOf(h);
  EXPECT_EQ(witness.initial, std::nullopt);
  EXPECT_EQ(Lines(witness.operations),
            (Story{"client 0: Insert(k, a) -> applied", "client 1: Insert(k, b) -> applied"}));
}

TEST(Shrink, OperationsPendingAtTheEnd_HaveNoAnswerInTheWitness) {
  // Given: a new-old inversion during a Put that returns only afterwards.
  // When: it is shrunk.
  // Expect: it ends with the second Get; the Put is still there, without its answer, for it explains the
  // first Get.
  History h;
  Did(h, 0, Call::Put("k", "a"), Stored{});
  const OpId put = h.Invoke(0, Call::Put("k", "b"));
  Did(h, 1, Call::Get("k"), Found{"b"});
  Did(h, 2, Call::Get("k"), Found{"a"});
  h.Return(put, Stored{});

  const Witness witness = WitnessOf(h);
  EXPECT_TRUE(Fails(witness));
  for (const Operation& operation : witness.operations) {
    EXPECT_TRUE(operation.returned == kNever || operation.returned <= 6);
  }
  EXPECT_EQ(Lines(witness.operations).back(), "client 2: Get(k) -> a");
}

TEST(Shrink, RefusedPutWasSeen_ItIsShownAsASuspect) {
  // Given: a Get that found the value of a Put that is refused afterwards.
  // When: it is shrunk.
  // Expect: the Get alone is the proof, and the refused Put is printed with it.
  History h;
  const OpId put = h.Invoke(0, Call::Put("k", "a"));
  Did(h, 1, Call::Get("k"), Found{"a"});
  h.Refuse(put, "kContended: too many attempts");
  Did(h, 1, Call::Get("k"), Found{std::nullopt});

  const Witness witness = WitnessOf(h);
  EXPECT_EQ(Lines(witness.operations), Story{"client 1: Get(k) -> a"});
  EXPECT_EQ(Lines(witness.suspects), Story{"client 0: Put(k, a) -> refused: kContended: too many attempts"});
  EXPECT_EQ(ToString(witness), R"(key k is absent at first. Left out: what does not matter (2).
0..3  client 0  Put(k, a) -> refused: kContended: too many attempts  |========x
1..2  client 1  Get(k) -> a                                             |==|
)");
}

TEST(Shrink, WritesThatTheOthersNeed_AreKept) {
  // Given: a lost Put that explains one CompareAndSet from its value, but not a second one.
  // When: it is shrunk.
  // Expect: the lost Put is kept, because it excuses the first; only what no client needs is left out.
  History h;
  h.LoseAnswer(h.Invoke(0, Call::Put("k", "b")));
  Did(h, 1, Call::Put("k", "a"), Stored{});
  Did(h, 2, Call::CompareAndSet("k", "b", "c"), Applied{true});
  Did(h, 2, Call::CompareAndSet("k", "b", "d"), Applied{true});

  const Witness witness = WitnessOf(h);
  EXPECT_EQ(Lines(witness.operations),
            (Story{"client 0: Put(k, b) -> no answer", "client 2: CompareAndSet(k, b, c) -> applied",
                   "client 2: CompareAndSet(k, b, d) -> applied"}));
}

TEST(Shrink, PreloadedKey_TheWitnessBeginsWithItsValue) {
  // Given: a preloaded value that is not found.
  // When: it is shrunk.
  // Expect: the witness says what the key held.
  CheckOptions options;
  options.initial.emplace("k", "a");
  History h;
  Did(h, 0, Call::Get("k"), Found{"a"});
  Did(h, 0, Call::Get("k"), Found{std::nullopt});
  const Witness witness = WitnessOf(h, options);
  EXPECT_EQ(witness.initial, "a");
  EXPECT_EQ(Lines(witness.operations), Story{"client 0: Get(k) -> absent"});
  EXPECT_EQ(witness.left_out, 1u);
}

TEST(Shrink, ViolationAfterAHundredThousandOperations_TheWitnessIsShort) {
  // Given: a long chain of CompareAndSets, of which none may be left out; at the end a stale read.
  // When: it is shrunk.
  // Expect: the value of the chain at some late moment, and a few operations; what wrote the stale value
  // is shown.
  History h;
  std::string value = "v0";
  Did(h, 0, Call::Put("k", value), Stored{});
  for (int i = 1; i <= 50'000; ++i) {
    const OpId get = h.Invoke(i % 2, Call::Get("k"));
    const std::string next = "v" + std::to_string(i);
    Did(h, 2, Call::CompareAndSet("k", value, next), Applied{true});
    h.Return(get, Found{i % 3 == 0 ? value : next});
    value = next;
  }
  Did(h, 3, Call::Get("k"), Found{"v40000"});
  const Witness witness = WitnessOf(h);
  EXPECT_TRUE(Fails(witness));
  EXPECT_LE(witness.operations.size(), 4u);
  EXPECT_GT(witness.replaced, 99'000u);
  EXPECT_EQ(Lines(witness.suspects), Story{"client 2: CompareAndSet(k, v39999, v40000) -> applied"});
}

TEST(Shrink, EffortUsedUp_TheWitnessIsLongButStillFails) {
  // Given: a violation, and no effort allowed at all.
  // When: it is shrunk.
  // Expect: the whole history of the key.
  History h;
  Did(h, 0, Call::Put("k", "a"), Stored{});
  Did(h, 0, Call::Get("k"), Found{"a"});
  Did(h, 0, Call::Get("k"), Found{"b"});
  const Witness witness = Shrink(h, CheckLinearizable(h), {}, {.max_effort = 0});
  EXPECT_EQ(witness.operations.size(), 3u);
  EXPECT_TRUE(Fails(witness));
}

TEST(MayLeaveOut, OnlyWhatNoOtherOperationNeeds) {
  // Given: histories with one operation of interest, and others that can or cannot tell it was there.
  // When: the rule is asked about it.
  // Expect: reads always; a write only if nothing looks for its value, nor for what it may have changed.
  auto may = [](const Call& call, const Outcome& outcome, const Call& other, const Outcome& other_outcome) {
    History h;
    Did(h, 0, call, outcome);
    Did(h, 1, other, other_outcome);
    return static_cast<bool>(MayLeaveOut(h.operations())[0]);
  };
  const Call put = Call::Put("k", "a");
  EXPECT_TRUE(may(Call::Get("k"), Found{"a"}, put, Stored{}));
  EXPECT_TRUE(may(Call::Insert("k", "b"), Applied{false}, put, Stored{}));
  EXPECT_TRUE(may(put, Stored{}, Call::Get("k"), Found{"b"}));
  EXPECT_TRUE(may(put, Stored{}, Call::Get("k"), Found{std::nullopt}));
  EXPECT_FALSE(may(put, Stored{}, Call::Get("k"), Found{"a"}));
  EXPECT_FALSE(may(put, Stored{}, Call::Delete("k"), Applied{true}));
  EXPECT_TRUE(may(put, Stored{.inserted = false}, Call::Delete("k"), Applied{true}));
  EXPECT_FALSE(may(put, Stored{}, Call::CompareAndSet("k", "b", "c"), Applied{false}));
  EXPECT_FALSE(may(Call::Delete("k"), Applied{true}, Call::Get("k"), Found{std::nullopt}));
  EXPECT_TRUE(may(Call::Delete("k"), Applied{true}, Call::Get("k"), Found{"a"}));
}

}  // namespace
}  // namespace farside::check
