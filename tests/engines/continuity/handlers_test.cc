// Requests and memory of any bytes: the handlers of the continuity table end with an error, or do what was
// asked, and never leave their region.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "index/continuity/request.h"
#include "index/continuity/slot.h"
#include "pool/region/layout.h"
#include "tests/engines/continuity/bare_table.h"
#include "tests/support/sanitized.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kBytes = 16 * 1024;
constexpr Shape kShape(2, 1, 2, 1, 2);
constexpr std::array kCalls = {kChangeCall, kGrowCall, kMoveCall};

// A table with small and long records, and a group.
struct Example {
  Example() : bytes(EmptyTable(kShape, kBytes)), memory(bytes), client(FirstFree(kShape)) {
    for (const char* key : {"a", "b", "c", "d"}) {
      EXPECT_TRUE(client.Make(memory, {.key = key, .value = key}).ok());
      EXPECT_TRUE(client.Make(memory, {.key = key, .value = std::string(50, *key)}).ok());
    }
  }
  Example(const Example& other) : bytes(other.bytes), memory(bytes), client(other.client) {}
  Example& operator=(const Example&) = delete;
  ChangeRequest Request(std::string_view key, std::string_view value) const {
    ChangeRequest request;
    request.head = {.root = kBareRoot,
                    .hash = Hash64(AsBytes(key)),
                    .key_bytes = static_cast<uint32_t>(key.size()),
                    .value_bytes = static_cast<uint32_t>(value.size())};
    request.key = key;
    request.value = value;
    return request;
  }
  // It ends with an error, and changes nothing.
  void Refuses(fabric::CallId call, std::string_view request, std::string_view what) {
    const std::vector<std::byte> before = bytes;
    EXPECT_FALSE(CallHandler(memory, call, request).ok()) << what;
    EXPECT_TRUE(std::ranges::equal(before, bytes)) << what;
  }

  std::vector<std::byte> bytes;
  PlainMemory memory;
  BareClient client;
};

TEST(ContinuityHandlers, RequestsThatAreCutShortOrTooLong) {
  // Given a table with records
  // When requests come that lack bytes, or have more than they say
  // Expect errors, and no change
  Example example;
  const std::string request = Encode(example.Request("e", "value"));
  for (size_t bytes = 0; bytes + 6 < request.size(); ++bytes)
    example.Refuses(kChangeCall, request.substr(0, bytes), "cut short to " + std::to_string(bytes));
  example.Refuses(kChangeCall, request + "x", "too long");
  const std::string grow = EncodeFixed(GrowRequest{.root = kBareRoot});
  const std::string move = EncodeFixed(MoveRequest{.root = kBareRoot});
  for (size_t bytes = 0; bytes < grow.size(); ++bytes)
    example.Refuses(kGrowCall, grow.substr(0, bytes), "grow");
  for (size_t bytes = 0; bytes < move.size(); ++bytes)
    example.Refuses(kMoveCall, move.substr(0, bytes), "move");
  example.Refuses(kGrowCall, grow + "x", "grow");
  example.Refuses(kMoveCall, move + "x", "move");
}

TEST(ContinuityHandlers, RootsThatAreNone) {
  // Given a table
  // When a request names a root that is not aligned, outside, zero, or where there is none
  // Expect an error of every handler, and no change
  Example example;
  for (const uint64_t root : {uint64_t{0}, kBareRoot + 8, kBareRoot + 64, uint64_t{128}, kBytes, kBytes - 8,
                              kBytes + 64, ~uint64_t{63}, ~uint64_t{0}}) {
    ChangeRequest change = example.Request("a", "value");
    change.head.root = root;
    example.Refuses(kChangeCall, Encode(change), "change");
    example.Refuses(kGrowCall, EncodeFixed(GrowRequest{root, example.client.free(), 1}), "grow");
    example.Refuses(kMoveCall, EncodeFixed(MoveRequest{root}), "move");
  }
}

TEST(ContinuityHandlers, BlocksThatCannotBe) {
  // Given a table
  // When a change brings a block that is not aligned, outside, too large or missing, operands that are no
  // block, or a kind that there is not
  // Expect errors, and no change
  Example example;
  const uint64_t free = example.client.free();
  for (const Memory block : {Memory{free + 8, 64}, Memory{kBytes, 64}, Memory{free, kBytes},
                             Memory{~uint64_t{63}, 128}, Memory{free, ~uint64_t{0}}}) {
    ChangeRequest change = example.Request("a", "");
    change.head.block = block;
    example.Refuses(kChangeCall, Encode(change), "block");
    change.head.kind = ChangeKind::kIncrement;
    example.Refuses(kChangeCall, Encode(change), "block of a counter");
    change = example.Request("a", "");
    change.head.operands = block;
    example.Refuses(kChangeCall, Encode(change), "operands");
  }
  example.Refuses(kChangeCall, Encode(example.Request("a", std::string(60, 'v'))), "no block");
  ChangeRequest change = example.Request("a", "v");
  change.head.kind = static_cast<ChangeKind>(7);
  example.Refuses(kChangeCall, Encode(change), "kind");
}

TEST(ContinuityHandlers, TablesThatCannotBe) {
  // Given a table
  // When a client wants it to grow into memory that is not aligned or outside, or more often than tables can
  // Expect errors, and no change; and of a table that it does not need now, a refusal without an error
  Example example;
  const uint64_t free = example.client.free();
  const Root root = BareView{.bytes = example.bytes}.root();
  const uint64_t next = root.current.doublings() + 1;
  for (const GrowRequest& grow :
       {GrowRequest{kBareRoot, free + 8, next}, GrowRequest{kBareRoot, 0, next},
        GrowRequest{kBareRoot, kBytes, next}, GrowRequest{kBareRoot, ~uint64_t{63}, next},
        GrowRequest{kBareRoot, free, 31}, GrowRequest{kBareRoot, free, 32}, GrowRequest{kBareRoot, free, 63},
        GrowRequest{kBareRoot, free, 64}, GrowRequest{kBareRoot, free, ~uint64_t{0}}})
    example.Refuses(kGrowCall, EncodeFixed(grow),
                    std::to_string(grow.table) + " " + std::to_string(grow.doublings));
  const std::vector<std::byte> before = example.bytes;
  const auto answer = CallHandler(example.memory, kGrowCall,
                                  EncodeFixed(GrowRequest{kBareRoot, free, root.current.doublings()}));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(DecodeReply(*answer)->linked_block);
  EXPECT_EQ(before, example.bytes);
}

// A good request of some kind, in which a few bytes are any.
std::string RequestByChance(const Example& example, Random& random, size_t call) {
  std::string request;
  if (call == 0) {
    ChangeRequest change = example.Request(random.Chance(1, 2) ? "a" : "e", "value");
    change.head.kind = static_cast<ChangeKind>(random.Below(8));
    if (random.Chance(1, 2)) change.head.block = {example.client.free() + 64 * random.Below(8), 64};
    if (random.Chance(1, 4)) change.head.group = example.client.free();
    if (random.Chance(1, 4)) change.head.operands = {64 * random.Below(256), 64 * random.Below(8)};
    request = Encode(change);
  } else if (call == 1) {
    request = EncodeFixed(GrowRequest{kBareRoot, example.client.free(), random.Below(4)});
  } else {
    request = EncodeFixed(MoveRequest{kBareRoot});
  }
  for (uint64_t changed = random.Below(4); changed > 0; --changed)
    request[random.Below(request.size())] = static_cast<char>(random.Next());
  return request;
}

TEST(ContinuityHandlers, RequestsByChance) {
  // Given a table
  // When 20,000 requests come in which some bytes are any
  // Expect that each ends, in an error or an answer, and that memory outside of the region is not touched
  const Example fresh;
  Random random(18);
  for (uint64_t i = 0; i < 20'000 / kFewer; ++i) {
    Example example(fresh);
    for (int calls = 0; calls < 2; ++calls) {
      const size_t call = random.Below(kCalls.size());
      static_cast<void>(CallHandler(example.memory, kCalls[call], RequestByChance(example, random, call)));
    }
  }
}

TEST(ContinuityHandlers, DamagedMemory) {
  // Given tables in which some words of the root, of the table or of its pairs are any
  // When requests come, good ones and others
  // Expect that each ends, and that memory outside of the region is not touched
  const Example fresh;
  Random random(19);
  for (uint64_t i = 0; i < 20'000 / kFewer; ++i) {
    Example example(fresh);
    const bool in_root = random.Chance(1, 3);
    const uint64_t words = in_root ? sizeof(Root) / 8 : (kBytes - kBareTable) / 8;
    for (uint64_t damaged = in_root ? 1 : 40; damaged > 0; --damaged) {
      const uint64_t at = (in_root ? kBareRoot : kBareTable) + 8 * random.Below(words);
      const uint64_t word = example.memory.Load(at);
      example.memory.Store(at, random.Chance(1, 2) ? random.Next() : word ^ uint64_t{1} << random.Below(64));
    }
    for (int calls = 0; calls < 3; ++calls) {
      const size_t call = random.Below(kCalls.size());
      static_cast<void>(CallHandler(example.memory, kCalls[call], RequestByChance(example, random, call)));
    }
  }
}

}  // namespace
}  // namespace farside::index::continuity
