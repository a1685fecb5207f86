// Requests and memory of any bytes: the handlers of the continuity table end with an error, or do what was
// asked, and never leave their region.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "index/continuity/request.h"
#include "index/continuity/slot.h"
#include "pool/memory/block.h"
#include "pool/region/layout.h"
#include "tests/engines/continuity/bare_table.h"
#include "tests/support/sanitized.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kBytes = 16 * 1024;
constexpr Shape kShape(2, 1, 2, 1, 2);
constexpr std::array kCalls = {kChangeCall, kGrowCall, kMoveCall, kSettleCall};

// A table with small and long records, and a group.
struct Example {
  explicit Example(Shape shape) : bytes(EmptyTable(shape, kBytes)), memory(bytes), client(FirstFree(shape)) {}
  Example() : Example(kShape) {
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
  for (size_t bytes = 0; bytes < request.size(); ++bytes)
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
  const std::string settle = EncodeFixed(SettleRequest{.root = kBareRoot});
  example.Refuses(kSettleCall, settle + "x", "settle");
  example.Refuses(kSettleCall, settle.substr(1), "settle");
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
    example.Refuses(kSettleCall, EncodeFixed(SettleRequest{.root = root}), "settle");
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
  change = example.Request("a", "v");
  std::string request = Encode(change);
  request[offsetof(ChangeHead, group_beyond_share)] = 2;
  example.Refuses(kChangeCall, request, "neither true nor false");
}

TEST(ContinuityHandlers, BlocksOfOtherRecords) {
  // Given a table
  // When a change brings a block of another key, of another hash or of another size, or nothing but bytes; or
  // names a hash that is not that of its key
  // Expect errors, and no change: such a record would stand where it is never found, and end no growth
  Example example;
  const uint64_t at = example.client.free();
  const std::string value(60, 'v');
  const auto bring = [&](std::string_view key, uint64_t hash, uint64_t bytes) {
    std::vector<std::byte> block(pool::BlockBytes(1, value.size()));
    pool::EncodeBlock(block, key, value, hash);
    std::ranges::copy(block, example.bytes.begin() + static_cast<ptrdiff_t>(at));
    ChangeRequest change = example.Request("e", "");
    change.head.block = {at, bytes};
    return change;
  };
  const uint64_t hash = Hash64(AsBytes("e"));
  example.Refuses(kChangeCall, Encode(bring("f", hash, 128)), "key");
  example.Refuses(kChangeCall, Encode(bring("e", hash + 1, 128)), "hash");
  example.Refuses(kChangeCall, Encode(bring("e", hash, 64)), "too small");
  example.Refuses(kChangeCall, Encode(bring("e", hash, 192)), "too large");
  ChangeRequest change = bring("e", hash, 128);
  change.head.block.offset = at + 256;
  example.Refuses(kChangeCall, Encode(change), "bytes");
  change = example.Request("e", "v");
  change.head.hash = Hash64(AsBytes("f"));
  example.Refuses(kChangeCall, Encode(change), "hash of another key");
  EXPECT_TRUE(CallHandler(example.memory, kChangeCall, Encode(bring("e", hash, 128))).ok());
  EXPECT_TRUE(BareView{.bytes = example.bytes}.Records().ok());
}

TEST(ContinuityHandlers, GroupsThatCannotBe) {
  // Given a table of one pair, in which a key needs a group
  // When its change brings a group that is not aligned or outside
  // Expect errors, and no change
  constexpr Shape kOnePair(1, 1, 1, 1, 1);
  Example example(kOnePair);
  std::vector<std::string> even;
  for (int i = 0; even.size() < 3; ++i) {
    const std::string key = "k" + std::to_string(i);
    if (!HomeOf(Hash64(AsBytes(key)), 1).odd) even.push_back(key);
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(example.client.Make(example.memory, {.key = even[i]}).ok());
  const uint64_t free = example.client.free();
  ChangeRequest change = example.Request(even[2], "v");
  for (const uint64_t group : {free + 8, kBytes, kBytes - 320, ~uint64_t{63}, ~uint64_t{0}}) {
    change.head.group = group;
    example.Refuses(kChangeCall, Encode(change), "group " + std::to_string(group));
  }
  change.head.group = free;
  EXPECT_TRUE(CallHandler(example.memory, kChangeCall, Encode(change)).ok());
  EXPECT_EQ(BareView{.bytes = example.bytes}.Records()->size(), 3u);
}

TEST(ContinuityHandlers, SlotsOfAGroupThatIsNot) {
  // Given a pair in which slots of a group count, of which the pointer to the group is gone, in a region
  // whose first bytes look like slots of its keys
  // When keys of the pair are changed, the table grows, or the pair is settled
  // Expect errors, and no change
  constexpr Shape kOnePair(1, 1, 1, 1, 1);
  for (const bool growing : {false, true}) {
    Example example(kOnePair);
    std::vector<std::string> even;
    for (int i = 0; even.size() < 4; ++i) {
      const std::string key = "k" + std::to_string(i);
      if (!HomeOf(Hash64(AsBytes(key)), 1).odd) even.push_back(key);
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(example.client.Make(example.memory, {.key = even[i]}).ok());
    if (growing) {
      const GrowRequest grow{.root = kBareRoot, .table = example.client.free(), .doublings = 1};
      EXPECT_TRUE(CallHandler(example.memory, kGrowCall, EncodeFixed(grow)).ok());
    }
    const uint64_t indicator = PairAt(kBareTable, 0) + kIndicatorAt;
    ASSERT_NE(Indicator(example.memory.Load(indicator)).bits() & kGroupBits, 0u);
    example.memory.Store(indicator, Indicator(example.memory.Load(indicator)).Begun().word());
    example.memory.Store(indicator + kGroupOffset, 0);
    const Slot slot = RecordSlot(even[2], "");
    for (size_t i = 0; i < slot.words.size(); ++i) example.memory.Store(i * 8, slot.words[i]);
    for (const std::string& key : even)
      example.Refuses(kChangeCall, Encode(example.Request(key, "v")), "change");
    if (growing) example.Refuses(kMoveCall, EncodeFixed(MoveRequest{kBareRoot}), "move");
    const SettleRequest settle{.root = kBareRoot, .table = TableWord(kBareTable, 0).word()};
    example.Refuses(kSettleCall, EncodeFixed(settle), "settle");
  }
}

TEST(ContinuityHandlers, BlocksThatSayTheyAreLonger) {
  // Given a record in a block, of which the header is damaged
  // When changes look at its value
  // Expect kCorrupt and no change, also where the region has as many bytes as the header says
  for (const uint32_t bytes : {uint32_t{128}, uint32_t{8000}, ~uint32_t{0}}) {
    Example example;
    const auto found = BareView{.bytes = example.bytes}.Find("a");
    const auto value = static_cast<uint64_t>((*found)->data() - AsText(example.bytes).data());
    const uint64_t block = value - 1 - sizeof(pool::BlockHeader);
    example.memory.Store(block, uint64_t{bytes} << 32 | 1);
    for (const ChangeKind kind : {ChangeKind::kCompareAndSet, ChangeKind::kIncrement}) {
      ChangeRequest change = example.Request("a", kind == ChangeKind::kIncrement ? "" : "v");
      change.head.kind = kind;
      example.Refuses(kChangeCall, Encode(change), "length " + std::to_string(bytes));
    }
  }
}

TEST(ContinuityHandlers, AShortBlockOfAnEqualHash_IsNotThatOfALongKey) {
  // Given a record in the last block of the region, with the hash of a longer key
  Example example;
  const auto found = BareView{.bytes = example.bytes}.Find("a");
  const auto value = static_cast<uint64_t>((*found)->data() - AsText(example.bytes).data());
  const uint64_t block = value - 1 - sizeof(pool::BlockHeader);
  const uint64_t last = kBytes - pool::BlockBytes(1, 50);
  std::copy_n(example.bytes.begin() + static_cast<ptrdiff_t>(block), kBytes - last,
              example.bytes.begin() + static_cast<ptrdiff_t>(last));
  const Root root = BareView{.bytes = example.bytes}.root();
  const uint64_t pairs = PairsOf(root.shape, root.current.doublings());
  const Home home = HomeOf(Hash64(AsBytes("a")), pairs);
  std::string longer(300, 'x');
  const auto stands_with_it = [&] {
    const Home other = HomeOf(Hash64(AsBytes(longer)), pairs);
    return other.pair == home.pair && other.odd == home.odd;
  };
  while (!stands_with_it()) ++longer.back();
  example.memory.Store(last + offsetof(pool::BlockHeader, hash), Hash64(AsBytes(longer)));
  for (uint64_t at = kBareTable; at < example.client.free(); at += 8) {
    if (example.memory.Load(at) != block) continue;
    example.memory.Store(at, last);
    example.memory.Store(at + 16, Hash64(AsBytes(longer)));
  }
  // When the longer key is changed. Expect that it is not there
  ChangeRequest change = example.Request(longer, "");
  change.head.kind = ChangeKind::kDelete;
  const auto answer = CallHandler(example.memory, kChangeCall, Encode(change));
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_FALSE(DecodeReply(*answer)->was_present);
}

TEST(ContinuityHandlers, RepliesThatCannotBe) {
  // Given a reply. When its size or one of its first bytes is another. Expect an error: a client would go on
  // with it for ever
  const std::string good = EncodeFixed(Reply{.needs = Needs::kEndOfGrowth, .was_present = true});
  ASSERT_TRUE(DecodeReply(good).ok());
  EXPECT_FALSE(DecodeReply(good.substr(1)).ok());
  EXPECT_FALSE(DecodeReply(good + "x").ok());
  for (size_t at = 0; at < 5; ++at) {
    for (const char byte : {'\4', '\xff'}) {
      std::string bad = good;
      bad[at] = byte;
      EXPECT_FALSE(DecodeReply(bad).ok()) << at;
    }
  }
}

// A table of which every pair has a group that its next table does not need.
struct Groups {
  static constexpr uint64_t kPairs = 40;
  static constexpr uint64_t kGroupBytesOfRegion = 128 * 1024;
  static constexpr Shape kOfGroups{kPairs, 1, 1, 1, 1};

  Groups() : bytes(EmptyTable(kOfGroups, kGroupBytesOfRegion)), memory(bytes), client(FirstFree(kOfGroups)) {
    std::array<std::vector<std::string>, kPairs> even;
    uint64_t full = 0;
    for (int i = 0; full < kPairs; ++i) {
      const std::string key = "k" + std::to_string(i);
      const Home home = HomeOf(Hash64(AsBytes(key)), kPairs);
      if (home.odd || even[home.pair].size() == 3) continue;
      even[home.pair].push_back(key);
      EXPECT_TRUE(client.Make(memory, {.key = key, .value = "v"}).ok());
      full += even[home.pair].size() == 3 ? 1 : 0;
    }
    for (const std::vector<std::string>& keys : even) {
      for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(client.Make(memory, {.kind = ChangeKind::kDelete, .key = keys[i]}).ok());
    }
    EXPECT_EQ(client.groups(), kPairs);
    const GrowRequest grow{.root = kBareRoot, .table = client.free(), .doublings = 1};
    EXPECT_TRUE(CallHandler(memory, kGrowCall, EncodeFixed(grow)).ok());
  }
  uint64_t GroupOf(uint64_t pair) const {
    return memory.Load(PairAt(kBareTable, pair) + kIndicatorAt + kGroupOffset);
  }

  std::vector<std::byte> bytes;
  PlainMemory memory;
  BareClient client;
};

TEST(ContinuityHandlers, EveryGroupThatIsNotNeededAnyMore_IsGivenBack) {
  // Given a table that grows, of which every pair has a group that is not needed in the next table
  Groups groups;
  std::set<std::pair<uint64_t, uint64_t>> expected;
  for (uint64_t pair = 0; pair < Groups::kPairs; ++pair) expected.emplace(groups.GroupOf(pair), kGroupBytes);
  expected.emplace(kBareTable, TableBytes(Groups::kPairs));
  // When Calls move its pairs until the growth has ended
  std::multiset<std::pair<uint64_t, uint64_t>> freed;
  while (BareView{.bytes = groups.bytes}.root().growing()) {
    const Result<Reply> moved = groups.client.Move(groups.memory);
    ASSERT_TRUE(moved.ok());
    for (const Memory& memory : moved->freed) {
      if (memory.bytes != 0) freed.emplace(memory.offset, memory.bytes);
    }
  }
  // Expect that their replies name each group and the old table, once
  EXPECT_TRUE(std::ranges::equal(freed, expected));
  EXPECT_EQ(BareView{.bytes = groups.bytes}.Records()->size(), Groups::kPairs);
}

TEST(ContinuityHandlers, WhatWasGivenBackBeforeADamagedPair_IsTold) {
  // Given a table that grows, whose third pair is damaged
  Groups groups;
  groups.memory.Store(groups.GroupOf(2), 0);
  // When a Call moves its pairs. Expect that it tells which groups are free, and that the next one says what
  // is wrong
  const Result<Reply> moved = groups.client.Move(groups.memory);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->freed[0].offset, groups.GroupOf(0));
  EXPECT_EQ(moved->freed[1].offset, groups.GroupOf(1));
  EXPECT_EQ(moved->freed[2].bytes, 0u);
  const Result<Reply> again = groups.client.Move(groups.memory);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), ErrorCode::kCorrupt);
}

TEST(ContinuityHandlers, PairsThatWereLeftOdd_AreSettled) {
  // Given a table that grows, and pairs of it and of the next table whose sequence is odd
  Groups groups;
  ASSERT_TRUE(groups.client.Move(groups.memory).ok());
  const Root root = BareView{.bytes = groups.bytes}.root();
  const auto settle = [&](TableWord table, uint64_t pair) {
    const SettleRequest request{.root = kBareRoot, .table = table.word(), .pair = pair};
    return CallHandler(groups.memory, kSettleCall, EncodeFixed(request)).ok();
  };
  for (const TableWord table : {root.current, root.next}) {
    const uint64_t at = PairAt(table.offset(), Groups::kPairs - 1) + kIndicatorAt;
    const Indicator left = Indicator(groups.memory.Load(at)).Begun();
    groups.memory.Store(at, left.word());
    const std::vector<std::byte> before = groups.bytes;
    // When a Call names another pair, or one of a table that there is not. Expect that nothing changes
    EXPECT_TRUE(settle(table, 0));
    EXPECT_TRUE(settle(table, 2 * Groups::kPairs));
    EXPECT_TRUE(settle(table, ~uint64_t{0}));
    EXPECT_TRUE(settle(TableWord(groups.client.free() + 64, table.doublings()), Groups::kPairs - 1));
    EXPECT_EQ(before, groups.bytes);
    // When it names the pair. Expect that its sequence is the next even one, and its bits are as they were
    EXPECT_TRUE(settle(table, Groups::kPairs - 1));
    EXPECT_EQ(Indicator(groups.memory.Load(at)), left.Ended());
    EXPECT_EQ(left.Ended().bits(), left.bits());
    EXPECT_TRUE(settle(table, Groups::kPairs - 1));
    EXPECT_EQ(Indicator(groups.memory.Load(at)), left.Ended());
  }
}

TEST(ContinuityHandlers, RootsOfTablesThatCannotBe) {
  // Given a table that grows
  // When its root says that more pairs were moved than it has, or that it has more pairs than a region has
  // bytes
  // Expect an error of every handler, and no change: an end of the growth would free records
  for (const bool too_many_moved : {true, false}) {
    Groups groups;
    if (too_many_moved) {
      groups.memory.Store(kBareRoot + kMovedOffset, Groups::kPairs + 1);
    } else {
      groups.memory.Store(kBareRoot + kShapeOffset, Shape(uint64_t{1} << 30, 1, 1, 1, 1).word());
      groups.memory.Store(kBareRoot + kCurrentOffset, TableWord(kBareTable, 30).word());
      groups.memory.Store(kBareRoot + kNextOffset, TableWord(groups.client.free(), 31).word());
    }
    const std::vector<std::byte> before = groups.bytes;
    EXPECT_FALSE(CallHandler(groups.memory, kMoveCall, EncodeFixed(MoveRequest{kBareRoot})).ok());
    EXPECT_FALSE(groups.client.Make(groups.memory, {.key = "k0", .value = "w"}).ok());
    EXPECT_EQ(before, groups.bytes);
  }
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
  } else if (call == 2) {
    request = EncodeFixed(MoveRequest{kBareRoot});
  } else {
    const Root root = BareView{.bytes = example.bytes}.root();
    request = EncodeFixed(SettleRequest{kBareRoot, root.current.word(), random.Below(8)});
  }
  for (uint64_t changed = random.Below(4); changed > 0; --changed)
    request[random.Below(request.size())] = static_cast<char>(random.Next());
  return request;
}

// Whether a request names no memory, or some that its client may give away.
bool NamesItsOwn(std::string_view request, size_t call, uint64_t free) {
  if (call == 1) return request.size() != sizeof(GrowRequest) || DecodeGrow(request)->table >= free;
  ChangeHead head;
  if (call >= 2 || request.size() < sizeof head) return true;
  std::memcpy(&head, request.data(), sizeof head);
  const bool apart = head.group == 0 || head.block.bytes == 0 || head.block.offset >= free + kGroupBytes;
  return apart && (head.group == 0 || head.group == free) &&
         (head.block.bytes == 0 || head.block.offset >= free);
}

BareModel RecordsBut(std::string_view key, const Example& example) {
  const auto records = BareView{.bytes = example.bytes}.Records();
  EXPECT_TRUE(records.ok()) << records.error().message();
  if (!records.ok()) return {};
  BareModel others(records->begin(), records->end());
  if (const auto found = others.find(key); found != others.end()) others.erase(found);
  return others;
}

TEST(ContinuityHandlers, RequestsByChance) {
  // Given a table
  // When 20,000 requests come in which some bytes are any
  // Expect that each ends, in an error or an answer, that memory outside of the region is not touched, and
  // that one that names no memory but its client's own changes no record of another key
  const Example fresh;
  Random random(18);
  uint64_t changes = 0;
  for (uint64_t i = 0; i < 20'000 / kFewer; ++i) {
    Example example(fresh);
    for (int calls = 0; calls < 2; ++calls) {
      const size_t call = random.Below(kCalls.size());
      const std::string request = RequestByChance(example, random, call);
      const bool answered = CallHandler(example.memory, kCalls[call], request).ok();
      if (calls != 0 || !NamesItsOwn(request, call, example.client.free())) continue;
      changes += answered && call == 0 ? 1 : 0;
      const std::string key(call == 0 && answered ? DecodeChange(request)->key : "");
      ASSERT_EQ(RecordsBut(key, example), RecordsBut(key, fresh)) << Escape(request);
    }
  }
  EXPECT_GE(changes, 500u / kFewer);
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
