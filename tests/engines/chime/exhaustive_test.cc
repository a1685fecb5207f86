// The real chime table on a real pool, in leaves of one or two keys: all interleavings of a few operations.
#include <gtest/gtest.h>

#include <chrono>

#include "check/exhaustive/explorer.h"
#include "check/exhaustive/index_program.h"
#include "index/chime/chime.h"

namespace farside::check {
namespace {

using index::chime::ChimeEngine;
using index::chime::Options;
using std::chrono::microseconds;

// Clients take each other for dead as soon as they have seen the same pulse twice.
const pool::ClientOptions kImpatient{.lease = {.lease = microseconds(1)}};

ChimeEngine Small(size_t span) {
  Options options;
  options.shape.span = span;
  options.shape.neighbourhood = span;
  options.shape.fanout = 2;
  options.backoff = microseconds(1);
  return ChimeEngine(options);
}

Scenario OneLeaf(ChimeEngine& engine) {
  Scenario scenario;
  scenario.region_bytes = 24 * pool::kPage;
  scenario.set_up = Format(engine, kImpatient);
  scenario.prepare_in_turn = true;
  return scenario;
}

constexpr CallsOptions kAlone{.must_succeed = true};

class ExhaustiveChimeLocks : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(FailedCas, ExhaustiveChimeLocks, testing::Bool(), [](const auto& stores_back) {
  return stores_back.param ? "StoreBack" : "StoreNothing";
});

TEST_P(ExhaustiveChimeLocks, WriterMayDie_ReaderAndSuccessorAreNotMisled) {
  // Given a writer of one key that may die, or lose a completion, a reader beside it, and another writer when
  // both have ended; locks are released by CAS or by WRITE
  ChimeEngine engine = Small(1);
  Scenario scenario = OneLeaf(engine);
  scenario.freedoms.store_back_failed_cas = GetParam();
  scenario.participants = {
      {.program = Calls(engine, kImpatient, {Call::Put("k", "1"), Call::Delete("k")}),
       .may_die = true,
       .may_lose_completion = true},
      {.program = Calls(engine, kImpatient, {Call::Get("k"), Call::Get("k")})},
      {.program = Calls(engine, kImpatient, {Call::Put("k", "2"), Call::Get("k")}, kAlone), .phase = 1},
      {.program = Verify(engine, kImpatient), .phase = 2}};
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong, and that the successor is not stuck behind the dead
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
  RecordProperty("states", std::to_string(found.states));
}

TEST_P(ExhaustiveChimeLocks, TwoWritersOfOneLeaf_NoReleaseIsLost) {
  // Given two clients that change two keys of one leaf, one of which may die, and another one when both have
  // ended; locks are released by CAS or by WRITE
  ChimeEngine engine = Small(2);
  Scenario scenario = OneLeaf(engine);
  scenario.freedoms.store_back_failed_cas = GetParam();
  scenario.participants = {
      {.program = Calls(engine, kImpatient, {Call::Put("k", "1")}), .may_die = true},
      {.program = Calls(engine, kImpatient, {Call::Put("n", "2")})},
      {.program = Calls(engine, kImpatient, {Call::Put("k", "3"), Call::Get("n")}, kAlone), .phase = 1},
      {.program = Verify(engine, kImpatient), .phase = 2}};
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
  RecordProperty("states", std::to_string(found.states));
}

TEST(ExhaustiveChime, TwoWritersAndTornReads_AreLinearizable) {
  // Given two clients that use conditional operations on one key, on a fabric that reads line by line
  ChimeEngine engine = Small(2);
  Scenario scenario = OneLeaf(engine);
  scenario.freedoms.tear_reads = true;
  scenario.participants = {
      {.program = Calls(engine, kImpatient, {Call::Insert("k", "1")})},
      {.program = Calls(engine, kImpatient, {Call::Update("k", "3"), Call::Get("k")})},
      {.program = Calls(engine, kImpatient, {Call::Increment("n"), Call::Get("k")}, kAlone), .phase = 1}};
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
  RecordProperty("states", std::to_string(found.states));
}

}  // namespace
}  // namespace farside::check
