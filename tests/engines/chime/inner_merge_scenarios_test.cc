// The chime table when inner nodes go: what clients find when another one is slow or dies.
#include "tests/engines/chime/inner_merge_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::chime {
namespace {

TEST(ChimeInnerMerges, ASplitterIsSlow_WhatItMadeIsNeitherLostNorThereTwice) {
  // Given a client that has split an inner node, and has not told the level above
  // When another client merges the new node, or the one behind it; at every step of the first client
  // Expect that the tree is whole
  EXPECT_EQ(SplitterIsSlow(/*the_new_one=*/true), "");
  EXPECT_EQ(SplitterIsSlow(/*the_new_one=*/false), "");
}

TEST(ChimeInnerMerges, FirstChildHasMoved_AClientThatDoesNotKnowMergesIt) {
  // Given a client that remembers a leaf as the first child of its parent
  // When another client merges the parent, and the first client empties the leaf
  // Expect that the leaf is merged, because now another leaf is before it
  for (const size_t nodes : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(FirstChildHasMoved(/*inline_keys=*/true, nodes), "");
    EXPECT_EQ(FirstChildHasMoved(/*inline_keys=*/false, nodes), "");
  }
}

TEST(ChimeInnerMerges, AScanComesToADeadParent_ItIsNotRemembered) {
  // Given a client that scans the leaves of an inner node, at every step
  // When the node goes, and its memory becomes that of another one
  // Expect that the client is not misled
  EXPECT_EQ(ScanComesToADeadParent(), "");
}

TEST(ChimeInnerMerges, BothHalvesBecomeEmpty_TheyKeepTheirParents) {
  // Given keys=inline, and keys of both halves. When all of them go. Expect that the halves stay apart.
  EXPECT_EQ(BothHalvesBecomeEmpty(), "");
}

}  // namespace
}  // namespace farside::index::chime
