// Leaves whose header a client does not READ.
#include "tests/engines/chime/count_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::chime {
namespace {

// Given a client that remembers the fence of a leaf, with the count of its lock.
// When the leaf is split, merged, or taken over from a client that died while it split it.
// Expect that what the client changes then is where others look for it.
TEST(ChimeCounts, RememberedLeafIsSplit) { EXPECT_EQ(RememberedLeafIsSplit(), ""); }
TEST(ChimeCounts, RememberedLeafDies) { EXPECT_EQ(RememberedLeafDies(), ""); }
TEST(ChimeCounts, RememberedLeafIsTakenOver) { EXPECT_EQ(RememberedLeafIsTakenOver(), ""); }

}  // namespace
}  // namespace farside::index::chime
