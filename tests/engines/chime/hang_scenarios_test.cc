// The chime table while a memory node hangs.
#include "tests/engines/chime/hang_scenarios.h"

#include <gtest/gtest.h>

#include <tuple>

namespace farside::index::chime {
namespace {

// How the node hangs, entries of a leaf, and whether the table is dropped.
class ChimeHang : public testing::TestWithParam<std::tuple<Hang, size_t, bool>> {};

INSTANTIATE_TEST_SUITE_P(All, ChimeHang,
                         testing::Combine(testing::Values(Hang::kRefused, Hang::kRequestLost,
                                                          Hang::kAnswerLost),
                                          testing::Values(size_t{1}, size_t{8}), testing::Bool()));

TEST_P(ChimeHang, InsertsFail_TheirMemoryIsFreeAgain) {
  // Given two memory nodes, one of which hangs: trips that change something there are not sent, or are lost,
  // or their answers are
  // When inserts fail, with and without splits, and the node answers again
  // Expect that nothing is leaked when the client has left, whether or not the table is dropped before
  const auto [hang, span, dropped] = GetParam();
  EXPECT_EQ(InsertsFail(hang, span, dropped), "");
}

}  // namespace
}  // namespace farside::index::chime
