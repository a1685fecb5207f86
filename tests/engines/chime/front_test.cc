// The front of a chime tree as a client remembers it, of nodes with any bytes.
#include "index/chime/front.h"

#include <gtest/gtest.h>

#include <vector>

#include "fabric/run.h"
#include "index/chime/bound_texts.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/options.h"
#include "tests/engines/chime/world.h"

namespace farside::index::chime {
namespace {

TEST(ChimeFront, NodesThatNameOneChildAgainAndAgain_AreFollowedOnce) {
  // Given inner nodes of three levels, each of which names the one below in all of its pivots
  // When a client remembers the front
  // Expect no more leaves than the nodes have pivots, and the first one first
  const OptionMap options = {{"keys", "inline"}};
  World world;
  Member member(world, options);
  const TableContext table(*Options::Parse(options), member.pool(), member.roots());
  BoundTexts bounds(table);
  InnerNodes inner_nodes(table, bounds);
  Front front(table, inner_nodes);
  const auto node = [](uint32_t level) { return NodePtr::To(0, 8192 + 4096 * level, level); };
  constexpr uint32_t kLevels = 3;
  std::vector<Front::Read> reads;
  for (uint32_t level = kLevels; level > 0; --level) {
    Front::Read read{.at = node(level)};
    read.again.info = NodeInfo::Of(level).word();
    read.again.fence_ref = BoundRef::Beyond().word();
    read.image.header = read.again;
    for (size_t slot = 0; slot < table.shape().fanout; ++slot)
      read.image.Set(table.shape(), slot,
                     {.prefix = slot, .ref = BoundRef::Short(8), .child = node(level - 1)});
    reads.push_back(read);
  }
  fabric::Op op(member.client(), fabric::OpKind::kScan);
  ASSERT_TRUE(fabric::Run(member.client(), front.Remember(op, node(kLevels), reads)).ok());
  ASSERT_FALSE(inner_nodes.first_leaves().empty());
  EXPECT_EQ(inner_nodes.first_leaves().front(), node(0));
  EXPECT_LE(inner_nodes.first_leaves().size(), kLevels * table.shape().fanout);
}

}  // namespace
}  // namespace farside::index::chime
