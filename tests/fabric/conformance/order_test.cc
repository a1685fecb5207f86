// "Order" of docs/memory-model.md: what holds on every backend.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "tests/fabric/conformance/backend.h"
#include "tests/fabric/conformance/cite.h"

namespace farside::fabric::conformance {
namespace {

class FabricOrder : public FabricTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FabricOrder, testing::ValuesIn(AllBackends()), NameOf);

using ThreeLines = std::array<uint64_t, 24>;
const FarAddr kData = Line(0);  // three lines
const FarAddr kFlag = Line(5);
const FarAddr kNear = At(3 * kLineBytes - 8);  // the last word of the data, for flags in the same line

enum class Then { kWrite, kCas, kMaskedCas, kFaa };
constexpr std::array kEachThen = {Then::kWrite, Then::kCas, Then::kMaskedCas, Then::kFaa};

// ---- WRITE, then anything

// Data is i in all its words, then the flag becomes i.
Task<Done> Publish(Client& client, Then then, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    ThreeLines data;
    data.fill(i);
    switch (then) {
      case Then::kWrite: co_await op.InOrder(WriteObject(kData, data), WriteObject(kFlag, i)); break;
      case Then::kCas: co_await op.InOrder(WriteObject(kData, data), Cas(kFlag, i - 1, i)); break;
      case Then::kMaskedCas:
        co_await op.InOrder(WriteObject(kData, data), MaskedCas(kFlag, i - 1, 0, 0, i, ~uint64_t{0}));
        break;
      case Then::kFaa: co_await op.InOrder(WriteObject(kData, data), Faa(kFlag, 1)); break;
    }
  }
  co_return Done{};
}

// A client that finds the flag finds the data.
Task<Done> Subscribe(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto flag = co_await op.InOrder(Read<uint64_t>(kFlag));
    const auto data = co_await op.InOrder(Read<ThreeLines>(kData));
    for (uint64_t word : data) EXPECT_GE(word, flag);
  }
  co_return Done{};
}

// Given a writer that writes three lines and then sets a flag in the same trip, in every possible way. Expect
// that no client finds the flag without the lines.
const Cite kWriteFirst("fabric/11", "a WRITE takes effect before everything that follows it");
TEST_P(FabricOrder, WriteThenWriteOrAtomic) {
  for (const Then then : kEachThen) {
    SCOPED_TRACE(static_cast<int>(then));
    InManyWorlds({1024}, [then](World& world) {
      const auto writer = world.Connect();
      const auto reader = world.Connect();
      world.PlayWell(std::array{Part{writer.get(), [then](Client& c) { return Publish(c, then, Rounds()); }},
                                Part{reader.get(), [](Client& c) { return Subscribe(c, Rounds()); }}});
      EXPECT_EQ(ReadWord(*reader, kFlag), Rounds());
    });
  }
}

// ---- first one word, then a READ of another: never do both miss (Dekker)

enum class First { kWrite, kCas, kMaskedCas, kFaa };
constexpr std::array kEachFirst = {First::kWrite, First::kCas, First::kMaskedCas, First::kFaa};

FarAddr FlagOf(size_t side, uint64_t round) { return At(side * 32 * 1024 + (round % 4096) * 8); }

// In each round: raise my flag, look at the other's.
Task<Done> RaiseAndLook(Client& client, First first, size_t side, uint64_t rounds,
                        std::vector<uint64_t>& seen) {
  Op op(client, OpKind::kUpdate);
  const uint64_t one = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    const FarAddr mine = FlagOf(side, i);
    const FarAddr other = FlagOf(1 - side, i);
    uint64_t found = 0;
    switch (first) {
      case First::kWrite: {
        const auto [written, read] = co_await op.InOrder(WriteObject(mine, one), Read<uint64_t>(other));
        found = read;
        break;
      }
      case First::kCas: {
        const auto [old, read] = co_await op.InOrder(Cas(mine, 0, 1), Read<uint64_t>(other));
        found = read;
        break;
      }
      case First::kMaskedCas: {
        const auto [old, read] = co_await op.InOrder(MaskedCas(mine, 0, 0, 1, 1, 1), Read<uint64_t>(other));
        found = read;
        break;
      }
      case First::kFaa: {
        const auto [old, read] = co_await op.InOrder(Faa(mine, 1), Read<uint64_t>(other));
        found = read;
        break;
      }
    }
    seen[i] = found;
  }
  co_return Done{};
}

// Given two clients, each of which raises its flag and then reads the other's, in one trip. Expect that at
// least one of them finds the other's flag raised.
const Cite kWriteRead("fabric/11", "a WRITE takes effect before everything that follows it");
const Cite kAtomicRead("fabric/13", "an atomic takes effect before every READ that follows it");
TEST_P(FabricOrder, WriteOrAtomicThenRead_NotBothMiss) {
  for (const First first : kEachFirst) {
    SCOPED_TRACE(static_cast<int>(first));
    InManyWorlds({64 * 1024}, [first](World& world) {
      const uint64_t rounds = std::min<uint64_t>(Rounds(), 4096);
      std::array<std::vector<uint64_t>, 2> seen = {std::vector<uint64_t>(rounds),
                                                   std::vector<uint64_t>(rounds)};
      const std::array clients = {world.Connect(), world.Connect()};
      std::vector<Part> parts;
      for (size_t side : {0, 1}) {
        parts.push_back({clients[side].get(), [&seen, first, side, rounds](Client& c) {
                           return RaiseAndLook(c, first, side, rounds, seen[side]);
                         }});
      }
      world.PlayWell(parts);
      for (uint64_t i = 0; i < rounds; ++i) ASSERT_TRUE(seen[0][i] != 0 || seen[1][i] != 0) << "round " << i;
    });
  }
}

Task<Done> ReadOwn(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    const auto [written, read] = co_await op.InOrder(WriteObject(kFlag, i), Read<uint64_t>(kFlag));
    EXPECT_EQ(read, i);
    const auto [old, after] = co_await op.InOrder(Faa(kNear, 1), Read<uint64_t>(kNear));
    EXPECT_GT(after, old);
    const auto [swapped, last] = co_await op.InOrder(Cas(kFlag, i, 0), Read<uint64_t>(kFlag));
    EXPECT_EQ(swapped, i);
    EXPECT_EQ(last, 0u);
  }
  co_return Done{};
}
Task<Done> AddNear(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < rounds; ++i) co_await op.InOrder(Faa(kNear, 1));
  co_return Done{};
}

// Given trips that change a word and then read it. Expect that the READ finds the change.
TEST_P(FabricOrder, WriteOrAtomicThenReadOfTheSameWord) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    const auto other = world.Connect();
    world.PlayWell(std::array{Part{client.get(), [](Client& c) { return ReadOwn(c, Rounds()); }},
                              Part{other.get(), [](Client& c) { return AddNear(c, Rounds()); }}});
    EXPECT_EQ(ReadWord(*client, kNear), 2 * Rounds());
  });
}

// ---- READ, then READ

Task<Done> DataThenFlag(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    co_await op.InOrder(WriteObject(kData, i));
    co_await op.InOrder(WriteObject(kFlag, i));
  }
  co_return Done{};
}
Task<Done> FlagThenDataInOneTrip(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto [flag, data] = co_await op.InOrder(Read<uint64_t>(kFlag), Read<uint64_t>(kData));
    EXPECT_GE(data, flag);
  }
  co_return Done{};
}

// Given a writer that writes data and then a flag, in two trips. When a reader reads the flag and then the
// data in one trip, expect that it never finds the flag without the data.
const Cite kReadRead("fabric/12", "a READ takes effect before every READ that follows it");
TEST_P(FabricOrder, ReadThenRead) {
  InManyWorlds({1024}, [](World& world) {
    const auto writer = world.Connect();
    const auto reader = world.Connect();
    world.PlayWell(
        std::array{Part{writer.get(), [](Client& c) { return DataThenFlag(c, Rounds()); }},
                   Part{reader.get(), [](Client& c) { return FlagThenDataInOneTrip(c, Rounds()); }}});
  });
}

// ---- fenced

// In each round: verbs that may otherwise be overtaken, and a fenced one that must not overtake them.
Task<Done> FencedRounds(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    // READ, then WRITE of the same bytes: the READ finds the old ones.
    ThreeLines data;
    data.fill(i);
    const auto [read, written] =
        co_await op.InOrder(Read<ThreeLines>(kData), Fenced(WriteObject(kData, data)));
    for (uint64_t word : read) EXPECT_EQ(word, i - 1);
  }
  co_return Done{};
}

// As above, with atomics.
Task<Done> FencedWords(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    const FarAddr a = Line(6);
    const FarAddr b = Line(7);
    const auto [read, cas] = co_await op.InOrder(Read<uint64_t>(a), Fenced(Cas(a, 2 * i - 2, 2 * i - 1)));
    EXPECT_EQ(read, 2 * i - 2);
    EXPECT_EQ(cas, 2 * i - 2);
    const auto [first, second] = co_await op.InOrder(Faa(a, 1), Fenced(Cas(a, 2 * i, 2 * i)));
    EXPECT_EQ(first, 2 * i - 1);
    EXPECT_EQ(second, 2 * i);
    // An atomic on one word, then a fenced atomic and a fenced WRITE on others: see WatchFenced.
    co_await op.InOrder(Faa(b, 1), Fenced(Faa(b + kLineBytes, 1)),
                        Fenced(WriteObject(b + 2 * kLineBytes, i)));
  }
  co_return Done{};
}
Task<Done> WatchFenced(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const FarAddr b = Line(7);
    const auto third = co_await op.InOrder(Read<uint64_t>(b + 2 * kLineBytes));
    const auto second = co_await op.InOrder(Read<uint64_t>(b + kLineBytes));
    const auto first = co_await op.InOrder(Read<uint64_t>(b));
    EXPECT_GE(second, third);
    EXPECT_GE(first, second);
  }
  co_return Done{};
}

// Given trips whose later verbs would be free to overtake, but are fenced. Expect that they do not.
const Cite kFenced("fabric/14", "a fenced verb takes effect after everything that precedes it");
TEST_P(FabricOrder, FencedVerbsDoNotOvertake) {
  InManyWorlds({1024}, [](World& world) {
    const auto writer = world.Connect();
    const auto words = world.Connect();
    const auto reader = world.Connect();
    world.PlayWell(std::array{Part{writer.get(), [](Client& c) { return FencedRounds(c, Rounds()); }},
                              Part{words.get(), [](Client& c) { return FencedWords(c, Rounds()); }},
                              Part{reader.get(), [](Client& c) { return WatchFenced(c, Rounds()); }}});
  });
}

// ---- completion

// Tells the others outside of far memory how far it is.
Task<Done> Announce(Client& client, std::atomic<uint64_t>& announced, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    ThreeLines data;
    data.fill(i);
    co_await op.Together(WriteObject(kData, data), Cas(kFlag, i - 1, i), Faa(Line(6), 1));
    announced.store(i, std::memory_order_release);
  }
  co_return Done{};
}
Task<Done> Believe(Client& client, std::atomic<uint64_t>& announced, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t heard = announced.load(std::memory_order_acquire);
    const auto [data, flag, count] =
        co_await op.Together(Read<ThreeLines>(kData), Read<uint64_t>(kFlag), Read<uint64_t>(Line(6)));
    for (uint64_t word : data) EXPECT_GE(word, heard);
    EXPECT_GE(flag, heard);
    EXPECT_GE(count, heard);
  }
  co_return Done{};
}

// Given a client that tells others, not through far memory, which of its trips have completed. Expect that a
// client that heard it finds the effects of those trips.
const Cite kCompleted("fabric/15", "it has taken effect for every client");
TEST_P(FabricOrder, ACompletedTripIsThereForEveryClient) {
  InManyWorlds({1024}, [](World& world) {
    std::atomic<uint64_t> announced = 0;
    const auto writer = world.Connect();
    const std::array readers = {world.Connect(), world.Connect()};
    std::vector<Part> parts = {{writer.get(), [&](Client& c) { return Announce(c, announced, Rounds()); }}};
    for (const auto& reader : readers) {
      parts.push_back({reader.get(), [&](Client& c) { return Believe(c, announced, Rounds()); }});
    }
    world.PlayWell(parts);
  });
}

}  // namespace
}  // namespace farside::fabric::conformance
