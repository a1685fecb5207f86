// INVARIANT sim/2: while a READ of at most 1 KiB inside a page is being sampled, no other client sees one
// trip complete and has another take effect.
//
// The pattern of all of these: a writer makes A and then B equal to i, each in a trip of its own, and goes on
// to i + 1. A reader reads both in one READ. With at most one trip of the writer inside the READ, it finds B
// <= A <= B + 1.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

constexpr uint64_t kRounds = 8;
const FarAddr kA = Line(0);
const FarAddr kB = Line(15);
struct Kilobyte {
  std::array<uint64_t, 128> words;
  uint64_t a() const { return words[0]; }
  uint64_t b() const { return words[15 * 8]; }
};

enum class How { kWrite, kCas, kFaa, kCall, kFailingCall };
constexpr std::array kAllWays = {How::kWrite, How::kCas, How::kFaa, How::kCall, How::kFailingCall};
constexpr CallId kStoreA(1, 1);
constexpr CallId kStoreAAndFail(1, 2);

void ServeStores(CallTable& calls) {
  const auto store = [](NodeMemory& memory) {
    for (uint64_t line = 3; line < 6; ++line) memory.Store(line * kLineBytes, 1);  // takes a while
    memory.Store(kA.offset, memory.Load(kA.offset) + 1);
    return std::string("stored");
  };
  calls.Set(kStoreA, [store](NodeMemory& memory, ClientId, std::string_view) { return store(memory); });
  calls.Set(kStoreAAndFail, [store](NodeMemory& memory, ClientId, std::string_view) -> Result<std::string> {
    store(memory);
    return Error(ErrorCode::kContended, "stored, but complains");
  });
}

Task<Done> MakeAEqual(Op& op, uint64_t i, How how) {
  switch (how) {
    case How::kWrite: co_await op.InOrder(WriteObject(kA, i)); break;
    case How::kCas: co_await op.InOrder(Cas(kA, i - 1, i)); break;
    case How::kFaa: co_await op.InOrder(Faa(kA, 1)); break;
    case How::kCall: co_await op.Call(NodeId{0}, kStoreA, ""); break;
    case How::kFailingCall: {
      const auto outcome = co_await op.Call(NodeId{0}, kStoreAAndFail, "").Outcome();
      EXPECT_FALSE(outcome.ok());
      break;
    }
  }
  co_return Done{};
}

Task<Done> AThenB(Client& client, How how) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= kRounds; ++i) {
    co_await MakeAEqual(op, i, how);
    co_await op.InOrder(WriteObject(kB, i));
  }
  co_return Done{};
}

Task<Done> ReadBoth(Client& client) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < 2 * kRounds; ++i) {
    const auto read = co_await op.InOrder(Read<Kilobyte>(At(0)));
    EXPECT_LE(read.b(), read.a());
    EXPECT_LE(read.a(), read.b() + 1);
  }
  co_return Done{};
}

// Adds nothing to A, but makes others on the same word finish what they have begun.
Task<Done> Jostle(Client& client) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < 2 * kRounds; ++i) co_await op.InOrder(Faa(kA, 0));
  co_return Done{};
}
Task<Done> JostleByCalls(Client& client) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < 2 * kRounds; ++i) {
    const auto outcome = co_await op.Call(NodeId{0}, CallId(9, 9), "").Outcome();
    EXPECT_FALSE(outcome.ok());
  }
  co_return Done{};
}

// Given a writer that changes A in each of the possible ways, and others that wait for the same word and for
// the same node. Expect that no READ has two of the writer's trips inside.
TEST(SimWindow, AtMostOneTripOfAnotherClientFallsIntoARead) {
  for (uint64_t seed = 1; seed <= Seeds(1500); ++seed) {
    const How how = kAllWays[seed % kAllWays.size()];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", A is changed in way " +
                 std::to_string(static_cast<int>(how)));
    SimOptions options = Free(seed);
    options.chaos.tear = 900;
    if (seed % 3 != 0) options.chaos.split_atomic = 700;
    SimRun run(options);
    ServeStores(run.world.calls());
    run.Start(AThenB(run.Connect(), how));
    run.Start(ReadBoth(run.Connect()));
    run.Start(ReadBoth(run.Connect()));
    if (how == How::kCas || how == How::kFaa) run.Start(Jostle(run.Connect()));
    if (how == How::kCall || how == How::kFailingCall) run.Start(JostleByCalls(run.Connect()));
    run.Drain();
    ASSERT_EQ(run.Word(kB), kRounds);
    if (HasFailure()) return;
  }
}

// Given the same with READs that the contract does not bound. Expect that the world uses that.
Task<Done> ReadFar(Client& client, FarAddr from, uint64_t bytes, Litmus& litmus) {
  Op op(client, OpKind::kSearch);
  std::vector<std::byte> buffer(bytes);
  for (uint64_t i = 0; i < 2 * kRounds; ++i) {
    co_await op.InOrder(Read(from, buffer));
    uint64_t a = 0;
    uint64_t b = 0;
    std::memcpy(&a, buffer.data() + (kA.offset - from.offset), 8);
    std::memcpy(&b, buffer.data() + (kB.offset - from.offset), 8);
    litmus.Saw(b <= a && a <= b + 1 ? "a snapshot" : "several trips inside");
  }
  co_return Done{};
}
TEST(SimWindow, AReadOfMoreThanAKilobyteHasNone) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(800); ++seed) {
    SimOptions options = Free(seed);
    options.chaos.tear = 900;
    SimRun run(options);
    run.Start(AThenB(run.Connect(), How::kWrite));
    run.Start(ReadFar(run.Connect(), At(0), 1025, litmus));
    run.Drain();
  }
  EXPECT_SEEN(litmus, "a snapshot");
  EXPECT_SEEN(litmus, "several trips inside");
}

}  // namespace
}  // namespace farside::fabric::sim
