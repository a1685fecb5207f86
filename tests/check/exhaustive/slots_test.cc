// Put and delete of one key that may have copies in several slots, after SHARD's "Ordered-CAS" (section 4.2
// of the paper): readers take the first copy, writers put into the first empty slot. In miniature: two slots.
//
// Two puts can race into different slots through a hole that another key leaves. As published, a delete
// removes the first copy only, and the old value behind it comes back. The repaired version keeps:
//
//   slots/1  A put that finds an earlier copy or tombstone when its own is in place touches that one: a
//            delete that saw it alone fails, and looks again.
//   slots/2  A delete that sees several copies turns the first one into a tombstone, which decides, then
//            removes those behind it, and then the tombstone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "fabric/op.h"

namespace farside::check {
namespace {

using fabric::Cas;
using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;

// A slot: 0 is empty, 1 belongs to the other key. 16 * value + n is a copy of a value, 2 + 4 * delete + n is
// a tombstone; n = 0 .. 3 tells words with the same meaning apart, and names the client that touched them.
constexpr size_t kSlots = 2;
constexpr uint64_t kEmpty = 0;
constexpr uint64_t kOtherKey = 1;

constexpr bool IsCopy(uint64_t word) { return word >= 16; }
constexpr bool IsTombstone(uint64_t word) { return word >= 2 && word < 16; }
constexpr bool IsMine(uint64_t word) { return IsCopy(word) || IsTombstone(word); }
constexpr uint64_t Copy(uint64_t value) { return 16 * value; }
constexpr uint64_t Tombstone(uint64_t number) { return 2 + 4 * number; }
constexpr uint64_t Touched(uint64_t word, uint64_t by) {
  return IsCopy(word) ? word / 16 * 16 + by : (word - 2) / 4 * 4 + 2 + by;
}

// Which of the repairs are in place, and how the slots lie.
struct Protocol {
  bool touches_earlier_copies = true;  // slots/1
  bool looks_for_more_copies = true;   // slots/2
  int attempts = 3;
  size_t words_per_slot = 1;  // 8: each slot has a line of its own

  FarAddr SlotAt(size_t slot) const { return {NodeId{0}, 8 * words_per_slot * slot}; }
  uint64_t RegionBytes() const { return 8 * words_per_slot * kSlots; }
};
constexpr Protocol kAsPublished{.touches_earlier_copies = false, .looks_for_more_copies = false};
constexpr Protocol kRepaired{};

using Slots = std::array<uint64_t, kSlots>;

// All slots in one READ; a task because the size depends on the protocol.
class ReadSlots {
 public:
  explicit ReadSlots(const Protocol& protocol)
      : words_per_slot_(protocol.words_per_slot), words_(words_per_slot_ * (kSlots - 1) + 1) {}
  fabric::ReadIntoVerb Verb() {
    return fabric::Read(FarAddr(NodeId{0}, 0), std::as_writable_bytes(std::span(words_)));
  }
  Slots Answer() const {
    Slots slots;
    for (size_t i = 0; i < kSlots; ++i) slots[i] = words_[i * words_per_slot_];
    return slots;
  }

 private:
  size_t words_per_slot_;
  std::vector<uint64_t> words_;
};

std::optional<size_t> First(const Slots& slots, bool (*matches)(uint64_t word)) {
  for (size_t i = 0; i < kSlots; ++i) {
    if (matches(slots[i])) return i;
  }
  return std::nullopt;
}
std::optional<size_t> FirstMine(const Slots& slots) { return First(slots, IsMine); }
std::optional<size_t> FirstEmpty(const Slots& slots) {
  return First(slots, [](uint64_t word) { return word == kEmpty; });
}

Task<Outcome> Get(Actor& self, Protocol protocol) {
  Op op(self.client(), OpKind::kSearch);
  ReadSlots read(protocol);
  co_await op.InOrder(read.Verb());
  const Slots slots = read.Answer();
  const std::optional<size_t> first = FirstMine(slots);
  if (!first || IsTombstone(slots[*first])) co_return Outcome(Found{});
  co_return Outcome(Found{std::to_string(slots[*first] / 16)});
}

// slots/1
Task<bool> PutIntoEmpty(Op& op, Protocol protocol, size_t slot, uint64_t value) {
  ReadSlots read(protocol);
  const auto [old, done] = co_await op.InOrder(Cas(protocol.SlotAt(slot), kEmpty, Copy(value)), read.Verb());
  if (old != kEmpty || !protocol.touches_earlier_copies) co_return old == kEmpty;
  const Slots after = read.Answer();
  const std::optional<size_t> first = FirstMine(after);
  if (after[slot] != Copy(value) || !first || *first >= slot) co_return true;
  co_await op.InOrder(Cas(protocol.SlotAt(*first), after[*first], Touched(after[*first], value)));
  co_return true;
}

Task<Outcome> Put(Actor& self, Protocol protocol, uint64_t value) {
  Op op(self.client(), OpKind::kUpdate);
  for (int attempt = 0; attempt < protocol.attempts; ++attempt) {
    self.Forget(static_cast<uint64_t>(attempt));
    ReadSlots read(protocol);
    co_await op.InOrder(read.Verb());
    const Slots slots = read.Answer();
    if (const std::optional<size_t> first = FirstMine(slots)) {
      const uint64_t old = co_await op.InOrder(Cas(protocol.SlotAt(*first), slots[*first], Copy(value)));
      if (old == slots[*first]) co_return Outcome(Stored{});
    } else if (const std::optional<size_t> empty = FirstEmpty(slots)) {
      const bool done = co_await PutIntoEmpty(op, protocol, *empty, value);
      if (done) co_return Outcome(Stored{});
    }
  }
  co_return Error(ErrorCode::kContended, "no slot");
}

// slots/2, when the tombstone is in place. Should this not end, readers still see the tombstone first.
Task<Done> CleanUp(Actor& self, Op& op, Protocol protocol, size_t tombstone) {
  for (int attempt = 0; attempt < protocol.attempts; ++attempt) {
    self.Forget(static_cast<uint64_t>(100 + attempt));
    ReadSlots read(protocol);
    co_await op.InOrder(read.Verb());
    const Slots slots = read.Answer();
    if (!IsTombstone(slots[tombstone])) co_return Done{};
    bool again = false;
    for (size_t i = kSlots; --i > tombstone;) {
      if (!IsMine(slots[i])) continue;
      const uint64_t old = co_await op.InOrder(Cas(protocol.SlotAt(i), slots[i], kEmpty));
      again |= old != slots[i];
    }
    if (again) continue;
    const uint64_t old = co_await op.InOrder(Cas(protocol.SlotAt(tombstone), slots[tombstone], kEmpty));
    if (old == slots[tombstone]) co_return Done{};
  }
  co_return Done{};
}

Task<Outcome> Delete(Actor& self, Protocol protocol, uint64_t number) {
  Op op(self.client(), OpKind::kDelete);
  for (int attempt = 0; attempt < protocol.attempts; ++attempt) {
    self.Forget(static_cast<uint64_t>(attempt));
    ReadSlots read(protocol);
    ReadSlots read_again(protocol);
    co_await op.InOrder(read.Verb(), read_again.Verb());
    const Slots slots = read.Answer();
    const Slots later = read_again.Answer();
    const std::optional<size_t> first = FirstMine(slots);
    if (!first || IsTombstone(slots[*first])) co_return Outcome(Applied{false});
    bool more = false;
    for (size_t i = *first + 1; i < kSlots; ++i) more |= protocol.looks_for_more_copies && IsMine(later[i]);
    const uint64_t then = more ? Tombstone(number) : kEmpty;
    const uint64_t old = co_await op.InOrder(Cas(protocol.SlotAt(*first), slots[*first], then));
    if (old != slots[*first]) continue;
    if (more) co_await CleanUp(self, op, protocol, *first);
    co_return Outcome(Applied{true});
  }
  co_return Error(ErrorCode::kContended, "no slot");
}

Task<Done> GoOnIfContended(Task<Done> operation) {
  Result<Done> done = co_await operation.Outcome();
  if (!done.ok() && done.error().code() == ErrorCode::kContended) co_return Done{};
  co_return done;
}

Program Putting(Protocol protocol, uint64_t value) {
  return [=](Actor& self) {
    static constexpr const char* kValues[] = {"0", "1", "2"};
    return GoOnIfContended(Recorded(self, Call::Put("k", kValues[value]), Put(self, protocol, value)));
  };
}

Program Deleting(Protocol protocol, uint64_t number) {
  return [=](Actor& self) {
    return GoOnIfContended(Recorded(self, Call::Delete("k"), Delete(self, protocol, number)));
  };
}

Task<Done> GetTwice(Actor& self, Protocol protocol) {
  co_await Recorded(self, Call::Get("k"), Get(self, protocol));
  self.Forget(1);
  co_return co_await Recorded(self, Call::Get("k"), Get(self, protocol));
}

Program GettingTwice(Protocol protocol) {
  return [=](Actor& self) { return GetTwice(self, protocol); };
}

Task<Done> Replace(Actor& self, uint64_t old_word, uint64_t new_word) {
  Op op(self.client(), OpKind::kMaintenance);
  co_await op.InOrder(Cas(FarAddr(NodeId{0}, 0), old_word, new_word));
  co_return Done{};
}

// Two puts, a delete and two gets of one key, while another key leaves the first slot.
Scenario RacingForTheHole(Protocol protocol) {
  Scenario scenario;
  scenario.region_bytes = protocol.RegionBytes();
  scenario.set_up = [](Actor& self) { return Replace(self, kEmpty, kOtherKey); };
  scenario.participants = {{.program = Putting(protocol, 1)},
                           {.program = Putting(protocol, 2)},
                           {.program = Deleting(protocol, 0)},
                           {.program = GettingTwice(protocol)},
                           {.program = [](Actor& self) { return Replace(self, kOtherKey, kEmpty); }}};
  return scenario;
}

TEST(ExhaustiveSlots, ProtocolAsPublished_DeletedValueComesBack) {
  // Given the protocol as published
  const Exploration found = Explore(RacingForTheHole(kAsPublished));
  // Expect that a value comes back after it was deleted
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

TEST(ExhaustiveSlots, RepairedProtocol_IsLinearizable) {
  const Exploration found = Explore(RacingForTheHole(kRepaired));
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveSlots, PutThatDoesNotTouchEarlierCopies_IsFound) {
  const Exploration found = Explore(RacingForTheHole({.touches_earlier_copies = false}));
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

TEST(ExhaustiveSlots, DeleteThatRemovesOneCopyOnly_IsFound) {
  const Exploration found = Explore(RacingForTheHole({.looks_for_more_copies = false}));
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

TEST(ExhaustiveSlots, TwoDeletes_RepairedProtocolIsLinearizable) {
  // Given a second delete
  Scenario scenario = RacingForTheHole(kRepaired);
  scenario.participants.push_back({.program = Deleting(kRepaired, 1)});
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveSlots, WritersMayDieAnywhere_RepairedProtocolIsLinearizable) {
  // Given writers that may die at any verb
  Scenario scenario = RacingForTheHole(kRepaired);
  for (size_t writer = 0; writer < 3; ++writer) scenario.participants[writer].may_die = true;
  scenario.max_deaths = 3;
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveSlots, SlotsInDifferentLines_RepairedProtocolIsLinearizable) {
  // Given slots that are not sampled at the same time, but within the window of the contract
  Protocol torn = kRepaired;
  torn.words_per_slot = 8;
  Scenario scenario = RacingForTheHole(torn);
  scenario.freedoms.tear_reads = true;
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

}  // namespace
}  // namespace farside::check
