// The freedoms of "What is whole" and "The node's processor" in docs/memory-model.md: the simulator must be
// seen to use each of them, and nothing beyond.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/conformance/cite.h"
#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using conformance::Cite;

using TwoLines = std::array<uint64_t, 16>;

std::string Word(uint64_t word) { return std::to_string(word); }

// ---- lines

Task<Done> WriteWord(Client& client, FarAddr at, uint64_t word) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(WriteObject(at, word));
  co_return Done{};
}
Task<Done> WriteTwoLines(Client& client, bool unreachable) {
  Op op(client, OpKind::kUpdate);
  TwoLines ones;
  ones.fill(1);
  WriteVerb write = WriteObject(Line(0), ones);
  if (unreachable) write = Unreachable(write);
  co_await op.InOrder(write);
  co_return Done{};
}
Task<Done> ReadTwoLines(Client& client, TwoLines& lines) {
  Op op(client, OpKind::kSearch);
  lines = co_await op.InOrder(Read<TwoLines>(Line(0)));
  co_return Done{};
}

// Given one READ of two lines, and two clients that write one line each. Expect all four results: the lines
// are sampled at different times, in any order.
const Cite kReads("freedom/9", "may be sampled at different times and in any order");
TEST(FreedomOfLines, LinesOfAReadAreSampledSeparately) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(500); ++seed) {
    SimRun run(Free(seed));
    TwoLines lines{};
    run.Start(ReadTwoLines(run.Connect(), lines));
    run.Start(WriteWord(run.Connect(), Line(0), 1));
    run.Start(WriteWord(run.Connect(), Line(1), 1));
    run.Drain();
    litmus.Saw(Word(lines[0]) + Word(lines[8]));
  }
  for (const std::string both : {"00", "10", "01", "11"}) EXPECT_SEEN(litmus, both);
}

// Given one WRITE to both lines while the READ is on its way. Expect torn READs in both directions, but whole
// lines.
TEST(FreedomOfLines, AReadMayFindHalfOfAWrite) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(500); ++seed) {
    SimRun run(Free(seed));
    TwoLines lines{};
    run.Start(ReadTwoLines(run.Connect(), lines));
    run.Start(WriteTwoLines(run.Connect(), /*unreachable=*/false));
    run.Drain();
    for (size_t word = 0; word < 16; ++word) ASSERT_EQ(lines[word], lines[word / 8 * 8]) << "a line was torn";
    litmus.Saw(Word(lines[0]) + Word(lines[8]));
  }
  for (const std::string both : {"00", "10", "01", "11"}) EXPECT_SEEN(litmus, both);
}

// Trip after trip, so that each READ happens at one instant.
Task<Done> ReadOneAfterTheOther(Client& client, FarAddr first, FarAddr second,
                                std::array<uint64_t, 2>& found) {
  Op op(client, OpKind::kSearch);
  found[0] = co_await op.InOrder(Read<uint64_t>(first));
  found[1] = co_await op.InOrder(Read<uint64_t>(second));
  co_return Done{};
}

// Given one WRITE of two lines. Expect that others find either line written and, later, the other one not
// yet.
const Cite kWrites("freedom/10", "may appear at different times and in any order");
TEST(FreedomOfLines, LinesOfAWriteAppearSeparately) {
  for (const bool forward : {false, true}) {
    Litmus litmus;
    for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
      SimRun run(Free(seed));
      std::array<uint64_t, 2> found{};
      run.Start(WriteTwoLines(run.Connect(), false));
      run.Start(ReadOneAfterTheOther(run.Connect(), Line(forward ? 0 : 1), Line(forward ? 1 : 0), found));
      run.Drain();
      litmus.Saw(Word(found[0]) + Word(found[1]));
    }
    EXPECT_SEEN(litmus, "10");
    EXPECT_SEEN(litmus, "00");
    EXPECT_SEEN(litmus, "01");
    EXPECT_SEEN(litmus, "11");
  }
}

// Given an unreachable WRITE, and a READ that reaches it all the same. Expect that words of one line appear
// separately, which they never do for a WRITE that does not claim to be unreachable.
const Cite kUnreachable("freedom/11", "An unreachable WRITE may appear word by word");
TEST(FreedomOfLines, WordsOfAnUnreachableWriteAppearSeparately) {
  for (const bool unreachable : {false, true}) {
    Litmus litmus;
    for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
      SimRun run(Free(seed));
      std::array<uint64_t, 2> found{};
      run.Start(WriteTwoLines(run.Connect(), unreachable));
      run.Start(ReadOneAfterTheOther(run.Connect(), At(8), At(0), found));
      run.Drain();
      litmus.Saw(Word(found[0]) + Word(found[1]));
    }
    EXPECT_SEEN(litmus, "11");
    if (unreachable) {
      EXPECT_SEEN(litmus, "10");
    } else {
      EXPECT_NEVER_SEEN(litmus, "10");
    }
  }
}

// ---- what a READ may be mistaken for

// Numbers two lines in one locked update after the other; the lock is elsewhere.
constexpr uint64_t kUpdates = 6;
const FarAddr kLock = At(8192 - 64);
Task<Done> LockedUpdates(Client& client, FarAddr first, FarAddr last) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < kUpdates;) {
    const auto [old, number] = co_await op.InOrder(Cas(kLock, 0, 1), Read<uint64_t>(first));
    if (old != 0) continue;
    ++i;
    const uint64_t next = number + 1;
    co_await op.InOrder(WriteObject(first, next), WriteObject(last, next), Cas(kLock, 1, 0));
  }
  co_return Done{};
}
Task<Done> ReadRange(Client& client, FarAddr from, uint64_t bytes, Litmus& litmus) {
  Op op(client, OpKind::kSearch);
  std::vector<std::byte> range(bytes);
  for (uint64_t i = 0; i < 2 * kUpdates; ++i) {
    co_await op.InOrder(Read(from, range));
    uint64_t first = 0;
    uint64_t last = 0;
    std::memcpy(&first, range.data(), 8);
    std::memcpy(&last, range.data() + bytes - 8, 8);
    const uint64_t distance = first < last ? last - first : first - last;
    litmus.Saw(distance == 0 ? "one update" : distance == 1 ? "two neighbours" : "several updates");
  }
  co_return Done{};
}

Litmus ReadAgainstUpdates(FarAddr from, uint64_t bytes, bool same_client) {
  Litmus litmus;
  const FarAddr last = from + (bytes - 8);
  for (uint64_t seed = 1; seed <= Seeds(600); ++seed) {
    SimOptions options = Free(seed, {8192});
    options.chaos.tear = 900;
    SimRun run(options);
    SimClient& writer = run.Connect();
    SimClient& reader = run.Connect();
    run.Start(LockedUpdates(writer, from, last));
    run.Start(LockedUpdates(same_client ? writer : run.Connect(), from, last));
    run.Start(ReadRange(same_client ? writer : reader, from, bytes, litmus));
    run.Drain();
  }
  return litmus;
}

// Given READs of a kilobyte within a page, of more than that, and across a page, while others make locked
// updates.
// Expect that only the first kind never finds lines that are several updates apart.
const Cite kNoSnapshot("freedom/12", "is no snapshot: any number of updates may fall into it");
TEST(FreedomOfLines, OnlyASmallReadWithinAPageHasAWindow) {
  const Litmus small = ReadAgainstUpdates(At(1024), 1024, false);
  EXPECT_SEEN(small, "one update");
  EXPECT_SEEN(small, "two neighbours");
  EXPECT_NEVER_SEEN(small, "several updates");

  const Litmus unaligned = ReadAgainstUpdates(At(3072 - 8), 1024, false);
  EXPECT_SEEN(unaligned, "two neighbours");
  EXPECT_NEVER_SEEN(unaligned, "several updates");

  EXPECT_SEEN(ReadAgainstUpdates(At(1024), 1032, false), "several updates");
  EXPECT_SEEN(ReadAgainstUpdates(At(4096 - 512), 1024, false), "several updates");
}

// Given the same kilobyte, read and updated by operations of one client. Expect that the window does not bind
// them.
const Cite kOwn("freedom/13", "The window bounds other clients only");
TEST(FreedomOfLines, OperationsOfOneClientAreNotBoundByItsWindows) {
  EXPECT_SEEN(ReadAgainstUpdates(At(1024), 1024, true), "several updates");
}

// ---- the node's processor

Task<Done> CallOnce(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.Call(NodeId{0}, CallId(1, 1), "");
  co_return Done{};
}
Task<Done> AddOnce(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Faa(At(0), 1));
  co_return Done{};
}

// Given a handler that adds one to a word and then stores to two more, while a client adds one to the same
// word and others look. Expect that the client's addition is lost at times, and that some stores are found
// without the rest, but never a later one without an earlier one.
const Cite kHandler("freedom/14", "A handler is not atomic");
TEST(FreedomOfLines, AHandlerIsNotAtomic) {
  Litmus sums;
  Litmus looks;
  for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
    SimRun run(Free(seed));
    run.world.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
      memory.Store(0, memory.Load(0) + 1);
      memory.Store(8, 1);
      memory.Store(64, 1);
      return std::string();
    });
    std::array<uint64_t, 2> near{};
    std::array<uint64_t, 2> far{};
    run.Start(CallOnce(run.Connect()));
    run.Start(AddOnce(run.Connect()));
    run.Start(ReadOneAfterTheOther(run.Connect(), At(64), At(8), far));
    run.Start(ReadOneAfterTheOther(run.Connect(), At(8), At(64), near));
    run.Drain();
    sums.Saw(Word(run.Word(At(0))));
    looks.Saw("later first " + Word(far[0]) + Word(far[1]));
    looks.Saw("earlier first " + Word(near[0]) + Word(near[1]));
  }
  EXPECT_SEEN(sums, "2");
  EXPECT_SEEN(sums, "1");
  EXPECT_SEEN(looks, "earlier first 10");
  EXPECT_NEVER_SEEN(looks, "later first 10");
}

}  // namespace
}  // namespace farside::fabric::sim
