// Damaged memory in which siblings lead in circles: every client that follows them comes to an end, and says
// so.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "index/chime/circle.h"
#include "index/chime/key.h"
#include "tests/engines/chime/world.h"

namespace farside::index::chime {
namespace {

TEST(ChimeCircle, AWayThatEnds_DoesNotClose) {
  // Given nodes that are all different. Expect no circle.
  Circle circle;
  for (uint64_t line = 1; line < 1000; ++line) EXPECT_FALSE(circle.Closes(NodePtr(line)));
}

TEST(ChimeCircle, AWayThatComesBack_ClosesWithinAFewRounds) {
  // Given a way that goes round and round behind its first nodes, some of them or none. Expect that it is
  // told.
  for (uint64_t before = 0; before < 20; ++before) {
    for (uint64_t round = 1; round < 20; ++round) {
      Circle circle;
      uint64_t steps = 0;
      const auto at = [&] {
        return NodePtr(1 + (steps < before ? steps : before + (steps - before) % round));
      };
      while (!circle.Closes(at())) ASSERT_LT(++steps, 4 * (before + round) + 4);
      EXPECT_GE(steps, before + round) << "nothing has come back yet";
    }
  }
}

// A leaf for each of some keys, under one parent. The last leaf goes on at the first.
class ChimeInCircles : public testing::Test {
 protected:
  ChimeInCircles() : member_(world_, {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "16"}}) {
    for (const char letter : std::string("abcdefgh"))
      member_.Now(member_.Put(std::string(1, letter), "value"));
    member_.Now(member_.Delete("h"));
    const Shape shape{.span = 1, .neighbourhood = 1, .fanout = 16, .inline_keys = false};
    const std::span<std::byte> memory = world_.memory();
    std::vector<NodePtr> leaves = NodesOf(memory, shape, member_.roots().front().offset, 0);
    const auto header_of = [&](NodePtr leaf) {
      return HeaderOf(std::span(BytesOf(memory, leaf), sizeof(Header)));
    };
    // The first is the one that no node names.
    NodePtr first;
    NodePtr last;
    for (const NodePtr leaf : leaves) {
      bool named = false;
      for (const NodePtr other : leaves) named |= NodePtr(header_of(other).sibling) == leaf;
      if (!named) first = leaf;
      if (header_of(leaf).sibling == 0) last = leaf;
    }
    Header header = header_of(last);
    header.sibling = first.word();
    header.fence_prefix = PrefixOf("z");
    header.fence_ref = BoundRef::Short(1).word();
    std::memcpy(BytesOf(memory, last), &header, sizeof(header));
  }
  template <class T>
  void ExpectCorrupt(Task<T> task) {
    const Result<T> result = member_.Try(std::move(task));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt) << result.error().message();
  }

  World world_;
  Member member_;
};

TEST_F(ChimeInCircles, WalkOfEverything_ComesToAnEnd) {
  // Given leaves in a circle. When the table is verified, walked, or counted. Expect that it is told.
  ExpectCorrupt(member_.Verify());
  ExpectCorrupt(member_.Stats());
  pool::Reached reached;
  ExpectCorrupt(member_.Walk(reached));
}

TEST_F(ChimeInCircles, Scan_ComesToAnEnd) {
  // Given leaves in a circle. When a client asks for more records than there are, or for the last one. Expect
  // that it is told.
  ExpectCorrupt(member_.Scan(KeyRange::All(), 1000));
  ExpectCorrupt(member_.Last(KeyRange::All()));
}

// A leaf for each key, and inner nodes of two: keys that come in order make a tree that is as high as a tree
// may be.
TEST(ChimeHeight, KeysThatComeInOrder_AreFoundBeyondTheHighestLevel) {
  World world;
  Member member(world, {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "2"}});
  const auto key = [](int i) { return fmt::format("k{:03}", i); };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(member.Try(member.Put(key(i), "value")).ok()) << key(i);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(member.Now(member.Get(key(i))), "value");
  Member other(world, {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "2"}});
  EXPECT_EQ(other.Now(other.Get(key(99))), "value");
  EXPECT_EQ(other.Now(other.Scan(KeyRange::All(), 1000)).size(), 100u);
  EXPECT_TRUE(other.Try(other.Verify()).ok());
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::chime
