#include "pool/region/node_identity.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace farside::pool {
namespace {

constexpr RegionId kIdA{1, 2};
constexpr RegionId kIdB{3, 4};
constexpr RegionId kIdC{5, 6};

// Three nodes as they are when the pool is made.
std::vector<FoundNode> Claimed() {
  const uint64_t tag = TagOf(kIdA);
  return {{"a", true, kIdA, NodeIdentity(tag, 3, 0)},
          {"b", true, kIdB, NodeIdentity(tag, 3, 1)},
          {"c", true, kIdC, NodeIdentity(tag, 3, 2)}};
}
std::string ErrorOf(const std::vector<FoundNode>& nodes) {
  const Status fits = CheckIdentities(nodes);
  return fits.ok() ? "" : fits.error().ToString();
}

TEST(NodeIdentities, OfOnePoolInItsOrder_Fit) {
  EXPECT_EQ(ErrorOf(Claimed()), "");
  std::vector<FoundNode> fresh = Claimed();
  for (FoundNode& node : fresh) node.identity = NodeIdentity();
  EXPECT_EQ(ErrorOf(fresh), "");
  // The client that made the pool died before it was done: the first node is always the last to get its word.
  fresh[2].identity = Claimed()[2].identity;
  EXPECT_EQ(ErrorOf(fresh), "");
}

TEST(NodeIdentities, APartOfAPool_IsNotTakenForTheWhole) {
  const std::vector<FoundNode> all = Claimed();
  EXPECT_EQ(ErrorOf({all[1]}),
            "kInvalidArgument: b is node 1 of a pool of 3 nodes, but 1 is named; name all of them, in the "
            "order in which "
            "the pool was made");
  EXPECT_NE(ErrorOf({all[0]}), "");
  EXPECT_NE(ErrorOf({all[0], all[1]}), "");
}

TEST(NodeIdentities, ANodeThatWasUsedAlone_DoesNotBecomeAPart) {
  // Given a pool of one node. When it is named with others. Expect a line in proper English.
  std::vector<FoundNode> nodes = Claimed();
  nodes[0].identity = NodeIdentity(TagOf(kIdA), 1, 0);
  EXPECT_EQ(ErrorOf(nodes),
            "kInvalidArgument: a is a pool by itself, and cannot be one of 3 nodes; name it alone, or start "
            "it with new memory");
  EXPECT_EQ(ErrorOf({nodes[0]}), "");
}

TEST(NodeIdentities, DurableOnesAndOthers_AreNoPool) {
  std::vector<FoundNode> nodes = Claimed();
  for (FoundNode& node : nodes) node.durable = true;
  EXPECT_EQ(ErrorOf(nodes), "");
  nodes[1].durable = false;
  EXPECT_EQ(ErrorOf(nodes),
            "kInvalidArgument: b is not durable, and a is; serve all nodes of a pool with --pmem, or none");
  // Of a node that is out of reach, nothing is known; its pool was made of nodes that fit.
  nodes[1].reached = false;
  EXPECT_EQ(ErrorOf(nodes), "");
}

TEST(NodeIdentities, AnotherOrder_IsRefused) {
  const std::vector<FoundNode> all = Claimed();
  EXPECT_EQ(ErrorOf({all[0], all[2], all[1]}),
            "kInvalidArgument: c is node 2 of its pool, but was named as node 1; name the nodes in the order "
            "in which the "
            "pool was made");
  EXPECT_NE(ErrorOf({all[1], all[0], all[2]}), "");
}

TEST(NodeIdentities, ANodeWithNewMemory_IsNotTakenForTheOldOne) {
  std::vector<FoundNode> nodes = Claimed();
  nodes[1] = {"b", true, {9, 9}, NodeIdentity()};
  EXPECT_EQ(ErrorOf(nodes),
            "kUnavailable: b has new memory: what the pool had on it is lost; make a new pool, or start the "
            "node with its "
            "file");
  nodes = Claimed();
  nodes[0] = {"a", true, {9, 9}, NodeIdentity()};
  EXPECT_NE(ErrorOf(nodes), "");
}

TEST(NodeIdentities, NodesOfTwoPools_AreRefused) {
  std::vector<FoundNode> nodes = Claimed();
  nodes[1].identity = NodeIdentity(TagOf(kIdC), 3, 1);
  EXPECT_EQ(ErrorOf(nodes),
            "kInvalidArgument: b belongs to another pool than a, or that node has new memory");
}

TEST(NodeIdentities, ANodeThatIsDown_DoesNotHinderThoseThatFit) {
  for (size_t down = 0; down < 3; ++down) {
    std::vector<FoundNode> nodes = Claimed();
    nodes[down] = {nodes[down].name, false, {}, NodeIdentity()};
    EXPECT_EQ(ErrorOf(nodes), "") << down;
  }
  // But a pool is made by a client that reaches all of it.
  std::vector<FoundNode> fresh = Claimed();
  for (FoundNode& node : fresh) node.identity = NodeIdentity();
  fresh[2].reached = false;
  EXPECT_NE(ErrorOf(fresh), "");
}

}  // namespace
}  // namespace farside::pool
