// The two halves of the keys, with keys=inline: nothing is merged, taken or mistaken across the middle
// (chime/11).
#include <gtest/gtest.h>

#include <functional>

#include "tests/engines/chime/middle_scenarios.h"

namespace farside::index::chime {
namespace {

TEST(ChimeMiddle, KeysOfBothHalvesComeAndGo_EachIsFoundByAllWays) {
  // Given keys around the middle and at both ends, and for each another one that differs in the top bit only
  // When they are inserted, updated and deleted, in several orders, in leaves and parents of several sizes
  // Expect that searches, scans, first and last records and cursors find what a map has, and that fsck finds
  // nothing
  EXPECT_EQ(KeysOfBothHalves({}), "");
  EXPECT_EQ(KeysOfBothHalves({{"span", "1"}, {"fanout", "2"}}), "");
  EXPECT_EQ(KeysOfBothHalves({{"span", "1"}, {"fanout", "16"}}), "");
  EXPECT_EQ(KeysOfBothHalves({{"span", "1"}, {"fanout", "16"}}, /*nodes=*/2), "");
  EXPECT_EQ(KeysOfBothHalves({{"span", "4"}, {"neighbourhood", "2"}, {"fanout", "4"}}), "");
  EXPECT_EQ(KeysOfBothHalves({{"span", "2"}, {"fanout", "3"}, {"cache", "0"}, {"hotspot", "0"}}), "");
  EXPECT_EQ(
      KeysOfBothHalves({{"span", "2"}, {"fanout", "3"}, {"leaf_read", "whole"}, {"fence_read", "always"}}),
      "");
}

TEST(ChimeMiddle, ClientDiesWhileParentsAreSplit_NoKeyIsTakenForItsTwin) {
  // Given keys of both halves whose leaves fill their parents
  // When a client inserts one more and dies, anywhere, so that pivots are missing
  // Expect that others find each key with its own value, and can go on
  EXPECT_EQ(ParentsAreSplitByTheDead(/*fanout=*/2), "");
  EXPECT_EQ(ParentsAreSplitByTheDead(/*fanout=*/4), "");
}

TEST(ChimeMiddle, TwinsWithHashesThatAreAlike_AreDifferentKeys) {
  EXPECT_EQ(TwinsWithHashesThatAreAlike(), "");
}

TEST(ChimeMiddle, EmptyTable_HasTwoLeavesAndAParentForEach) {
  // Given an empty table with keys=inline. Expect a leaf for each half, a parent for each, and the root; all
  // of it counted.
  World world;
  Member member(world, {{"keys", "inline"}});
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(DetailOf(stats, "leaves"), 2);
  EXPECT_EQ(DetailOf(stats, "inner nodes"), 3);
  EXPECT_EQ(stats.index_bytes, 64u + 5 * 1088);
  EXPECT_EQ(stats.index_bytes, (*MakeChimeEngine({{"keys", "inline"}}))->empty_bytes());
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

// A table whose leaves of both halves have a key each, to be damaged.
class ChimeMiddleDamaged : public testing::Test {
 protected:
  ChimeMiddleDamaged()
      : member_(world_, {{"keys", "inline"}, {"hotspot", "0"}}),
        memory_(world_.fabric.memory(fabric::NodeId{0})) {
    member_.Now(member_.Put(KeyOfNumber(7), "of lower"));
    member_.Now(member_.Put(KeyOfNumber(9 | kMiddle), "of upper"));
    EXPECT_EQ(world_.problem, "");
  }
  // Changes the header of that node of a level which has this half.
  void Damage(uint32_t level, Half half, const std::function<void(Header&)>& change) {
    for (const NodePtr node :
         NodesOf(memory_, Shape{.inline_keys = true}, member_.roots().front().offset, level)) {
      Header header = HeaderOf(std::span(BytesOf(memory_, node), sizeof(Header)));
      if (HalfOf(header) != half) continue;
      change(header);
      // Otherwise a client that remembers the leaf does not READ the header.
      if (node.is_leaf()) header.lock = NodeLock(header.lock).Raised().word();
      std::memcpy(BytesOf(memory_, node), &header, sizeof(header));
      return;
    }
    ADD_FAILURE() << "there is no such node";
  }
  template <class T>
  void ExpectCorrupt(Task<T> task, std::string_view because) {
    const Result<T> result = member_.Try(std::move(task));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
    EXPECT_NE(result.error().message().find(because), std::string::npos) << result.error().message();
  }

  World world_;
  Member member_;
  std::span<std::byte> memory_;
};

TEST_F(ChimeMiddleDamaged, ALeafAcrossTheMiddle_IsFoundByFsck) {
  // Given a leaf that begins below the middle. When it ends behind it, or nowhere. Expect that it is
  // reported.
  Damage(0, Half::kLower, [](Header& header) { header.fence_prefix = kMiddle + 1; });
  ExpectCorrupt(member_.Verify(), "has keys of both halves");
  Damage(0, Half::kUpper, [](Header& header) {
    header.fence_ref = BoundRef::Beyond().word();
    header.sibling = 0;
  });
  ExpectCorrupt(member_.Verify(), "has keys of both halves");
}

TEST_F(ChimeMiddleDamaged, ALeafWithoutItsFence_InventsNoKeys) {
  // Given a leaf of the lower half. When its header says that there is no fence, but names a sibling. Expect
  // that scans and cursors say that it is damaged, instead of taking its keys for those of the other half.
  Damage(0, Half::kLower, [](Header& header) { header.fence_ref = BoundRef::Beyond().word(); });
  ExpectCorrupt(member_.Scan(KeyRange::All(), 10), "ends in the wrong place");
  Cursor cursor;
  ExpectCorrupt(member_.Page(cursor), "ends in the wrong place");
}

TEST_F(ChimeMiddleDamaged, AnEntryThatIsNotUsedAndNotZero_IsFoundByFsck) {
  // Given an entry of the lower half. When the bit is cleared that says that it is used. Expect that it is
  // reported.
  for (const NodePtr leaf : NodesOf(memory_, Shape{.inline_keys = true}, member_.roots().front().offset, 0)) {
    for (size_t slot = 0; slot < kMostSpan; ++slot) {
      std::byte* const entry = BytesOf(memory_, leaf) + SlotOffset(slot);
      StoreU64(entry, LoadU64(entry) & ~kMiddle);
    }
  }
  ExpectCorrupt(member_.Verify(), "has bytes where no entry is");
}

TEST_F(ChimeMiddleDamaged, AParentAcrossTheMiddle_IsFoundByFsck) {
  // Given the parent of leaves below the middle. When it ends behind it. Expect that it is reported.
  Damage(1, Half::kLower, [](Header& header) { header.fence_prefix = kMiddle + 1; });
  ExpectCorrupt(member_.Verify(), "has leaves of both halves");
}

TEST_F(ChimeMiddleDamaged, ALeafThatSaysTheOtherHalf_IsNotTakenForItsOwn) {
  // Given a leaf of the upper half whose header says that it is of the lower one. When keys are looked for
  // that are not there, or changed, or read with the header. Expect errors, and no value of another key.
  Damage(0, Half::kUpper, [](Header& header) {
    header.fence_prefix = kMiddle;
    header.fence_ref = BoundRef::Short(kPrefixBytes).word();
  });
  ExpectCorrupt(member_.Get(KeyOfNumber(7 | kMiddle)), "other half");
  ExpectCorrupt(member_.Put(KeyOfNumber(9 | kMiddle), "replaced"), "other half");
  ExpectCorrupt(member_.Delete(KeyOfNumber(9 | kMiddle)), "other half");
  Member careful(world_, {{"keys", "inline"}, {"fence_read", "always"}});
  EXPECT_EQ(careful.Try(careful.Get(KeyOfNumber(9 | kMiddle))).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(member_.Now(member_.Get(KeyOfNumber(7))), "of lower");
  EXPECT_EQ(member_.Now(member_.Get(KeyOfNumber(9))), "absent");
}

}  // namespace
}  // namespace farside::index::chime
