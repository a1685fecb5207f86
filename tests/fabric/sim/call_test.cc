// What the simulated node's CPU does: its stores become visible one by one, in program order, while the verbs
// of others go on.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

constexpr CallId kStoreAll(1, 1);
constexpr CallId kIncrement(1, 2);
constexpr uint64_t kWords = 8;

// The words of one line, in the order of their addresses.
void ServeStoreAll(CallTable& calls) {
  calls.Set(kStoreAll, [](NodeMemory& memory, ClientId, std::string_view) {
    const uint64_t next = memory.Load(0) + 1;
    for (uint64_t word = 0; word < kWords; ++word) memory.Store(word * 8, next);
    EXPECT_EQ(memory.Load(0), next) << "a handler sees its own stores";
    return std::to_string(next);
  });
}
// A read-modify-write, which the contract forbids on words that clients CAS.
void ServeIncrement(CallTable& calls) {
  calls.Set(kIncrement, [](NodeMemory& memory, ClientId, std::string_view) {
    memory.Store(0, memory.Load(0) + 1);
    return std::string();
  });
}

Task<Done> CallMany(Client& client, CallId call, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < times; ++i) co_await op.Call(NodeId{0}, call, "");
  co_return Done{};
}

Task<Done> ReadTheLine(Client& client, uint64_t times, Litmus& litmus) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < times; ++i) {
    const auto line = co_await op.InOrder(Read<std::array<uint64_t, kWords>>(At(0)));
    for (uint64_t word = 1; word < kWords; ++word) {
      EXPECT_LE(line[word], line[word - 1]);
      EXPECT_GE(line[word] + 1, line[0]);
    }
    litmus.Saw(line[0] == line[kWords - 1] ? "whole" : "in between");
  }
  co_return Done{};
}

// Given handlers that store to eight words of a line, and READs of it. Expect that READs find the stores in
// program order, and at times only some of them.
TEST(SimCall, StoresAppearInProgramOrderWordByWord) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SimRun run(Free(seed));
    ServeStoreAll(run.world.calls());
    run.Start(CallMany(run.Connect(), kStoreAll, 3));
    run.Start(CallMany(run.Connect(), kStoreAll, 3));
    run.Start(ReadTheLine(run.Connect(), 20, litmus));
    run.Drain();
    ASSERT_EQ(run.Word(At(0)), 6u) << "handlers run one after the other";
    ASSERT_EQ(run.Word(At(8 * (kWords - 1))), 6u);
    if (HasFailure()) return;
  }
  EXPECT_SEEN(litmus, "whole");
  EXPECT_SEEN(litmus, "in between");
}

Task<Done> AddMany(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < times; ++i) co_await op.InOrder(Faa(At(0), 1));
  co_return Done{};
}

// Given a handler that breaks the contract: read-modify-write on a word that clients change by atomics.
// Expect that the world shows it: at times an increment is lost, of the client or of the node, even if the
// handler does nothing else.
TEST(SimCall, ReadModifyWriteOfTheNodeIsNotAtomic) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    SimOptions options = Free(seed);
    options.chaos.split_atomic = 0;  // it is the node's increment that has a gap
    SimRun run(options);
    ServeIncrement(run.world.calls());
    run.Start(CallMany(run.Connect(), kIncrement, 5));
    run.Start(AddMany(run.Connect(), 5));
    run.Drain();
    litmus.Saw(run.Word(At(0)) == 10 ? "all there" : "lost");
  }
  EXPECT_SEEN(litmus, "all there");
  EXPECT_SEEN(litmus, "lost");
}

// Given a client that dies in the middle of its Call. Expect that the handler has run as a whole, or not at
// all.
TEST(SimCall, AHandlerDoesNotDieWithItsCaller) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SimRun run(Free(seed));
    ServeStoreAll(run.world.calls());
    SimClient& client = run.Connect();
    run.Start(CallMany(client, kStoreAll, 1));
    for (uint64_t steps = seed % 6; steps > 0; --steps) run.world.Step();
    run.world.Crash(client.id());
    run.Drain();
    const uint64_t first = run.Word(At(0));
    const uint64_t last = run.Word(At(8 * (kWords - 1)));
    ASSERT_EQ(first, last);
    litmus.Saw(first == 1 ? "all" : "none");
  }
  EXPECT_SEEN(litmus, "all");
  EXPECT_SEEN(litmus, "none");
}

}  // namespace
}  // namespace farside::fabric::sim
