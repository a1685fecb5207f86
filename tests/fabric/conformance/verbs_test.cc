// "Verbs" of docs/memory-model.md, for every backend.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
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

class FabricVerbs : public FabricTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FabricVerbs, testing::ValuesIn(AllBackends()), NameOf);

constexpr uint64_t kBytes = 512;

std::vector<std::byte> Pattern(Random& random, uint64_t bytes) {
  std::vector<std::byte> pattern(bytes);
  for (std::byte& byte : pattern) byte = static_cast<std::byte>(random.Below(256));
  return pattern;
}

// Given a region of random bytes. When ranges of all alignments are read, expect those bytes.
const Cite kRead("fabric/1", "copies bytes from any address, aligned or not");
TEST_P(FabricVerbs, ReadCopiesBytesOfAnyAlignment) {
  InManyWorlds({kBytes}, [](World& world) {
    Random random(7);
    const auto client = world.Connect();
    const std::vector<std::byte> pattern = Pattern(random, kBytes);
    WriteBytes(*client, At(0), pattern);
    for (uint64_t offset = 0; offset < 2 * kLineBytes; ++offset) {
      const uint64_t bytes = random.Below(kBytes - offset + 1);
      const std::vector<std::byte> read = ReadBytes(*client, At(offset), bytes);
      ASSERT_TRUE(std::equal(read.begin(), read.end(), pattern.begin() + static_cast<ptrdiff_t>(offset)))
          << bytes << " bytes at " << offset;
    }
  });
}

// Given a region and a copy of it. When ranges of all alignments and sizes are written to both, expect that
// they stay equal in every byte.
const Cite kWrite("fabric/2", "changes exactly its bytes, at any alignment, and none beside them");
TEST_P(FabricVerbs, WriteChangesExactlyItsBytes) {
  InManyWorlds({kBytes}, [](World& world) {
    Random random(8);
    const auto client = world.Connect();
    std::vector<std::byte> copy = Pattern(random, kBytes);
    WriteBytes(*client, At(0), copy);
    for (uint64_t offset = 0; offset < kLineBytes + 8; ++offset) {
      const uint64_t bytes = random.Chance(1, 2) ? random.Below(20) : random.Below(kBytes - offset + 1);
      const std::vector<std::byte> written = Pattern(random, bytes);
      WriteBytes(*client, At(offset), written);
      std::copy(written.begin(), written.end(), copy.begin() + static_cast<ptrdiff_t>(offset));
      ASSERT_EQ(ReadBytes(*client, At(0), kBytes), copy) << bytes << " bytes at " << offset;
    }
  });
}

// Writes ever new bytes to a range that is its own, and finds them there after each trip.
Task<Done> WriteOwnRange(Client& client, FarAddr at, size_t bytes, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  std::vector<std::byte> written(bytes);
  std::vector<std::byte> read(bytes);
  for (uint64_t i = 1; i <= rounds; ++i) {
    std::fill(written.begin(), written.end(), static_cast<std::byte>(i));
    co_await op.InOrder(Write(at, written));
    co_await op.InOrder(Read(at, read));
    EXPECT_EQ(read, written);
  }
  co_return Done{};
}

// Given four clients whose ranges meet inside words and inside a line. When all write at once, expect that no
// client loses a byte.
const Cite kWriteBeside("fabric/2", "also while other clients write the bytes beside them");
TEST_P(FabricVerbs, WriteLeavesTheBytesOfOthersAlone) {
  InManyWorlds({kBytes}, [](World& world) {
    const std::array<uint64_t, 5> ends = {3, 10, 61, 67, 140};
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Part> parts;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      clients.push_back(world.Connect());
      parts.push_back({clients.back().get(), [&ends, i](Client& client) {
                         return WriteOwnRange(client, At(ends[i]), ends[i + 1] - ends[i], Rounds());
                       }});
    }
    world.PlayWell(parts);
  });
}

Task<Done> CasTwice(Client& client) {
  Op op(client, OpKind::kUpdate);
  const uint64_t failed = co_await op.InOrder(Cas(At(8), 5, 6));
  EXPECT_EQ(failed, 4u);
  const uint64_t unchanged = co_await op.InOrder(Read<uint64_t>(At(8)));
  EXPECT_EQ(unchanged, 4u);
  const uint64_t done = co_await op.InOrder(Cas(At(8), 4, 6));
  EXPECT_EQ(done, 4u);
  const uint64_t changed = co_await op.InOrder(Read<uint64_t>(At(8)));
  EXPECT_EQ(changed, 6u);
  co_return Done{};
}

// Given a word 4. When a CAS expects 5 and then one expects 4, expect that only the second changes it, and
// that both return 4.
const Cite kCas("fabric/3", "returns the word as it was before in either case");
TEST_P(FabricVerbs, CasComparesSwapsAndReturnsTheOldWord) {
  InManyWorlds({kBytes}, [](World& world) {
    const auto client = world.Connect();
    WriteWord(*client, At(8), 4);
    world.PlayWell(std::array{Part{client.get(), CasTwice}});
    EXPECT_EQ(ReadWord(*client, At(0)), 0u);
    EXPECT_EQ(ReadWord(*client, At(16)), 0u);
  });
}

Task<Done> MaskedCasMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  uint64_t word = random.Next();
  co_await op.InOrder(WriteObject(At(8), word));
  for (int i = 0; i < 50; ++i) {
    const uint64_t compare_mask = random.Next() & random.Next();
    const uint64_t swap_mask = random.Next();
    const uint64_t desired = random.Next();
    const uint64_t hint = random.Next();
    // Right under the mask half of the time, and always wrong beside it.
    const uint64_t expect = random.Chance(1, 2) ? word ^ ~compare_mask : random.Next();
    const uint64_t old =
        co_await op.InOrder(MaskedCas(At(8), hint, expect, compare_mask, desired, swap_mask));
    EXPECT_EQ(old, word);
    if (((word ^ expect) & compare_mask) == 0) word = (word & ~swap_mask) | (desired & swap_mask);
    const uint64_t read = co_await op.InOrder(Read<uint64_t>(At(8)));
    EXPECT_EQ(read, word);
  }
  co_return Done{};
}

// Given random words, masks and wrong hints. Expect what the masks say.
const Cite kMaskedCas("fabric/4", "returns the whole old word, whatever the hint was");
TEST_P(FabricVerbs, MaskedCasComparesAndSwapsOnlyTheMaskedBits) {
  InManyWorlds({kBytes}, [](World& world) {
    const auto client = world.Connect();
    world.PlayWell(std::array{Part{client.get(), [](Client& c) { return MaskedCasMany(c, 9); }}});
  });
}

Task<Done> AddAround(Client& client) {
  Op op(client, OpKind::kUpdate);
  const uint64_t first = co_await op.InOrder(Faa(At(8), std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(first, 0u);
  const uint64_t second = co_await op.InOrder(Faa(At(8), 3));
  EXPECT_EQ(second, std::numeric_limits<uint64_t>::max());
  const uint64_t third = co_await op.InOrder(Read<uint64_t>(At(8)));
  EXPECT_EQ(third, 2u);
  co_return Done{};
}

// Given a word 0. When 2^64 - 1 and 3 are added, expect 2, and no carry into the next word.
const Cite kFaa("fabric/5", "modulo 2^64 and returns the word as it was before");
TEST_P(FabricVerbs, FaaWrapsAround) {
  InManyWorlds({kBytes}, [](World& world) {
    const auto client = world.Connect();
    world.PlayWell(std::array{Part{client.get(), AddAround}});
    EXPECT_EQ(ReadWord(*client, At(16)), 0u);
  });
}

Task<Done> NothingAt(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Write(at, {}));
  co_await op.InOrder(Read(at, std::span<std::byte>()));
  co_return Done{};
}

// Given READs and WRITEs of no bytes, also at the end of the region. Expect that they succeed.
const Cite kNothing("fabric/8", "of no bytes succeeds and changes nothing");
TEST_P(FabricVerbs, ReadsAndWritesOfNothingSucceed) {
  InManyWorlds({kBytes}, [](World& world) {
    const auto client = world.Connect();
    for (uint64_t offset : {uint64_t{0}, uint64_t{1}, kLineBytes, kBytes}) {
      world.PlayWell(
          std::array{Part{client.get(), [offset](Client& c) { return NothingAt(c, At(offset)); }}});
    }
    EXPECT_EQ(ReadBytes(*client, At(0), kBytes), std::vector<std::byte>(kBytes));
  });
}

// A good WRITE and, in the same trip, a verb that cannot be.
enum class Bad { kReadOutside, kWriteOutside, kAtomicOutside, kHuge, kNoNode, kUnalignedCas, kUnalignedFaa };
constexpr std::array kAllBad = {Bad::kReadOutside, Bad::kWriteOutside, Bad::kAtomicOutside, Bad::kHuge,
                                Bad::kNoNode,      Bad::kUnalignedCas, Bad::kUnalignedFaa};

Task<Done> PostBad(Client& client, Bad bad, std::optional<ErrorCode>& error) {
  Op op(client, OpKind::kUpdate);
  const uint64_t seven = 7;
  std::array<std::byte, 16> buffer{};
  Batch batch(op, Order::kTogether);
  batch.Add(WriteObject(At(0), seven));
  switch (bad) {
    case Bad::kReadOutside: batch.Add(Read(At(kBytes - 15), buffer)); break;
    case Bad::kWriteOutside: batch.Add(Write(At(kBytes - 15), buffer)); break;
    case Bad::kAtomicOutside: batch.Add(Faa(At(kBytes), 1)); break;
    case Bad::kHuge: batch.Add(Read(At(std::numeric_limits<uint64_t>::max() - 7), buffer)); break;
    case Bad::kNoNode: batch.Add(WriteObject(At(0, 1), seven)); break;
    case Bad::kUnalignedCas: batch.Add(Cas(At(12), 0, 1)); break;
    case Bad::kUnalignedFaa: batch.Add(Faa(At(1), 1)); break;
  }
  batch.Add(WriteObject(At(8), seven));
  co_await batch;
  error.reset();
  co_return Done{};
}

// Given trips with one impossible verb among good ones. Expect `kCorrupt`, that the good ones did not happen
// either, and that the client works afterwards.
const Cite kBounds("fabric/9",
                   "fails with `kCorrupt`; none of its verbs takes effect, and the client stays usable");
TEST_P(FabricVerbs, ImpossibleAddressesAreRefusedAsAWhole) {
  InManyWorlds({kBytes}, [](World& world) {
    const auto client = world.Connect();
    for (const Bad bad : kAllBad) {
      SCOPED_TRACE(static_cast<int>(bad));
      std::optional<ErrorCode> error;
      const auto results =
          world.Play(std::array{Part{client.get(), [&](Client& c) { return PostBad(c, bad, error); }}});
      ASSERT_FALSE(results[0].ok());
      EXPECT_EQ(results[0].error().code(), ErrorCode::kCorrupt);
      ASSERT_EQ(ReadBytes(*client, At(0), kBytes), std::vector<std::byte>(kBytes));
    }
    {
      Op op(*client, OpKind::kUpdate);
      op.Detach(Order::kInOrder, Faa(At(1), 1));  // no client hears of it
    }
    WriteWord(*client, At(0), 1);
    EXPECT_EQ(ReadWord(*client, At(0)), 1u);
  });
}

Task<Done> SixtyFour(Client& client, Order order) {
  Op op(client, OpKind::kUpdate);
  Batch batch(op, order);
  for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) batch.Add(Faa(At(8 * i), i + 1));
  co_await batch;
  for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) EXPECT_EQ(batch.Old(i), 0u);

  std::array<uint64_t, kMaxVerbsPerTrip> words{};
  Batch reads(op, order);
  for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) {
    reads.Add(Read(At(8 * i), std::as_writable_bytes(std::span(&words[i], 1))));
  }
  co_await reads;
  for (uint64_t i = 0; i < kMaxVerbsPerTrip; ++i) EXPECT_EQ(words[i], i + 1);
  co_return Done{};
}

// Given trips of 64 verbs. Expect 64 effects and 64 answers.
const Cite kSixtyFour("fabric/10", "up to 64 verbs, and every one of them takes effect and is answered");
TEST_P(FabricVerbs, TripsOfSixtyFourVerbs) {
  for (const Order order : {Order::kInOrder, Order::kTogether}) {
    InManyWorlds({kBytes}, [order](World& world) {
      const auto client = world.Connect();
      world.PlayWell(std::array{Part{client.get(), [order](Client& c) { return SixtyFour(c, order); }}});
    });
  }
}

// ---- Call --------------------------------------------------------------------------------------------

constexpr CallId kEcho(1, 1);
constexpr CallId kRefuse(1, 2);
constexpr CallId kUnanswered(1, 3);

Task<Done> CallEach(Client& client) {
  Op op(client, OpKind::kMaintenance);
  const std::string binary("a request\0with a zero", 21);
  const std::string reply = co_await op.Call(NodeId{0}, kEcho, binary);
  EXPECT_EQ(reply, std::to_string(Number(client.id())) + binary);
  const std::string empty = co_await op.Call(NodeId{0}, kEcho, "");
  EXPECT_EQ(empty, std::to_string(Number(client.id())));

  const auto refused = co_await op.Call(NodeId{0}, kRefuse, "").Outcome();
  EXPECT_TRUE(!refused.ok() && refused.error().code() == ErrorCode::kAlreadyExists);
  const auto unknown = co_await op.Call(NodeId{0}, kUnanswered, "").Outcome();
  EXPECT_TRUE(!unknown.ok() && unknown.error().code() == ErrorCode::kUnsupported);
  const auto no_node = co_await op.Call(NodeId{1}, kEcho, "").Outcome();
  EXPECT_TRUE(!no_node.ok() && no_node.error().code() == ErrorCode::kCorrupt);

  const std::string after = co_await op.Call(NodeId{0}, kEcho, "again");
  EXPECT_EQ(after, std::to_string(Number(client.id())) + "again");
  co_return Done{};
}

// Given a node that echoes, one operation that it refuses and one that it does not know. Expect the reply,
// the error of the handler, and `kUnsupported`; the client works after each. Expect that each Call ran its
// handler once.
const Cite kCall("fabric/6", "runs a handler of the node once and returns its reply or its error");
const Cite kUnknownCall("fabric/7", "fails with `kUnsupported`, and the client stays usable");
TEST_P(FabricVerbs, CallReturnsWhatTheHandlerSays) {
  InManyWorlds({kBytes}, [](World& world) {
    uint64_t runs = 0;  // handlers of one node run one at a time
    world.calls().Set(kEcho, [&runs](NodeMemory&, ClientId caller, std::string_view request) {
      ++runs;
      return std::to_string(Number(caller)) + std::string(request);
    });
    world.calls().Set(kRefuse, [&runs](NodeMemory&, ClientId, std::string_view) -> Result<std::string> {
      ++runs;
      return Error(ErrorCode::kAlreadyExists, "there is one");
    });
    const auto first = world.Connect();
    const auto second = world.Connect();
    world.PlayWell(std::array{Part{first.get(), CallEach}, Part{second.get(), CallEach}});
    EXPECT_EQ(runs, 8u);
  });
}

}  // namespace
}  // namespace farside::fabric::conformance
