// The real sephash table on a real pool, with rounds of two entries: all interleavings of a few operations.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "check/exhaustive/explorer.h"
#include "check/exhaustive/index_program.h"
#include "tests/engines/sephash/world.h"

namespace farside::index::sephash {
namespace {

using check::Call;
using check::Conclusion;
using check::Exploration;
using check::Explore;
using check::Scenario;
using std::chrono::microseconds;

const pool::ClientOptions kImpatient{.lease = {.lease = microseconds(1)}};
constexpr check::CallsOptions kAlone{.must_succeed = true};

SephashEngine Small(uint32_t main, uint32_t entries = 2) {
  Options options;
  options.shape.entries = entries;
  options.shape.main = main;
  options.shape.depth_bits = 1;
  options.backoff = microseconds(1);
  return SephashEngine(options);
}

Scenario OneSegment(SephashEngine& engine) {
  Scenario scenario;
  scenario.region_bytes = 40 * pool::kPage;
  scenario.set_up = check::Format(engine, kImpatient);
  scenario.prepare_in_turn = true;
  return scenario;
}

void ExpectNothing(const Scenario& scenario) {
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
  testing::Test::RecordProperty("states", std::to_string(found.states));
  testing::Test::RecordProperty("histories", std::to_string(found.histories));
}

TEST(ExhaustiveSephash, TwoInsertAKeyAndAThirdReads_AllInterleavingsAreLinearizable) {
  // Given an empty table, and two clients that insert one key, of which one may die or lose a completion, and
  // a reader beside them
  // When all interleavings are explored
  // Expect that nothing is wrong, that a successor goes on, and that the table is whole
  SephashEngine engine = Small(64);
  Scenario scenario = OneSegment(engine);
  scenario.participants = {
      {.program = check::Calls(engine, kImpatient, {Call::Insert("k", "1")}),
       .may_die = true,
       .may_lose_completion = true},
      {.program = check::Calls(engine, kImpatient, {Call::Insert("k", "2")})},
      {.program = check::Calls(engine, kImpatient, {Call::Get("k")})},
      {.program = check::Calls(engine, kImpatient, {Call::Put("k", "3"), Call::Get("k")}, kAlone),
       .phase = 1},
      {.program = check::Verify(engine, kImpatient), .phase = 2}};
  ExpectNothing(scenario);
}

TEST(ExhaustiveSephash, RoundIsFilledAndMerged_ReaderAndWriterMeetIt) {
  // Given a round with one entry. When a client that may die fills and merges it, another inserts the key,
  // and a third reads it. Expect the same.
  SephashEngine engine = Small(64);
  Scenario scenario = OneSegment(engine);
  scenario.participants = {
      {.program = check::Calls(engine, kImpatient, {Call::Put("o", "0")}, kAlone)},
      {.program = check::Calls(engine, kImpatient, {Call::Put("k", "1")}), .may_die = true, .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Insert("k", "2")}), .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Get("k")}), .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Get("k"), Call::Delete("k")}, kAlone), .phase = 2},
      {.program = check::Verify(engine, kImpatient), .phase = 3}};
  ExpectNothing(scenario);
}

class ExhaustiveSephashReads : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Order, ExhaustiveSephashReads, testing::Values(true, false),
                         [](const auto& order) { return order.param ? "Kept" : "Free"; });

TEST_P(ExhaustiveSephashReads, SearchesMeetAMerge_NoneIsMisled) {
  // Given a fabric that orders READs, or does not, and says so. When a client deletes the key, which fills
  // the round, and puts it again, while another reads it three times and remembers MainSegments. Expect the
  // same.
  SephashEngine engine = Small(64);
  Scenario scenario = OneSegment(engine);
  scenario.freedoms.ordered_reads = GetParam();
  scenario.freedoms.promise_ordered_reads = GetParam();
  scenario.participants = {
      {.program = check::Calls(engine, kImpatient,
                               {Call::Put("k", "0"), Call::Put("o", "0"), Call::Put("o", "1")}, kAlone)},
      {.program =
           check::Calls(engine, kImpatient, {Call::Delete("k"), Call::Put("k", "1"), Call::Put("o", "2")}),
       .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Get("k"), Call::Get("k"), Call::Get("k")}),
       .phase = 1},
      {.program = check::Verify(engine, kImpatient), .phase = 2}};
  ExpectNothing(scenario);
}

TEST_P(ExhaustiveSephashReads, ThreeChangeAKeyByWhatItHolds_AllInterleavingsAreLinearizable) {
  // Given the same, and a round with room for two. When three clients change one key by what it holds: a
  // compare-and-set, an update, and a delete; of a client that may die, on the first of the two. Expect the
  // same.
  SephashEngine engine = Small(64, 3);
  Scenario scenario = OneSegment(engine);
  scenario.freedoms.ordered_reads = GetParam();
  scenario.freedoms.promise_ordered_reads = GetParam();
  scenario.participants = {
      {.program = check::Calls(engine, kImpatient, {Call::Put("k", "0")}, kAlone)},
      {.program = check::Calls(engine, kImpatient, {Call::CompareAndSet("k", "0", "1")}), .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Update("k", "2")}), .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Delete("k")}), .may_die = GetParam(), .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Get("k"), Call::Increment("n")}, kAlone),
       .phase = 2},
      {.program = check::Verify(engine, kImpatient), .phase = 3}};
  ExpectNothing(scenario);
}

TEST_P(ExhaustiveSephashReads, TwoChangeAKeyAndOneMerges_AllInterleavingsAreLinearizable) {
  // Given the same, and a round that the first change fills. When two clients change one key by what it
  // holds: a compare-and-set, and a delete of a client that may die. Expect the same.
  SephashEngine engine = Small(64);
  Scenario scenario = OneSegment(engine);
  scenario.freedoms.ordered_reads = GetParam();
  scenario.freedoms.promise_ordered_reads = GetParam();
  scenario.participants = {
      {.program = check::Calls(engine, kImpatient, {Call::Put("k", "0")}, kAlone)},
      {.program = check::Calls(engine, kImpatient, {Call::CompareAndSet("k", "0", "1")}), .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Delete("k")}), .may_die = true, .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Get("k"), Call::Increment("n")}, kAlone),
       .phase = 2},
      {.program = check::Verify(engine, kImpatient), .phase = 3}};
  ExpectNothing(scenario);
}

TEST(ExhaustiveSephash, SegmentIsSplit_AClientThatKnowsTheOldOnePutsAndReads) {
  // Given a segment that the next put splits, by a client that may die. When another client puts a key that
  // moves. Expect the same, and that a successor finds every key.
  const std::string stays = KeyOf(0, 1, 0);
  const std::string stays_too = KeyOf(0, 1, 1);
  const std::string moves = KeyOf(1, 1, 0);
  const std::string moves_too = KeyOf(1, 1, 1);
  SephashEngine engine = Small(1);
  Scenario scenario = OneSegment(engine);
  scenario.participants = {
      {.program =
           check::Calls(engine, kImpatient,
                        {Call::Put(stays, "0"), Call::Put(moves, "0"), Call::Put(stays_too, "0")}, kAlone)},
      {.program = check::Calls(engine, kImpatient, {Call::Put(moves_too, "1")}), .may_die = true, .phase = 1},
      {.program = check::Calls(engine, kImpatient, {Call::Put(moves, "2")}), .phase = 1},
      {.program = check::Calls(
           engine, kImpatient,
           {Call::Get(moves), Call::Put(stays, "3"), Call::Get(stays_too), Call::Get(moves_too)}, kAlone),
       .phase = 2},
      {.program = check::Verify(engine, kImpatient), .phase = 3}};
  ExpectNothing(scenario);
}

}  // namespace
}  // namespace farside::index::sephash
