// Placement: every client computes the same node, shares are even, and few keys move when a node is added.
#include "pool/catalog/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "pool/catalog/catalog.h"

namespace farside::pool {
namespace {

using fabric::NodeId;

std::vector<NodeId> Nodes(uint16_t count) {
  std::vector<NodeId> nodes;
  for (uint16_t i = 0; i < count; ++i) nodes.push_back(static_cast<NodeId>(i));
  return nodes;
}

TEST(Placement, OneNodeTakesEverything) {
  for (uint64_t key = 0; key < 100; ++key) EXPECT_EQ(PickNode(key, Nodes(1)), 0u);
}

TEST(Placement, SharesAreEven) {
  // Given 5 nodes and keys with any hashes, also bad ones.
  // Expect each node to get its share within a few percent.
  for (const bool hashed : {true, false}) {
    std::vector<int> share(5, 0);
    for (uint64_t key = 0; key < 50'000; ++key) {
      const uint64_t hash = hashed ? Hash64(std::as_bytes(std::span(&key, 1))) : key;
      ++share[PickNode(hash, Nodes(5))];
    }
    for (int keys : share) EXPECT_NEAR(keys, 10'000, 500);
  }
}

TEST(Placement, OrderOfTheNodesDoesNotMatter) {
  std::vector<NodeId> nodes = Nodes(6);
  std::vector<NodeId> reversed(nodes.rbegin(), nodes.rend());
  for (uint64_t key = 0; key < 1000; ++key) {
    EXPECT_EQ(nodes[PickNode(key, nodes)], reversed[PickNode(key, reversed)]);
  }
}

TEST(Placement, AddingANodeMovesOnlyWhatItWins) {
  // Given 4 nodes, and then a fifth.
  // Expect that whatever moves, moves to the fifth, and that it is about a fifth of all.
  const std::vector<NodeId> four = Nodes(4);
  const std::vector<NodeId> five = Nodes(5);
  int moved = 0;
  for (uint64_t key = 0; key < 20'000; ++key) {
    const NodeId before = four[PickNode(key, four)];
    const NodeId after = five[PickNode(key, five)];
    if (before == after) continue;
    EXPECT_EQ(after, NodeId{4});
    ++moved;
  }
  EXPECT_NEAR(moved, 4000, 400);
}

TEST(Placement, GoldenPlaces) {
  // Clients of other builds must compute the same.
  std::vector<size_t> places;
  for (uint64_t key = 1; key <= 12; ++key) places.push_back(PickNode(key * 0x9e3779b97f4a7c15, Nodes(4)));
  EXPECT_EQ(places, (std::vector<size_t>{1, 1, 2, 0, 0, 2, 1, 1, 0, 1, 0, 3}));
}

TEST(Placement, HomesOfTablesAreSpread) {
  std::vector<int> share(3, 0);
  for (int i = 0; i < 3000; ++i) ++share[Index(HomeOf("table " + std::to_string(i), 3))];
  for (int tables : share) EXPECT_NEAR(tables, 1000, 150);
  EXPECT_EQ(HomeOf("users", 1), NodeId{0});
}

}  // namespace
}  // namespace farside::pool
