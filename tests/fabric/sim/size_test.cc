// Trips and verbs of unusual sizes: none, one, sixty-four; zero bytes, a page and a half, a megabyte.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

std::vector<std::byte> Lines(uint64_t bytes, uint64_t tag) {
  std::vector<std::byte> lines(bytes);
  for (uint64_t at = 0; at + 8 <= bytes; at += 8) std::memcpy(lines.data() + at, &tag, 8);
  return lines;
}
uint64_t WordIn(const std::vector<std::byte>& bytes, uint64_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, 8);
  return word;
}

Task<Done> SixtyFourAdds(Client& client, Order order) {
  Op op(client, OpKind::kUpdate);
  Batch batch(op, order);
  for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) batch.Add(Faa(At(8 * i), i + 1));
  co_await batch;
  for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) EXPECT_EQ(batch.Old(i), i + 1);
  co_return Done{};
}

// Given trips of 64 verbs. Expect that each of them takes effect and is answered.
TEST(SimSize, TripsOfSixtyFourVerbs) {
  for (const Order order : {Order::kInOrder, Order::kTogether}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimRun run(Free(seed));
      for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) run.SetWord(At(8 * i), i + 1);
      ASSERT_TRUE(run.Do(SixtyFourAdds(run.Connect(), order)).ok());
      for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) ASSERT_EQ(run.Word(At(8 * i)), 2 * (i + 1));
    }
  }
}

Task<Done> NoBytes(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Write(at, {}), Read(at, std::span<std::byte>()), Faa(At(0), 1),
                      Read(at, std::span<std::byte>()));
  co_return Done{};
}

// Given READs and WRITEs of no bytes, also at the very end of the region. Expect that they succeed and that
// what stands beside them in the trip takes effect.
TEST(SimSize, ReadsAndWritesOfNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    for (uint64_t offset : {0, 63, 64, 4096}) ASSERT_TRUE(run.Do(NoBytes(client, At(offset))).ok());
    EXPECT_EQ(run.Word(At(0)), 4u);
  }
}

Task<Done> WriteAndReadBack(Client& client, FarAddr at, uint64_t bytes) {
  Op op(client, OpKind::kUpdate);
  const std::vector<std::byte> written = Lines(bytes, 42);
  std::vector<std::byte> read(bytes);
  co_await op.InOrder(Write(at, written), Read(at, read));
  EXPECT_EQ(read, written);
  co_return Done{};
}

// Given a WRITE and a READ of a megabyte, aligned and not. Expect the bytes.
TEST(SimSize, AMegabyte) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (uint64_t offset : {0, 13}) {
      SimRun run(Free(seed, {kMegabyte + 64}));
      ASSERT_TRUE(run.Do(WriteAndReadBack(run.Connect(), At(offset), kMegabyte)).ok());
      EXPECT_EQ(run.world.memory(NodeId{0})[offset + kMegabyte], std::byte{0});
    }
  }
}

Task<Done> WriteBig(Client& client, uint64_t bytes, bool unreachable) {
  Op op(client, OpKind::kUpdate);
  const std::vector<std::byte> lines = Lines(bytes, 1);
  WriteVerb write = Write(At(0), lines);
  if (unreachable) write = Unreachable(write);
  co_await op.InOrder(write);
  co_return Done{};
}
Task<Done> ReadBig(Client& client, std::vector<std::byte>& into) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read(At(0), into));
  co_return Done{};
}

// Given a READ of 128 lines and a WRITE of all of them. Expect that any two neighbours may be found one old
// and one new, although there are more lines than pieces.
TEST(SimSize, AnyTwoNeighboursOfManyLinesMayDiffer) {
  constexpr uint64_t kBytes = 128 * kLineBytes;
  std::vector<uint64_t> torn(kBytes / kLineBytes);
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SimOptions options = Free(seed, {kBytes});
    options.chaos.tear = 1000;
    SimRun run(options);
    std::vector<std::byte> read(kBytes);
    run.Start(ReadBig(run.Connect(), read));
    run.Start(WriteBig(run.Connect(), kBytes, /*unreachable=*/false));
    run.Drain();
    for (uint64_t at = 0; at < kBytes; at += 8) {
      if (at % kLineBytes != 0) {
        ASSERT_EQ(WordIn(read, at), WordIn(read, at - 8)) << "a line was torn";
      } else if (at != 0 && WordIn(read, at) != WordIn(read, at - 8)) {
        ++torn[at / kLineBytes];
      }
    }
  }
  for (uint64_t line = 1; line < torn.size(); ++line) EXPECT_GT(torn[line], 0u) << "before line " << line;
}

Task<Done> WriteAndReadAt(Client& client, uint64_t offset, const std::vector<std::byte>& bytes,
                          std::vector<std::byte>& read) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Write(At(offset), bytes));
  co_await op.InOrder(Read(At(offset), read));
  co_return Done{};
}

// Given accesses of more lines than pieces that begin and end in the middle of a line. Expect that every byte
// arrives, wherever the cuts are. (Failed when the first cut came before the access.)
TEST(SimSize, ManyLinesFromTheMiddleOfOne) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimOptions options = Free(seed, {128 * kLineBytes});
    options.chaos.tear = 1000;
    SimRun run(options);
    std::vector<std::byte> bytes(100 * kLineBytes + 8 * (seed % 8));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed);
    std::vector<std::byte> read(bytes.size());
    run.Start(WriteAndReadAt(run.Connect(), 64 + 8 * (seed % 7), bytes, read));
    run.Drain();
    ASSERT_TRUE(read == bytes) << "seed " << seed;
  }
}

// Given a WRITE that claims to be unreachable, and a READ that reaches it nevertheless. Expect that lines may
// be torn, but not words: the claim is taken at its word, and a wrong one shows.
TEST(SimSize, AnUnreachableWriteMayTearLinesButNotWords) {
  for (const uint64_t bytes : {uint64_t{256}, uint64_t{4096}}) {
    Litmus litmus;
    for (uint64_t seed = 1; seed <= Seeds(400); ++seed) {
      SimOptions options = Free(seed, {bytes});
      options.chaos.tear = 900;
      SimRun run(options);
      std::vector<std::byte> read(bytes);
      run.Start(ReadBig(run.Connect(), read));
      run.Start(WriteBig(run.Connect(), bytes, /*unreachable=*/true));
      run.Drain();
      for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t word = WordIn(read, at);
        ASSERT_TRUE(word == 0 || word == 1);
        if (at % kLineBytes != 0) litmus.Saw(word == WordIn(read, at - 8) ? "whole" : "torn");
      }
    }
    EXPECT_SEEN(litmus, "whole");
    EXPECT_SEEN(litmus, "torn");
  }
}

}  // namespace
}  // namespace farside::fabric::sim
