// What becomes of a full table when there is no memory for a larger one.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/continuity.h"
#include "index/continuity/layout.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kPairs = 8;

// The n-th key of the even bucket of a pair.
std::string KeyIn(uint64_t pair, int number) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("{}", i);
    const Home home = HomeOf(Hash64(AsBytes(key)), kPairs);
    if (home.pair == pair && !home.odd && number-- == 0) return key;
  }
}

TEST(ContinuityOutOfMemory, APairGetsAGroupInAnyCase_AndIsFullThen) {
  // Given a table of which one pair may have a group, and has one, and a pool without room for a larger table
  TableWorld world({.region_bytes = 1 << 20});
  TableMember member(world, "continuity", MakeContinuityEngine,
                     {{"pairs", std::to_string(kPairs)}, {"group_every", "1000000"}});
  Root root{};
  std::memcpy(&root, world.memory().data() + member.roots()[0].offset, sizeof root);
  const auto group_of = [&](uint64_t pair) {
    return LoadU64(world.memory().data() + PairAt(root.current.offset(), pair) + kIndicatorAt + kGroupOffset);
  };
  int in_first = 0;
  for (; group_of(0) == 0; ++in_first) member.Now(member.Put(KeyIn(0, in_first), "v"));
  std::vector<std::string> fillers;
  for (size_t bytes = 64 * 1024; bytes >= 64;) {
    std::string key = fmt::format("filler{}", fillers.size());
    const Result<bool> put = member.Try(member.Insert(key, std::string(bytes, 'f')));
    if (put.ok()) {
      fillers.push_back(std::move(key));
      continue;
    }
    ASSERT_EQ(put.error().code(), ErrorCode::kOutOfMemory) << put.error().message();
    bytes /= 2;
  }
  ASSERT_EQ(group_of(1), 0u);
  // When another pair is filled with records that need no memory
  int in_second = 0;
  Result<bool> put = true;
  for (; in_second < 100; ++in_second) {
    put = member.Try(member.Insert(KeyIn(1, in_second), "v"));
    if (!put.ok()) break;
  }
  // Expect that it gets a group, too, and that the put behind its last slot ends with kOutOfMemory
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(group_of(1), 0u);
  EXPECT_GT(in_second, static_cast<int>(kGroupSlots));
  // Expect that all records are there
  for (int i = 0; i < in_first; ++i) EXPECT_EQ(member.Now(member.Get(KeyIn(0, i))), "v");
  for (int i = 0; i < in_second; ++i) EXPECT_EQ(member.Now(member.Get(KeyIn(1, i))), "v");
  for (const std::string& key : fillers) EXPECT_EQ(member.Now(member.Get(key)).front(), 'f');
  // When a record of the pair is deleted. Expect room for another
  member.Now(member.Delete(KeyIn(1, 0)));
  EXPECT_TRUE(member.Now(member.Insert(KeyIn(1, in_second), "v")));
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::continuity
