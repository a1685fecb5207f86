// The bytes of the root of a growing table (index/kit/growth_layout.h).
#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "index/kit/growing_root.h"
#include "tests/engines/kit/growing_table.h"

namespace farside::index::growing {
namespace {

TEST(KitGrowthLayout, StateWords) {
  const pool::Owner owner(3, 5);
  EXPECT_EQ(StateWord::Steady(1).word(), 0x4u);
  EXPECT_EQ(StateWord::Announced(9, 3).word(), 0x326u);
  EXPECT_EQ(StateWord::Announced(9, 3).steps(), 3u);
  EXPECT_EQ(StateWord::Preparing(2, owner).word(), uint64_t{owner.bits()} << 32 | 0x9);
  EXPECT_EQ(StateWord::Preparing(2, owner).owner(), owner);
}

TEST(KitGrowthLayout, ProgressRisesFromStateToState) {
  // Preparing is no progress: the owner may give up.
  EXPECT_EQ(StateWord::Preparing(2, pool::Owner(3, 5)).Progress(), StateWord::Steady(2).Progress());
  EXPECT_LT(StateWord::Steady(2).Progress(), StateWord::Announced(2, 3).Progress());
  EXPECT_LT(StateWord::Announced(2, 3).Progress(), StateWord::Steady(5).Progress());
}

TEST(KitGrowthLayout, GoldenBytesOfARoot) {
  // Given a table without records
  // When one record is reported and the next version is announced
  // Expect exactly these bytes, before and after
  TableWorld world;
  Member member(world);
  const fabric::FarAddr at = member.roots()[0];
  const auto dump = [&](size_t bytes) { return HexDump(world.memory().subspan(at.offset, bytes)); };
  // Steady, version 1; no records; one segment.
  EXPECT_EQ(dump(96),
            "00000000  04 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  00 24 01 00 00 00 00 00  00 00 00 00 00 00 00 00  |.$..............|\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  member.Now(member.Put("k", "v"));
  member.Now(member.Sync());
  member.Now(member.RequestAndLook());
  ASSERT_EQ(world.problem, "");
  // Announced, version 1, one step; one record; two segments.
  EXPECT_EQ(dump(96),
            "00000000  06 01 00 00 00 00 00 00  01 00 00 00 00 00 00 00  |................|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  00 24 01 00 00 00 00 00  00 f0 3f 00 00 00 00 00  |.$........?.....|\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  // The rest of the directory is zero.
  for (const std::byte byte : world.memory().subspan(at.offset + 80, sizeof(Root) - 80))
    EXPECT_EQ(byte, std::byte{0});
}

TEST(KitGrowthLayout, PlacesInARootHaveNames) {
  const fabric::FarAddr root(fabric::NodeId{1}, 0x1000);
  const auto name = [&](uint64_t inside) { return DescribeGrowingRoot(root + inside, {&root, 1}); };
  EXPECT_EQ(name(0), "root state");
  EXPECT_EQ(name(8), "root records");
  EXPECT_EQ(name(16), "root");
  EXPECT_EQ(name(64), "root segment 0");
  EXPECT_EQ(name(376), "root segment 39");
  EXPECT_EQ(name(384), "");
  EXPECT_EQ(DescribeGrowingRoot(fabric::FarAddr(fabric::NodeId{0}, 0x1000), {&root, 1}), "");
}

}  // namespace
}  // namespace farside::index::growing
