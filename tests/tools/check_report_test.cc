#include "tools/check/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/campaign.h"
#include "check/linearizability.h"
#include "check/run.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

using check::Answer;
using check::RunName;
using check::RunReport;
using testing::HasSubstr;
using testing::Not;

RunName Seed(uint64_t seed) { return RunName{.seed = seed, .faults = false, .fault = std::nullopt}; }

RunReport GaveUp() {
  RunReport run;
  run.verdict.answer = Answer::kUndecided;
  run.verdict.key = "k0";
  run.verdict.event = 160;
  run.problem = check::ToString(run.verdict);
  return run;
}

RunReport Stuck() {
  RunReport run;
  run.problem = "stuck: 2 clients wait for ever";
  return run;
}

CheckCommand Command() {
  CheckCommand command;
  command.engine = "reference";
  return command;
}

TEST(CheckReport, RunsTheCheckerGaveUpOn_AreUndecidedAndNoViolations) {
  // Given a campaign of a run that is fine, and two that the checker gave up on.
  CheckResult result;
  result.report.Add(Seed(1), RunReport());
  result.report.Add(Seed(2), GaveUp());
  result.report.Add(Seed(3), GaveUp());
  // Expect: not ok, though without a violation; the first of the two is named.
  EXPECT_FALSE(result.report.ok());
  EXPECT_EQ(result.report.histories, 3u);
  EXPECT_EQ(result.report.violations, 0u);
  EXPECT_EQ(result.report.undecided, 2u);
  ASSERT_TRUE(result.report.first_undecided.has_value());
  EXPECT_EQ(result.report.first_undecided->run.seed, 2u);

  const std::string text = CampaignText(Command(), result);
  EXPECT_THAT(text, HasSubstr("violations    0\nundecided     2\n"));
  EXPECT_THAT(text, HasSubstr("first undecided: run 2\n  key k0 is undecided: gave up at event 160\n"));
  EXPECT_THAT(text, HasSubstr("replay\n  farside check --engine reference --replay 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("first violation")));

  const std::string json = ToJson(Command(), result);
  EXPECT_THAT(
      json, HasSubstr(R"("violations":0,"undecided":2,"first_violation":null,"first_undecided":{"seed":2,)"));
}

TEST(CheckReport, AProblemOfARunThatIsUndecidedToo_IsAViolation) {
  // Given a run that got stuck, and in which the checker gave up besides.
  RunReport run = GaveUp();
  run.problem = Stuck().problem;
  const check::CampaignReport report = AsCampaign(Seed(5), run);
  // Expect a violation: what is known to be wrong does not depend on the checker.
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.violations, 1u);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.first_violation->problem, "stuck: 2 clients wait for ever");
}

TEST(CheckReport, ViolationsAndUndecidedRuns_AreBothShown) {
  // Given one of each.
  CheckResult result;
  result.report.Add(Seed(1), GaveUp());
  result.report.Add(Seed(2), Stuck());
  result.shown = Stuck();
  // Expect both, the violation first.
  const std::string text = CampaignText(Command(), result);
  const size_t violation = text.find("first violation: run 2\n");
  const size_t undecided = text.find("first undecided: run 1\n");
  ASSERT_NE(violation, std::string::npos) << text;
  ASSERT_NE(undecided, std::string::npos) << text;
  EXPECT_LT(violation, undecided);
}

TEST(CheckReport, AReplayThatIsUndecided_SaysSo) {
  // Given a replayed run that the checker gave up on.
  CheckCommand command = Command();
  command.replay = Seed(7);
  CheckResult result;
  result.shown = GaveUp();
  // Expect that it is not called a violation.
  const std::string text = ReplayText(command, result);
  EXPECT_THAT(text, HasSubstr("verdict\n  UNDECIDED: key k0 is undecided: gave up at event 160\n"));
  EXPECT_THAT(text, Not(HasSubstr("VIOLATION")));
}

TEST(CheckReport, ARunWithAFaultThatHappened_IsACrashPoint) {
  // Given a run with a fault at a verb, once where it happened and once where it did not.
  RunName name = Seed(3);
  name.fault = fabric::sim::Fault{1, fabric::sim::FaultKind::kCrashAfter};
  RunReport run;
  run.fault_fired = true;
  // Expect one crash point, and none.
  EXPECT_EQ(AsCampaign(name, run).crash_points, 1u);
  run.fault_fired = false;
  EXPECT_EQ(AsCampaign(name, run).crash_points, 0u);
}

}  // namespace
}  // namespace farside::tools
