// The sweep over power cuts: it visits every state that a cut may leave and no other, and a record that is
// made durable in the wrong order is caught.
#include "check/power/power_sweep.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "tests/support/sim_run.h"

namespace farside::check {
namespace {

using fabric::NodeMemory;

uint64_t WordAt(std::span<const std::byte> bytes, uint64_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}
std::vector<std::byte> Lines(size_t lines) { return std::vector<std::byte>(lines * fabric::kLineBytes); }

// What a toy record leaves out, if anything.
enum class Without { kNothing, kFirstFlush, kFirstDrain, kSecondFlush, kSecondDrain };

// Two words of a record, and in another line the number of the record, which makes it valid.
constexpr uint64_t kFlag = fabric::kLineBytes;
PowerSweep::Operation PutRecord(uint64_t number, Without without) {
  return [number, without](NodeMemory& memory) {
    memory.Store(0, number);
    memory.Store(8, number);
    if (without != Without::kFirstFlush) memory.Flush(0, 16);
    if (without != Without::kFirstDrain) memory.Drain();
    memory.Store(kFlag, number);
    if (without != Without::kSecondFlush) memory.Flush(kFlag, 8);
    if (without != Without::kSecondDrain) memory.Drain();
  };
}

// How many states are wrong after one put, on a table that has nothing.
uint64_t WrongStates(Without without) {
  PowerSweep sweep(Lines(2));
  uint64_t wrong = 0;
  sweep.Run({PutRecord(1, without)}, [&](std::span<std::byte> survived, size_t acknowledged, size_t begun) {
    const uint64_t flag = WordAt(survived, kFlag);
    const bool torn = flag != 0 && (WordAt(survived, 0) != flag || WordAt(survived, 8) != flag);
    const bool lost = flag < acknowledged;
    const bool invented = flag > begun;
    if (torn || lost || invented) ++wrong;
  });
  return wrong;
}

// Given a record that becomes valid when it is durable, and is acknowledged when that is, too. Expect that
// every state is right; and that each flush and each drain that is left out is caught.
TEST(PowerSweep, ARecordInTheRightOrderPasses_EachMissingStepIsCaught) {
  EXPECT_EQ(WrongStates(Without::kNothing), 0u);
  EXPECT_GT(WrongStates(Without::kFirstFlush), 0u);
  EXPECT_GT(WrongStates(Without::kFirstDrain), 0u);
  EXPECT_GT(WrongStates(Without::kSecondFlush), 0u);
  EXPECT_GT(WrongStates(Without::kSecondDrain), 0u);
}

// Given a script of two puts, the second of which overwrites the record in place. Expect that the sweep finds
// the state that is torn, in the second one alone.
TEST(PowerSweep, LaterOperationsAreLookedAtToo) {
  PowerSweep sweep(Lines(2));
  std::set<size_t> torn_in;
  const auto put = [](uint64_t number) { return PutRecord(number, Without::kNothing); };
  const auto counts =
      sweep.Run({put(1), put(2)}, [&](std::span<std::byte> survived, size_t acknowledged, size_t begun) {
        EXPECT_TRUE(begun == acknowledged || begun == acknowledged + 1);
        const uint64_t flag = WordAt(survived, kFlag);
        if (flag != 0 && WordAt(survived, 0) != flag) torn_in.insert(acknowledged);
      });
  EXPECT_EQ(torn_in, (std::set<size_t>{1}));
  EXPECT_EQ(counts.points, 6u);  // two drains and the end of each
  EXPECT_EQ(counts.complete, 6u);
  EXPECT_EQ(counts.flushed, (fabric::FlushCounts{.lines = 4, .drains = 4}));
  EXPECT_EQ(WordAt(sweep.bytes(), 8), 2u);
}

// What the simulator and the sweep are both to play: words that are stored several times, in one line and in
// two, of which some are flushed, and some flushed before they are stored again.
void Play(NodeMemory& memory) {
  memory.Store(0, 1);
  memory.Store(64, 1);
  memory.Flush(0, 8);
  memory.Store(8, 1);
  memory.Store(0, 2);
  memory.Drain();
  memory.Store(64, 2);
  memory.Flush(0, 128);
  memory.Store(8, 2);
  memory.Drain();
  memory.Store(0, 3);
}
constexpr uint64_t kSteps = 11;
using Words = std::array<uint64_t, 3>;
Words WordsOf(std::span<const std::byte> bytes) {
  return {WordAt(bytes, 0), WordAt(bytes, 8), WordAt(bytes, 64)};
}

Task<Done> CallOnce(fabric::Client& client) {
  fabric::Op op(client, fabric::OpKind::kUpdate);
  static_cast<void>(co_await op.Call(fabric::NodeId{0}, fabric::CallId(1, 1), "").Outcome());
  co_return Done{};
}

std::set<Words> LeftByTheSimulator() {
  std::set<Words> left;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (uint64_t seed = 1; seed <= 500; ++seed) {
      fabric::sim::SimOptions options = fabric::sim::Quiet(seed);
      options.durable = true;
      options.fault = fabric::sim::Fault{.verb = step, .kind = fabric::sim::FaultKind::kPowerCut};
      fabric::sim::SimRun run(options);
      run.world.calls().Set(fabric::CallId(1, 1), [](NodeMemory& memory, fabric::ClientId, std::string_view) {
        Play(memory);
        return std::string();
      });
      run.Start(CallOnce(run.Connect()));
      run.Drain();
      EXPECT_EQ(run.world.power_cuts(), 1u);
      left.insert(WordsOf(run.world.memory(fabric::NodeId{0})));
    }
  }
  return left;
}

// Given one handler, and power cuts of the simulator after every step of it. Expect that they leave exactly
// the states that the sweep visits.
TEST(PowerSweep, ItVisitsTheStatesThatTheSimulatorLeaves) {
  PowerSweep sweep(Lines(2));
  std::set<Words> visited;
  sweep.Run({Play},
            [&](std::span<std::byte> survived, size_t, size_t) { visited.insert(WordsOf(survived)); });
  EXPECT_EQ(visited, LeftByTheSimulator());
  EXPECT_GT(visited.size(), 15u);
}

// Given more lines than can be visited in every subset. Expect as many samples as allowed, all of them legal,
// with the oldest and the newest among what each line was; and that each sweep of a seed is the same.
TEST(PowerSweep, BeyondTheLimitItSamples) {
  constexpr size_t kLines = 40;
  const SurvivorLimits limits{.most_states = 100, .samples = 20};
  const auto store_all = [](NodeMemory& memory) {
    for (uint64_t word = 0; word < kLines * 8; ++word) memory.Store(word * 8, 1);
  };
  const auto sweep_with = [&](uint64_t seed) {
    PowerSweep sweep(Lines(kLines), limits, seed);
    std::string seen;
    const auto counts = sweep.Run({store_all}, [&](std::span<std::byte> survived, size_t, size_t) {
      for (uint64_t line = 0; line < kLines; ++line) seen += WordAt(survived, line * 64) == 1 ? '1' : '0';
    });
    EXPECT_EQ(counts.states, 120u);
    EXPECT_EQ(counts.complete, 0u);
    return seen;
  };
  const std::string seen = sweep_with(1);
  for (uint64_t line = 0; line < kLines; ++line) {
    std::set<char> values;
    for (size_t at = line; at < seen.size(); at += kLines) values.insert(seen[at]);
    EXPECT_EQ(values.size(), 2u) << "line " << line;
  }
  EXPECT_EQ(seen, sweep_with(1));
  EXPECT_NE(seen, sweep_with(2));
}

// Given ten lines with a word each, which is the limit, and six with two words each, one stored after the
// other: fewer states of lines than the limit, and more of words. Expect all of the first; of the second all
// that leave lines whole, and samples of the others.
TEST(PowerSweep, LinesAreVisitedCompletelyUpToTheLimit) {
  for (const uint64_t words : {1, 2}) {
    const uint64_t lines = words == 1 ? 10 : 6;
    PowerSweep sweep(Lines(lines));
    std::set<std::string> states;
    const auto store = [lines, words](NodeMemory& memory) {
      for (uint64_t line = 0; line < lines; ++line) {
        for (uint64_t word = 0; word < words; ++word) memory.Store(line * 64 + word * 8, 1);
      }
    };
    const auto counts = sweep.Run({store}, [&](std::span<std::byte> survived, size_t, size_t) {
      states.insert(std::string(reinterpret_cast<const char*>(survived.data()), survived.size()));
    });
    if (words == 1) {
      EXPECT_EQ(states.size(), 1024u);
      EXPECT_EQ(counts.complete, 1u);
    } else {
      EXPECT_EQ(counts.complete, 0u);
      EXPECT_EQ(counts.states, 729u + 256u);
    }
  }
}

// Given a check that has seen enough. Expect no further call, and that the script runs to its end.
TEST(PowerSweep, ACheckMayStopIt) {
  PowerSweep sweep(Lines(2));
  uint64_t calls = 0;
  const auto put = PutRecord(7, Without::kNothing);
  sweep.Run({put, put}, [&](std::span<std::byte>, size_t, size_t) {
    ++calls;
    sweep.Stop();
  });
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(WordAt(sweep.bytes(), kFlag), 7u);
}

}  // namespace
}  // namespace farside::check
