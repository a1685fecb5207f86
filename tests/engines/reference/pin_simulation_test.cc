// What a search has found stays readable until it ends, although its own client moves on meanwhile
// (reference/5, pool/1).
#include <gtest/gtest.h>

#include <string>

#include "tests/engines/reference/member.h"

namespace farside::index::reference {
namespace {

Task<Done> ReadOften(Member& member, int times) {
  for (int i = 0; i < times; ++i) {
    const std::string value = co_await member.Get("k");
    EXPECT_EQ(value.substr(0, 4), "of k");
  }
  co_return Done{};
}

Task<Done> MaintainForEver(Member& member) {
  while (true) co_await member.Maintain();
}

// Blocks of the same size, so that what is freed of one key is used for the other.
Task<Done> WriteForEver(Member& member) {
  for (int i = 0;; ++i) {
    co_await member.Put("k", "of k " + std::to_string(i % 10));
    co_await member.Put("o", "of o " + std::to_string(i % 10));
    co_await member.Maintain();
  }
}

TEST(ReferencePin, ClientMovesOnInTheMiddleOfASearch_TheBlockStaysWhatItWas) {
  // Given a client that searches for a key, and maintains its pool all the time beside that
  // When another replaces the key again and again, over many seeds
  // Expect that every search finds a value of the key: never another key, half a block, or nothing
  // Most trips are quick, and one in a while is so slow that all others move on.
  fabric::sim::Chaos chaos = fabric::sim::Chaos::Calm();
  chaos.delay_verb = 64;
  chaos.longest_delay = std::chrono::milliseconds(2);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world(seed, chaos);
    Member reader(world);
    Member writer(world);
    ASSERT_TRUE(fabric::Run(writer.client(), writer.Put("k", "of k")).ok());
    Task<Done> reads = ReadOften(reader, 1000);
    Task<Done> maintains = MaintainForEver(reader);
    Task<Done> writes = WriteForEver(writer);
    reads.Start();
    maintains.Start();
    writes.Start();
    while (!reads.done() && !maintains.done() && !writes.done() && world->Step()) continue;
    ASSERT_TRUE(reads.done()) << "seed " << seed;
    const Result<Done> end = reads.TakeResult();
    ASSERT_TRUE(end.ok()) << "seed " << seed << ": " << end.error().ToString();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::index::reference
