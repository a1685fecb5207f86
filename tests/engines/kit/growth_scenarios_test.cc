// How tables grow without a stop (index/kit/growing_partition.h), rule by rule.
#include "tests/engines/kit/growth_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::growing {
namespace {

// Given a table that fills.
// When a sync shows that its load is reached.
// Expect that the next operation announces the next version, which counts after a grace.
TEST(KitGrowth, FullTableGrows) { EXPECT_EQ(FullTableGrows(), ""); }

// Given an operation that began before a version was announced.
// When other clients go on.
// Expect that the version counts only when the operation has ended.
TEST(KitGrowth, GrowthWaitsForOperationsInFlight) { EXPECT_EQ(GrowthWaitsForOperationsInFlight(), ""); }

// Given a client that reads the directory while another one announces a version.
// When the lines of the root are sampled at any moments.
// Expect that it finds every segment of the state that it takes.
TEST(KitGrowth, DirectoryIsReadWhileAResizeIsAnnounced) {
  EXPECT_EQ(DirectoryIsReadWhileAResizeIsAnnounced(64), "");
}

// Given a client that dies at any verb of a resize.
// When another one wants the table to grow.
// Expect that it does, and no memory is lost.
TEST(KitGrowth, PreparerDies) { EXPECT_EQ(PreparerDies(), ""); }

// Given an operation that has found no place for its key in a table of little load.
// When it asks for growth.
// Expect that the next operation of the client announces a version, once, whichever other client has asked.
TEST(KitGrowth, RequestedGrowth_HappensWhateverTheLoad) {
  EXPECT_EQ(RequestedGrowth_HappensWhateverTheLoad(), "");
}
TEST(KitGrowth, RequestedGrowth_OutlivesASync) { EXPECT_EQ(RequestedGrowth_OutlivesASync(), ""); }
TEST(KitGrowth, RequestedByTwo_TheTableGrowsOnce) { EXPECT_EQ(RequestedByTwo_TheTableGrowsOnce(), ""); }

// Given a table that cannot grow: at its most version, without memory, or for a client that may only read.
// When an operation asks for growth.
// Expect that it learns that, and may ask again when there is memory.
TEST(KitGrowth, RequestedGrowth_EndsAtTheMostVersion) {
  EXPECT_EQ(RequestedGrowth_EndsAtTheMostVersion(), "");
}
TEST(KitGrowth, RequestedWithoutMemory_IsCountedAndMayBeTriedAgain) {
  EXPECT_EQ(RequestedWithoutMemory_IsCountedAndMayBeTriedAgain(), "");
}
TEST(KitGrowth, RequestedByAReader_IsRefused) { EXPECT_EQ(RequestedByAReader_IsRefused(), ""); }

}  // namespace
}  // namespace farside::index::growing
