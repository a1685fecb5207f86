// "What is whole" and "The window of a READ" of docs/memory-model.md: what holds on every backend.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "fabric/op.h"
#include "tests/fabric/conformance/backend.h"
#include "tests/fabric/conformance/cite.h"

namespace farside::fabric::conformance {
namespace {

class FabricAtomicity : public FabricTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FabricAtomicity, testing::ValuesIn(AllBackends()), NameOf);

constexpr uint64_t kEveryByte = 0x0101010101010101;
uint64_t EveryByteIs(uint64_t byte) { return kEveryByte * (byte & 0xff); }
bool AllBytesEqual(uint64_t word) { return word == EveryByteIs(word); }

// ---- words

// Words of equal bytes, alone and as the ragged ends of longer WRITEs.
Task<Done> WriteEvenWords(Client& client, uint64_t seed, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  for (uint64_t i = 0; i < rounds; ++i) {
    std::array<uint64_t, 10> words;
    words.fill(EveryByteIs(random.Next()));
    const size_t count = 1 + random.Below(words.size());
    co_await op.InOrder(Write(At(8 * random.Below(7)), std::as_bytes(std::span(words)).first(8 * count)));
  }
  co_return Done{};
}
Task<Done> ReadEvenWords(Client& client, uint64_t seed, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  Random random(seed);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto word = co_await op.InOrder(Read<uint64_t>(At(8 * random.Below(16))));
    EXPECT_TRUE(AllBytesEqual(word)) << std::hex << word;
    // From an odd address, but with whole words inside.
    std::array<std::byte, 40> bytes;
    co_await op.InOrder(Read(At(3), bytes));
    for (size_t at = 5; at + 8 <= bytes.size(); at += 8) {
      uint64_t inside = 0;
      std::memcpy(&inside, bytes.data() + at, 8);
      EXPECT_TRUE(AllBytesEqual(inside)) << std::hex << inside;
    }
  }
  co_return Done{};
}

// Given writers of words whose bytes are all equal. Expect that readers find no other words.
const Cite kWords("fabric/16", "An aligned word is read and written whole");
TEST_P(FabricAtomicity, WordsAreWhole) {
  InManyWorlds({1024}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect()};
    world.PlayWell(
        std::array{Part{clients[0].get(), [](Client& c) { return WriteEvenWords(c, 1, Rounds()); }},
                   Part{clients[1].get(), [](Client& c) { return WriteEvenWords(c, 2, Rounds()); }},
                   Part{clients[2].get(), [](Client& c) { return ReadEvenWords(c, 3, Rounds()); }}});
  });
}

// ---- lines

using TwentyLines = std::array<std::array<uint64_t, 8>, 20>;

// Lines whose words are all equal; also the middle of a line, which its readers compare for itself.
Task<Done> WriteEvenLines(Client& client, uint64_t seed, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  for (uint64_t i = 0; i < rounds; ++i) {
    TwentyLines lines;
    for (auto& line : lines) line.fill(random.Next());
    const uint64_t first = random.Below(lines.size());
    const uint64_t count = random.Chance(1, 2) ? 1 : 1 + random.Below(lines.size() - first);
    const auto bytes = std::as_bytes(std::span(lines)).subspan(first * kLineBytes, count * kLineBytes);
    co_await op.InOrder(Write(Line(first), bytes));
  }
  co_return Done{};
}
Task<Done> ReadEvenLines(Client& client, uint64_t seed, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  Random random(seed);
  for (uint64_t i = 0; i < rounds; ++i) {
    TwentyLines lines;
    const uint64_t first = random.Below(lines.size());
    const uint64_t count = 1 + random.Below(lines.size() - first);
    auto bytes = std::as_writable_bytes(std::span(lines)).subspan(first * kLineBytes, count * kLineBytes);
    co_await op.InOrder(Read(Line(first), bytes));
    for (uint64_t line = first; line < first + count; ++line) {
      for (uint64_t word : lines[line]) EXPECT_EQ(word, lines[line][0]);
    }
    // Not from the start of a line: 24 bytes of one, all of the next, 24 of the last.
    std::array<uint64_t, 14> ragged;
    const uint64_t middle = 1 + random.Below(lines.size() - 2);
    co_await op.InOrder(Read(At(middle * kLineBytes - 24), std::as_writable_bytes(std::span(ragged))));
    EXPECT_TRUE(ragged[0] == ragged[1] && ragged[1] == ragged[2]);
    for (size_t word = 4; word < 11; ++word) EXPECT_EQ(ragged[word], ragged[3]);
    EXPECT_TRUE(ragged[11] == ragged[12] && ragged[12] == ragged[13]);
  }
  co_return Done{};
}

// Given writers of lines whose words are all equal, one line or many at a time. Expect that readers of any
// number of lines, from any word on, find no line of two WRITEs.
const Cite kLines("fabric/17", "An aligned line is read and written whole");
TEST_P(FabricAtomicity, LinesAreWhole) {
  InManyWorlds({4096}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect(), world.Connect()};
    world.PlayWell(
        std::array{Part{clients[0].get(), [](Client& c) { return WriteEvenLines(c, 1, Rounds()); }},
                   Part{clients[1].get(), [](Client& c) { return WriteEvenLines(c, 2, Rounds()); }},
                   Part{clients[2].get(), [](Client& c) { return ReadEvenLines(c, 3, Rounds()); }},
                   Part{clients[3].get(), [](Client& c) { return ReadEvenLines(c, 4, Rounds()); }}});
  });
}

// Word by word through the line, each by an atomic, in trips of their own: so at every moment the words are
// equal up to some place and one less from there on.
Task<Done> RaiseWordsOfALine(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    for (uint64_t word = 0; word < 8; ++word) {
      const FarAddr at = At(8 * word);
      switch ((i + word) % 3) {
        case 0: co_await op.InOrder(Faa(at, 1)); break;
        case 1: co_await op.InOrder(Cas(at, i - 1, i)); break;
        default: co_await op.InOrder(MaskedCas(at, i - 1, 0, 0, i, ~uint64_t{0})); break;
      }
    }
  }
  co_return Done{};
}
Task<Done> ReadRaisedLine(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto line = co_await op.InOrder(Read<std::array<uint64_t, 8>>(Line(0)));
    for (size_t word = 1; word < 8; ++word) {
      EXPECT_LE(line[word], line[word - 1]);
      EXPECT_LE(line[0], line[word] + 1);
    }
  }
  co_return Done{};
}

// Given atomics that raise the words of a line one after the other. Expect that every READ of the line is a
// state in which the line once was.
const Cite kLinesUnderAtomics("fabric/17", "also while atomics change words of it");
TEST_P(FabricAtomicity, LinesAreWholeUnderAtomics) {
  InManyWorlds({1024}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect()};
    world.PlayWell(
        std::array{Part{clients[0].get(), [](Client& c) { return RaiseWordsOfALine(c, Rounds()); }},
                   Part{clients[1].get(), [](Client& c) { return ReadRaisedLine(c, 4 * Rounds()); }},
                   Part{clients[2].get(), [](Client& c) { return ReadRaisedLine(c, 4 * Rounds()); }}});
  });
}

// ---- atomics

// A counter by each kind of atomic; the last two fields share a word with each other.
Task<Done> CountEachWay(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  constexpr uint64_t kLow = 0xffffffff;
  uint64_t guess = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    co_await op.InOrder(Faa(At(0), 1));
    // A CAS that fails says what to try next.
    for (bool done = false; !done;) {
      const uint64_t old = co_await op.InOrder(Cas(At(8), guess, guess + 1));
      done = old == guess;
      guess = done ? guess + 1 : old;
    }
    // The low half by masked CAS, the high half by FAA.
    for (bool done = false; !done;) {
      const uint64_t word = co_await op.InOrder(Read<uint64_t>(At(16)));
      const uint64_t old = co_await op.InOrder(MaskedCas(At(16), word, word, kLow, (word + 1) & kLow, kLow));
      done = ((old ^ word) & kLow) == 0;
    }
    co_await op.InOrder(Faa(At(16), kLow + 1));
  }
  co_return Done{};
}

// Given clients that count in shared words by FAA, by CAS and by masked CAS, the last two in one word. Expect
// that no increment is lost.
const Cite kAtomics("fabric/18", "Atomics on one word take effect one after the other; none of them is lost");
TEST_P(FabricAtomicity, AtomicsExcludeEachOther) {
  InManyWorlds({1024}, [](World& world) {
    constexpr uint64_t kClients = 3;
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Part> parts;
    for (uint64_t i = 0; i < kClients; ++i) {
      clients.push_back(world.Connect());
      parts.push_back({clients.back().get(), [](Client& c) { return CountEachWay(c, Rounds()); }});
    }
    world.PlayWell(parts);
    const uint64_t all = kClients * Rounds();
    EXPECT_EQ(ReadWord(*clients[0], At(0)), all);
    EXPECT_EQ(ReadWord(*clients[0], At(8)), all);
    EXPECT_EQ(ReadWord(*clients[0], At(16)), (all << 32) + all);
  });
}

// Every operation leaves a word of equal bytes, so any mixture of two shows.
Task<Done> AddToAllBytes(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < rounds; ++i) {
    co_await op.InOrder(MaskedCas(At(0), 0, 0, 0, EveryByteIs(i), ~uint64_t{0}));
    const uint64_t old = co_await op.InOrder(Cas(At(0), EveryByteIs(i), EveryByteIs(i + 1)));
    EXPECT_TRUE(AllBytesEqual(old)) << std::hex << old;
    co_await op.InOrder(Cas(At(0), EveryByteIs(i + 1) + 1, 5));  // fails
  }
  co_return Done{};
}
Task<Done> OverwriteAllBytes(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t word = EveryByteIs(3 * i);
    co_await op.InOrder(WriteObject(At(0), word));
  }
  co_return Done{};
}
Task<Done> ReadAllBytes(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < 3 * rounds; ++i) {
    const auto word = co_await op.InOrder(Read<uint64_t>(At(0)));
    EXPECT_TRUE(AllBytesEqual(word)) << std::hex << word;
  }
  co_return Done{};
}

// Given atomics, WRITEs and READs of one word. Expect that no client finds a word that none of them left.
const Cite kAtomicsAndOthers("fabric/19", "finds an atomic on it done or not done, never in part");
TEST_P(FabricAtomicity, AtomicsAreWholeForReadsAndWrites) {
  InManyWorlds({1024}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect()};
    world.PlayWell(
        std::array{Part{clients[0].get(), [](Client& c) { return AddToAllBytes(c, Rounds()); }},
                   Part{clients[1].get(), [](Client& c) { return OverwriteAllBytes(c, Rounds()); }},
                   Part{clients[2].get(), [](Client& c) { return ReadAllBytes(c, Rounds()); }}});
  });
}

// Given a client that writes a word and reads it back, beside another one whose CAS and masked CAS of the
// word fail. Expect that no WRITE is lost, on a fabric that does not say that failed CAS store back.
Task<Done> FailCas(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  constexpr uint64_t kNever = ~uint64_t{0};
  for (uint64_t i = 0; i < rounds; ++i) {
    co_await op.InOrder(Cas(At(0), kNever, 5));
    co_await op.InOrder(MaskedCas(At(0), kNever, kNever, 0xff00000000000000, 5, kNever));
  }
  co_return Done{};
}
Task<Done> WriteAndReadBack(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    co_await op.InOrder(WriteObject(At(0), i));
    const uint64_t found = co_await op.InOrder(Read<uint64_t>(At(0)));
    EXPECT_EQ(found, i);
  }
  co_return Done{};
}

const Cite kNothingStored("fabric/47", "no WRITE to its word is lost beside it");
TEST_P(FabricAtomicity, FailedCasStoreNothing_UnlessTheFabricSaysSo) {
  InManyWorlds({1024}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect()};
    if (clients[0]->stores_back_failed_cas()) return;
    world.PlayWell(
        std::array{Part{clients[0].get(), [](Client& c) { return FailCas(c, Rounds()); }},
                   Part{clients[1].get(), [](Client& c) { return FailCas(c, Rounds()); }},
                   Part{clients[2].get(), [](Client& c) { return WriteAndReadBack(c, Rounds()); }}});
  });
}

// ---- unreachable WRITEs

// Blocks that no client can reach until their number stands in the root. None is used twice, so a client that
// comes late still finds what it looks for.
constexpr uint64_t kBlockLines = 3;
constexpr uint64_t kMostBlocks = 300;
FarAddr BlockAt(uint64_t number) { return Line(8 + kBlockLines * number) + 5; }  // not aligned on purpose
using Block = std::array<uint64_t, 20>;

Task<Done> PublishBlocks(Client& client, uint64_t blocks) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= blocks; ++i) {
    Block block;
    block.fill(i * kEveryByte);
    if (i % 2 == 0) {
      co_await op.InOrder(Unreachable(WriteObject(BlockAt(i), block)), Cas(Line(0), i - 1, i));
    } else {
      co_await op.InOrder(Unreachable(WriteObject(BlockAt(i), block)));
      co_await op.InOrder(Cas(Line(0), i - 1, i));
    }
  }
  co_return Done{};
}
Task<Done> FollowBlocks(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto root = co_await op.InOrder(Read<uint64_t>(Line(0)));
    if (root == 0) continue;
    const auto block = co_await op.InOrder(Read<Block>(BlockAt(root)));
    for (uint64_t word : block) EXPECT_EQ(word, root * kEveryByte);
  }
  co_return Done{};
}

// Given a writer of unreachable blocks, each published by the verb or the trip that follows. Expect that a
// client that finds one published finds all of it, and that nothing beside it was changed.
const Cite kUnreachable("fabric/20",
                        "a client that finds the pointer that was written after it finds all of it");
TEST_P(FabricAtomicity, UnreachableWritesAreThereWhenPublished) {
  InManyWorlds({(8 + kBlockLines * (kMostBlocks + 1)) * kLineBytes}, [](World& world) {
    const uint64_t blocks = std::min(Rounds(), kMostBlocks);
    const auto writer = world.Connect();
    const auto reader = world.Connect();
    world.PlayWell(std::array{Part{writer.get(), [blocks](Client& c) { return PublishBlocks(c, blocks); }},
                              Part{reader.get(), [](Client& c) { return FollowBlocks(c, Rounds()); }}});
    const std::vector<std::byte> last =
        ReadBytes(*reader, Line(8 + kBlockLines * blocks), kBlockLines * kLineBytes);
    for (size_t at = 0; at < last.size(); ++at) {
      const bool inside = at >= 5 && at < 5 + sizeof(Block);
      ASSERT_TRUE(inside || last[at] == std::byte{0}) << at;
    }
  });
}

// ---- the window

constexpr uint64_t kBucketLines = 15;
// Line 0 is the lock; lines 1 to 15 hold the number of the update that wrote them.
using Bucket = std::array<std::array<uint64_t, 8>, 1 + kBucketLines>;
static_assert(sizeof(Bucket) == kWindowBytes);

Task<Done> LockedUpdates(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  const uint64_t me = Number(client.id());
  for (uint64_t i = 0; i < rounds;) {
    const auto [old, line] = co_await op.InOrder(Cas(Line(0), 0, me), Read<uint64_t>(Line(1)));
    if (old != 0) continue;
    ++i;
    std::array<std::array<uint64_t, 8>, kBucketLines> lines;
    for (auto& words : lines) words.fill(line + 1);
    co_await op.InOrder(WriteObject(Line(1), lines), Cas(Line(0), me, 0));
  }
  co_return Done{};
}
Task<Done> ReadBucket(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto bucket = co_await op.InOrder(Read<Bucket>(Line(0)));
    uint64_t lowest = bucket[1][0];
    uint64_t highest = bucket[1][0];
    for (size_t line = 1; line < bucket.size(); ++line) {
      lowest = std::min(lowest, bucket[line][0]);
      highest = std::max(highest, bucket[line][0]);
    }
    EXPECT_LE(highest, lowest + 1) << "lines of two updates in one READ";
  }
  co_return Done{};
}

// Given writers that lock, number all lines of a bucket, and unlock. Expect that a READ of the bucket finds
// at most two numbers, which follow each other.
const Cite kWindow("fabric/21", "no later trip of that client takes effect inside it");
TEST_P(FabricAtomicity, AtMostOneLockedUpdateFallsIntoAWindow) {
  InManyWorlds({4096}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect(), world.Connect()};
    world.PlayWell(std::array{Part{clients[0].get(), [](Client& c) { return LockedUpdates(c, Rounds()); }},
                              Part{clients[1].get(), [](Client& c) { return LockedUpdates(c, Rounds()); }},
                              Part{clients[2].get(), [](Client& c) { return ReadBucket(c, 3 * Rounds()); }},
                              Part{clients[3].get(), [](Client& c) { return ReadBucket(c, 3 * Rounds()); }}});
    EXPECT_EQ(ReadWord(*clients[0], Line(15)), 2 * Rounds());
  });
}

Task<Done> FirstThenLast(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    co_await op.InOrder(WriteObject(Line(0), i));
    co_await op.InOrder(Faa(Line(15), 1));
  }
  co_return Done{};
}
Task<Done> ReadFirstAndLast(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto bucket = co_await op.InOrder(Read<Bucket>(Line(0)));
    EXPECT_LE(bucket[15][0], bucket[0][0]);
    EXPECT_LE(bucket[0][0], bucket[15][0] + 1);
  }
  co_return Done{};
}

// Given a writer that raises the first line, then the last, in trips of their own. Expect that a READ of both
// never has two of these trips inside.
TEST_P(FabricAtomicity, AtMostOneTripOfAClientFallsIntoAWindow) {
  InManyWorlds({4096}, [](World& world) {
    const std::array clients = {world.Connect(), world.Connect(), world.Connect()};
    world.PlayWell(
        std::array{Part{clients[0].get(), [](Client& c) { return FirstThenLast(c, Rounds()); }},
                   Part{clients[1].get(), [](Client& c) { return ReadFirstAndLast(c, 2 * Rounds()); }},
                   Part{clients[2].get(), [](Client& c) { return ReadFirstAndLast(c, 2 * Rounds()); }}});
  });
}

// ---- the node's processor

constexpr CallId kRaise(1, 1);
constexpr uint64_t kStores = 6;
// Two words of one line, then words of other lines, back and forth.
FarAddr StoreAt(uint64_t i) {
  constexpr std::array<uint64_t, kStores> kWhere = {8, 0, 64 * 9, 64 * 2, 64 * 2 + 8, 64 * 7};
  return At(kWhere[i]);
}

void ServeRaise(CallTable& calls) {
  calls.Set(kRaise, [](NodeMemory& memory, ClientId, std::string_view) {
    const uint64_t next = memory.Load(StoreAt(0).offset) + 1;
    for (uint64_t i = 0; i < kStores; ++i) memory.Store(StoreAt(i).offset, next);
    return std::to_string(next);
  });
}

Task<Done> RaiseByCalls(Client& client, std::atomic<uint64_t>& announced, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < rounds; ++i) {
    const std::string reply = co_await op.Call(NodeId{0}, kRaise, "");
    const uint64_t next = std::stoull(reply);
    uint64_t before = announced.load();
    while (before < next && !announced.compare_exchange_weak(before, next)) continue;
  }
  co_return Done{};
}
// In the opposite order of the stores, one trip each; then line 0 at once.
Task<Done> ReadRaised(Client& client, std::atomic<uint64_t>& announced, uint64_t rounds) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t heard = announced.load();
    uint64_t last = heard;
    for (uint64_t store = kStores; store-- > 0;) {
      const auto word = co_await op.InOrder(Read<uint64_t>(StoreAt(store)));
      EXPECT_GE(word, last);
      last = word;
    }
    const auto line = co_await op.InOrder(Read<std::array<uint64_t, 8>>(Line(0)));
    EXPECT_GE(line[1], line[0]);
    EXPECT_LE(line[1], line[0] + 1);
  }
  co_return Done{};
}

// Given handlers that raise words one after the other. Expect that READs find the stores in program order,
// all of them when the Call has completed, and that no two handlers run at once.
const Cite kNode("fabric/22", "what one stores becomes visible to READs in program order");
TEST_P(FabricAtomicity, StoresOfTheNodeAppearInProgramOrder) {
  InManyWorlds({1024}, [](World& world) {
    ServeRaise(world.calls());
    std::atomic<uint64_t> announced = 0;
    const std::array clients = {world.Connect(), world.Connect(), world.Connect()};
    const uint64_t rounds = Rounds();
    world.PlayWell(
        std::array{Part{clients[0].get(), [&](Client& c) { return RaiseByCalls(c, announced, rounds); }},
                   Part{clients[1].get(), [&](Client& c) { return RaiseByCalls(c, announced, rounds); }},
                   Part{clients[2].get(), [&](Client& c) { return ReadRaised(c, announced, rounds); }}});
    for (uint64_t i = 0; i < kStores; ++i) EXPECT_EQ(ReadWord(*clients[0], StoreAt(i)), 2 * rounds);
  });
}

}  // namespace
}  // namespace farside::fabric::conformance
