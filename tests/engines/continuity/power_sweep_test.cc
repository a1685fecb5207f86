// Power cuts at every moment of changes of a continuity table: nothing acknowledged is lost, nothing is torn
// or there twice, and no memory is leaked, used twice, or used after it was given back.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/engines/continuity/sweep.h"
#include "tests/support/sanitized.h"

namespace farside::index::continuity {
namespace {

// More than four million states in all.
constexpr uint64_t kStatesOfAllScripts = 60'000;
constexpr uint64_t kStatesOfATest = 800'000;
constexpr uint64_t kSeedsOfATest = 50;
constexpr size_t kChanges = 24;

TEST(ContinuityPowerSweep, EveryKindOfStep) {
  // Given scripts of inserts, updates and deletes of records in slots and in blocks, counters, comparisons,
  // groups, and growth through several doublings
  // When the power fails at any moment, and any subset of what was not durable survives, up to 1024 states
  // Expect every acknowledged change exactly once, and the one that was under way or not; no memory that is
  // used twice, or that was given back; most of these moments without samples
  uint64_t states = 0;
  uint64_t groups = 0;
  uint64_t tables = 0;
  for (const SweepScript& script : PowerScripts()) {
    const SweepReport report = Sweep(script, {.most_states = 1024, .samples = 256});
    EXPECT_EQ(report.problem, "");
    EXPECT_GT(report.counts.points, 2 * script.changes.size());
    EXPECT_GE(report.counts.complete, report.counts.points * 3 / 4) << script.name;
    RecordProperty("states of " + script.name, std::to_string(report.counts.states));
    RecordProperty("points of " + script.name, std::to_string(report.counts.points));
    RecordProperty("complete of " + script.name, std::to_string(report.counts.complete));
    states += report.counts.states;
    groups += report.groups;
    tables += report.tables;
  }
  RecordProperty("states", std::to_string(states));
  EXPECT_GE(states, kStatesOfAllScripts);
  EXPECT_GE(groups, 1u);
  EXPECT_GE(tables, 3u);
}

class ContinuityPowerSweepByChance : public testing::TestWithParam<uint64_t> {};

TEST_P(ContinuityPowerSweepByChance, AnyChangesOfAFewKeys) {
  // Given changes by chance, in tables of few slots that grow and get groups all the time
  // When the power fails at any moment
  // Expect every acknowledged change exactly once, and the one that was under way or not
  uint64_t states = 0;
  uint64_t groups = 0;
  uint64_t tables = 0;
  const uint64_t first = 1 + GetParam() * kSeedsOfATest;
  for (uint64_t seed = first; seed < first + kSeedsOfATest / kFewer; ++seed) {
    const SweepScript script = ScriptByChance(seed, kChanges);
    const SweepReport report = Sweep(script, {.most_states = 1024, .samples = 64}, seed);
    ASSERT_EQ(report.problem, "");
    states += report.counts.states;
    groups += report.groups;
    tables += report.tables;
  }
  RecordProperty("states", std::to_string(states));
  // A few seeds may have a tenth less than their share of all.
  EXPECT_GE(states, kFewer == 1 ? kStatesOfATest : kStatesOfATest / kFewer * 9 / 10);
  EXPECT_GE(groups, 10u / kFewer);
  EXPECT_GE(tables, 50u / kFewer);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ContinuityPowerSweepByChance, testing::Range<uint64_t>(0, 5));

}  // namespace
}  // namespace farside::index::continuity
