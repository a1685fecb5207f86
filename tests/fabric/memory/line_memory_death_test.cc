// Clients that die at every single instruction of a verb, and what is left of their lines.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/random.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/own_holds.h"
#include "tests/support/stepped_process.h"

namespace farside::fabric::memory {
namespace {

constexpr Holder kVictim = 7;
constexpr Holder kOther = 8;
constexpr uint64_t kRegionBytes = 8192;

FarAddr At(uint64_t offset) { return FarAddr(NodeId{0}, offset); }

// What processes share.
struct Scenario {
  StripeTable stripes;
  Staging victim;
  Staging other;
  alignas(kLineBytes) std::array<std::byte, kRegionBytes> region;
};
struct Unmap {
  void operator()(Scenario* scenario) const { ::munmap(scenario, sizeof(Scenario)); }
};
using SharedScenario = std::unique_ptr<Scenario, Unmap>;

SharedScenario NewScenario() {
  void* const memory =
      ::mmap(nullptr, sizeof(Scenario), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return SharedScenario(static_cast<Scenario*>(memory));
}

class Patient final : public Watch {
 public:
  bool MayBeFinished(const Sequence&, std::optional<Nanos>&) override { return true; }
};

Patient patient;
LineMemory MemoryOfVictim(Scenario& scenario) {
  return LineMemory(scenario.region, scenario.stripes, kVictim, scenario.victim, patient);
}
LineMemory MemoryOfOther(Scenario& scenario) {
  return LineMemory(scenario.region, scenario.stripes, kOther, scenario.other, patient);
}
LineMemory MemoryOfNode(Scenario& scenario) { return LineMemory(scenario.region, scenario.stripes); }

bool AllFree(const Scenario& scenario) {
  return std::all_of(scenario.stripes.sequences.begin(), scenario.stripes.sequences.end(),
                     [](const Sequence& sequence) { return IsFree(sequence.load()); });
}

using Region = std::vector<std::byte>;
Region ReadAll(LineMemory& memory) {
  Region bytes(kRegionBytes);
  EXPECT_TRUE(memory.Read(0, bytes));
  return bytes;
}

std::vector<std::byte> Payload(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(0x80 + i);
  return bytes;
}

// What was seen at all points of death together, where they differ. A sweep that has not seen everything has
// proved nothing.
struct Seen {
  uint64_t points = 0;
  uint64_t held = 0;       // the victim held a sequence
  uint64_t unchanged = 0;  // the line was as before
  uint64_t changed = 0;
};

// The shared memory as it is now, which is what would be left if the victim were killed here.
SharedScenario CopyOf(const Scenario& scenario) {
  SharedScenario copy = NewScenario();
  std::memcpy(static_cast<void*>(copy.get()), &scenario, sizeof scenario);
  return copy;
}

// Whether what a death would leave is the same as at an earlier instruction: then it was looked at already.
bool IsSame(const Scenario& scenario, const SharedScenario& last) {
  return last != nullptr && std::memcmp(&scenario, last.get(), sizeof scenario) == 0;
}

Region Filled() {
  Region bytes(kRegionBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 64);
  return bytes;
}

// What `verb` makes of `before`.
Region After(Verb verb, const Region& before) {
  const SharedScenario scenario = NewScenario();
  LineMemory memory = MemoryOfNode(*scenario);
  memory.WriteUnreachable(0, before);
  memory.Execute(verb);
  return ReadAll(memory);
}

// How many lines of `found` are as `after` and not as `before`. All must be one or the other.
uint64_t ChangedLines(const Region& found, const Region& before, const Region& after) {
  uint64_t changed = 0;
  for (size_t line = 0; line < kRegionBytes; line += kLineBytes) {
    const auto is = [&](const Region& other) {
      return std::memcmp(found.data() + line, other.data() + line, kLineBytes) == 0;
    };
    if (is(before)) continue;
    EXPECT_TRUE(is(after)) << "line " << line / kLineBytes << " is torn";
    ++changed;
  }
  return changed;
}

// Lets the victim execute `verb` instruction by instruction, and after each of them looks at what its death
// would leave.
Seen Sweep(const Verb& verb) {
  const Region before = Filled();
  const Region after = After(verb, before);
  const SharedScenario scenario = NewScenario();
  MemoryOfNode(*scenario).WriteUnreachable(0, before);
  for (Sequence& sequence : scenario->stripes.sequences)
    sequence = 3 * kOneChange;  // none is as a fresh staging
  SteppedProcess victim([&] {
    Verb mine = verb;
    LineMemory memory = MemoryOfVictim(*scenario);
    memory.Execute(mine);
  });

  Seen seen;
  SharedScenario last;
  do {
    if (IsSame(*scenario, last)) continue;
    last = CopyOf(*scenario);
    const SharedScenario left = CopyOf(*scenario);
    LineMemory node = MemoryOfNode(*left);
    const bool held = node.Holds(kVictim);
    EXPECT_EQ(node.Recover(kVictim, left->victim) != 0, held);
    EXPECT_TRUE(AllFree(*left));
    EXPECT_EQ(left->victim.sequence.load(), Staging::kNothing);
    LineMemory other = MemoryOfOther(*left);
    const uint64_t changed = ChangedLines(ReadAll(other), before, after);
    ++seen.points;
    seen.held += held;
    ++(changed == 0 ? seen.unchanged : seen.changed);
  } while (victim.Step() && !testing::Test::HasFailure());
  return seen;
}

class LineMemoryDeath : public testing::Test {
 protected:
  void SetUp() override {
    if (!SteppedProcess::Possible()) GTEST_SKIP() << "processes cannot be stepped here";
  }
  static void ExpectEverythingWasSeen(const Seen& seen) {
    EXPECT_GT(seen.held, 0u);
    EXPECT_GT(seen.unchanged, 0u);
    EXPECT_GT(seen.changed, 0u);
    EXPECT_GT(seen.points, seen.held);
  }
};

// Given a client that writes a whole line. When it dies at any instruction. Expect that the line is recovered
// as it was or as it should become.
TEST_F(LineMemoryDeath, InAWriteOfALine_LeavesItOldOrNew) {
  const std::vector<std::byte> payload = Payload(64);
  ExpectEverythingWasSeen(Sweep(Write(At(128), payload).Lower()));
}

// The same with a WRITE that begins and ends in the middle of words, and goes over the border of two lines.
TEST_F(LineMemoryDeath, InARaggedWriteOfTwoLines_LeavesEachOldOrNew) {
  const std::vector<std::byte> payload = Payload(50);
  ExpectEverythingWasSeen(Sweep(Write(At(165), payload).Lower()));
}

// The same with a WRITE inside one word, which is not staged, and with one of two halves of words, which is.
TEST_F(LineMemoryDeath, InASmallWrite_LeavesItOldOrNew) {
  const std::vector<std::byte> payload = Payload(8);
  ExpectEverythingWasSeen(Sweep(Write(At(136), payload).Lower()));
  ExpectEverythingWasSeen(Sweep(Write(At(140), payload).Lower()));
}

// Given a client that does an atomic. When it dies at any instruction. Expect that the word is old or new,
// and that the line is free again.
TEST_F(LineMemoryDeath, InAnAtomic_LeavesTheWordOldOrNew) {
  const uint64_t word = 0x0f0e0d0c0b0a0908;  // what stands in the second word of every line
  ExpectEverythingWasSeen(Sweep(Cas(At(136), word, 5).Lower()));
  ExpectEverythingWasSeen(Sweep(Faa(At(136), 3).Lower()));
  ExpectEverythingWasSeen(Sweep(MaskedCas(At(136), 0, 0x08, 0xff, 0x77, 0xff).Lower()));
}

// Given a reader that waits for one line of its window, holding the others. When it dies while it waits, or
// at any instruction after the line has become free. Expect that all are free again, and hold what they held.
TEST_F(LineMemoryDeath, InAReadThatHoldsItsLines_FreesThem) {
  constexpr uint64_t kLines = 4;
  constexpr uint64_t kWaits = 20;  // instructions for which it waits
  const auto read_window = [](Scenario& scenario) {
    LineMemory memory = MemoryOfVictim(scenario);
    std::array<std::byte, kLines * kLineBytes> window;
    memory.Read(0, window);
  };
  const SharedScenario scenario = NewScenario();
  Sequence& last = scenario->stripes.sequences[kLines - 1];
  last = kTheNode;
  SteppedProcess victim([&] { read_window(*scenario); });
  while ((scenario->stripes.sequences[kLines - 2].load() & kHolderMask) != kVictim)
    ASSERT_TRUE(victim.Step());

  std::array<uint64_t, kLines + 1> seen{};
  SharedScenario before;
  uint64_t instructions = 0;
  do {
    if (++instructions == kWaits) last = kOneChange;
    if (IsSame(*scenario, before)) continue;
    before = CopyOf(*scenario);
    const SharedScenario left = CopyOf(*scenario);
    LineMemory node = MemoryOfNode(*left);
    if (left->stripes.sequences[kLines - 1] == kTheNode) left->stripes.sequences[kLines - 1] = kOneChange;
    ++seen[node.Recover(kVictim, left->victim)];
    ASSERT_TRUE(AllFree(*left));
    ASSERT_EQ(ReadAll(node), Region(kRegionBytes));
  } while (victim.Step());
  for (uint64_t lines = 0; lines <= kLines; ++lines) EXPECT_GT(seen[lines], 0u) << lines << " lines held";
}

// Given a client that was killed while it held a line, and others that read and change that line meanwhile.
// Expect that they wait until it is recovered, and then find it whole.
TEST_F(LineMemoryDeath, OthersWaitUntilItIsRecovered) {
  const SharedScenario scenario = NewScenario();
  const std::vector<std::byte> payload = Payload(64);
  SteppedProcess victim([&] {
    LineMemory memory = MemoryOfVictim(*scenario);
    memory.Write(128, payload);
  });
  const auto word_is_stored = [&] { return scenario->region[128] != std::byte{0}; };
  while (!word_is_stored()) ASSERT_TRUE(victim.Step());
  victim.Kill();
  LineMemory node = MemoryOfNode(*scenario);
  ASSERT_TRUE(node.Holds(kVictim));

  std::atomic<int> started = 0;
  std::atomic<int> ended = 0;
  std::vector<std::jthread> others;
  others.emplace_back([&] {
    ++started;
    std::vector<std::byte> found(64);
    EXPECT_TRUE(node.Read(128, found));
    EXPECT_EQ(std::vector(found.begin(), found.begin() + 56),
              std::vector(payload.begin(), payload.end() - 8));
    ++ended;
  });
  others.emplace_back([&] {
    ++started;
    LineMemory memory = MemoryOfOther(*scenario);
    EXPECT_NE(memory.Atomic(Faa(At(184), 1).verb), 0u);
    ++ended;
  });
  while (started < 2) std::this_thread::yield();
  for (int i = 0; i < 50; ++i) std::this_thread::yield();
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(node.Recover(kVictim, scenario->victim), 1u);
  others.clear();
  EXPECT_TRUE(AllFree(*scenario));
}

// ---- single steps of the recovery

// Given a client that has staged a line and died before it took the sequence, and a successor with its number
// that dies in an atomic, at the same value of the same sequence. Expect that the dead one's bytes are not
// stored.
TEST(LineMemoryRecovery, StagingOfAPredecessor_IsNotStored) {
  const auto scenario = std::make_unique<Scenario>();
  LineMemory node = MemoryOfNode(*scenario);
  scenario->victim.sequence = 0;
  scenario->victim.offset = 64;
  scenario->victim.size = 16;
  scenario->victim.bytes[0] = ~uint64_t{0};
  EXPECT_EQ(node.Recover(kVictim, scenario->victim), 0u);

  scenario->stripes.sequences[1] = kVictim;  // taken at 0, as the staging says
  EXPECT_EQ(node.Recover(kVictim, scenario->victim), 1u);
  EXPECT_EQ(node.Load(64), 0u);
  EXPECT_EQ(scenario->stripes.sequences[1], kOneChange);
}

// Given a WRITE that has completed. When its client dies later while it holds the same line for something
// else. Expect that the WRITE is not done again.
TEST(LineMemoryRecovery, StagingOfACompletedWrite_IsNotStoredAgain) {
  const auto scenario = std::make_unique<Scenario>();
  LineMemory node = MemoryOfNode(*scenario);
  LineMemory victim = MemoryOfVictim(*scenario);
  EXPECT_TRUE(victim.Write(64, Payload(64)));
  node.Store(64, 5);
  scenario->stripes.sequences[1] = 2 * kOneChange + kVictim;
  EXPECT_EQ(node.Recover(kVictim, scenario->victim), 1u);
  EXPECT_EQ(node.Load(64), 5u);
  EXPECT_EQ(scenario->stripes.sequences[1], 3 * kOneChange);
}

// Given a staging full of nonsense, and held sequences. Expect that the recovery frees them, keeps inside the
// region, and takes only what could be a WRITE to that very line.
TEST(LineMemoryRecovery, NonsenseInTheStaging_DoesNoHarm) {
  const auto scenario = std::make_unique<Scenario>();
  const std::span<std::byte> inner = std::span(scenario->region).subspan(1024, 2048);
  LineMemory node(inner, scenario->stripes);
  Random random(1);
  const std::array<uint64_t, 10> odd_numbers = {
      0, 1, 63, 64, 65, 2047, 2048, ~uint64_t{0}, ~uint64_t{0} - 63, uint64_t{1} << 63};
  const auto odd = [&] { return random.Chance(1, 4) ? random.Below(4096) : odd_numbers[random.Below(10)]; };
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t stripe = random.Below(40);
    Sequence& sequence = scenario->stripes.sequences[stripe];
    const uint64_t free = sequence.load();
    sequence = free + kVictim;
    scenario->victim.sequence = random.Chance(3, 4) ? free : odd();
    scenario->victim.offset = odd();
    scenario->victim.size = odd();
    for (auto& word : scenario->victim.bytes) word = ~uint64_t{0};
    ASSERT_EQ(node.Recover(kVictim, scenario->victim), 1u);
    ASSERT_EQ(sequence.load(), free + kOneChange);
  }
  const auto untouched = [](std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
  };
  EXPECT_TRUE(untouched(std::span(scenario->region).first(1024)));
  EXPECT_TRUE(untouched(std::span(scenario->region).subspan(1024 + 2048)));
  EXPECT_FALSE(untouched(inner));
}

// Given lines that are held in the node's name, and one of them by a thread of the node. Expect that the
// others are free again, and that the thread keeps its own.
TEST(LineMemoryRecovery, InTheNodesName_WhatNoThreadHolds_IsFreed) {
  const auto scenario = std::make_unique<Scenario>();
  OwnHolds own_holds;
  OwnHold hold;
  own_holds.Add(hold);
  hold.Announce(2);
  for (const uint64_t stripe : {1, 2, 4000}) scenario->stripes.sequences[stripe] = 5 * kOneChange + kTheNode;
  EXPECT_EQ(MemoryOfNode(*scenario).FreeStrays({}, own_holds), 2u);
  EXPECT_EQ(scenario->stripes.sequences[1], 6 * kOneChange);
  EXPECT_EQ(scenario->stripes.sequences[2], 5 * kOneChange + kTheNode);
  EXPECT_EQ(scenario->stripes.sequences[4000], 6 * kOneChange);
}

class Impatient final : public Watch {
 public:
  bool MayBeFinished(const Sequence&, std::optional<Nanos>&) override {
    ++looks;
    return false;
  }
  int looks = 0;
};

// Given a line whose holder is dead, and no daemon that could recover it. Expect that READs, WRITEs and
// atomics end and say so, that they leave the line as it is, and that they leave nothing held or staged
// themselves.
TEST(LineMemoryRecovery, WithoutADaemonToDoIt_WaitersGiveUp) {
  const auto scenario = std::make_unique<Scenario>();
  Impatient impatient;
  LineMemory memory(scenario->region, scenario->stripes, kOther, scenario->other, impatient);
  scenario->stripes.sequences[2] = kVictim;
  std::array<std::byte, 256> window;
  const std::vector<std::byte> payload = Payload(64);
  Verb cas = Cas(At(128), 0, 1).Lower();

  EXPECT_FALSE(memory.Read(0, window));
  EXPECT_FALSE(memory.Write(128, payload));
  EXPECT_FALSE(memory.Execute(cas));
  EXPECT_EQ(impatient.looks, 3);
  EXPECT_EQ(scenario->other.sequence.load(), Staging::kNothing);
  EXPECT_EQ(scenario->stripes.sequences[2].load(), kVictim);
  EXPECT_FALSE(memory.Holds(kOther));
  EXPECT_TRUE(memory.Read(0, std::span(window).first(128)));
  EXPECT_TRUE(memory.Write(192, payload));
}

}  // namespace
}  // namespace farside::fabric::memory
