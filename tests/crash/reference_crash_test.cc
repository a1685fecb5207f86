// The reference table under dying, sleeping and disconnected clients, at exact places.
#include <gtest/gtest.h>

#include <string>

#include "check/campaign.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"

namespace farside::index::reference {
namespace {

using check::Kind;
using check::RunReport;
using check::Workload;
using fabric::sim::Chaos;
using fabric::sim::Fault;
using fabric::sim::FaultKind;
using fabric::sim::SimOptions;
using fabric::sim::Trace;

// One writer, one reader afterwards (the auditor of check::Run): verbs 0 and 1 lock and read, 2 and 3 write and commit.
RunReport PutWithFault(Fault fault, std::string* trace_text = nullptr) {
  const auto engine = MakeReferenceEngine({});
  Workload workload;
  workload.keys = {"k0"};
  workload.scripts = {{{.kind = Kind::kPut, .key = "k0", .value = "old"}, {.kind = Kind::kPut, .key = "k0", .value = "new"}}};
  SimOptions options;
  options.chaos = Chaos::Calm();
  options.fault = fault;
  Trace trace;
  options.trace = &trace;
  RunReport report = check::Run(**engine, workload, options);
  if (trace_text != nullptr) *trace_text = trace.ToString();
  return report;
}

std::string ValueFoundByAuditor(const RunReport& report) {
  for (const check::Operation& operation : report.history.operations()) {
    if (operation.client != 1) continue;
    return std::get<check::Found>(operation.outcome).value.value_or("absent");
  }
  return "never read";
}

// Verbs 4..7 are those of the second Put.
constexpr uint64_t kLock = 4, kWrite = 6, kCommit = 7;

TEST(ReferenceCrash, OwnerDiesBeforeItsLockLands_NothingHappened) {
  const RunReport report = PutWithFault({kLock, FaultKind::kCrashBefore});
  EXPECT_TRUE(report.fault_fired);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
}

TEST(ReferenceCrash, OwnerDiesWithTheLock_NextWriterFencesItAndTakesOver) {
  // Given a client that died after its lock landed.
  // When the auditor reads and then writes the key.
  // Expect the old value, a fence, and a write that succeeds.
  std::string trace;
  const RunReport report = PutWithFault({kLock, FaultKind::kCrashAfter}, &trace);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
  EXPECT_NE(trace.find("fences client 2"), std::string::npos) << trace;
}

TEST(ReferenceCrash, OwnerDiesInTheMiddleOfItsImage_OldValueStays) {
  const RunReport report = PutWithFault({kWrite, FaultKind::kCrashMid});
  EXPECT_TRUE(report.fault_fired);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
}

TEST(ReferenceCrash, OwnerDiesBetweenImageAndCommit_OldValueStays) {
  const RunReport report = PutWithFault({kWrite, FaultKind::kCrashAfter});
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
}

TEST(ReferenceCrash, OwnerDiesAfterCommit_NewValueIsThere) {
  const RunReport report = PutWithFault({kCommit, FaultKind::kCrashAfter});
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "new");
}

TEST(ReferenceCrash, CommitGoesUnanswered_TheClientIsToldSo) {
  // Given a commit that takes effect but whose completion is lost.
  // Expect the operation to end as unknown, and the new value to be there.
  const RunReport report = PutWithFault({kCommit, FaultKind::kLoseCompletion});
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.history.operations()[1].fate, check::Fate::kMaybe);
  EXPECT_EQ(ValueFoundByAuditor(report), "new");
}

TEST(ReferenceCrash, EveryVerbOfEveryShortScript_SurvivorsGoOn) {
  // Given scripts of two or three clients.
  // When each of their verbs in turn is the place of each kind of fault.
  // Expect every history to be linearizable, and every table to be whole at the end.
  const auto engine = MakeReferenceEngine({});
  check::CampaignOptions options;
  options.seeds = 60;
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(**engine, options);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": " << report.first_violation->problem;
  EXPECT_GT(report.crash_points, 60u * 20);
}

TEST(Replay, SameRunGivesTheSameBytes) {
  // Given a run with faults by chance, and one with an exact fault.
  // When each runs twice with a trace.
  // Expect identical traces; and different seeds to differ.
  const auto engine = MakeReferenceEngine({});
  const auto trace_of = [&](const check::RunName& run) {
    Trace trace([&](fabric::FarAddr at) { return (*engine)->Describe(at); });
    check::Replay(**engine, {}, run, &trace);
    return trace.ToString();
  };
  for (const char* name : {"17", "17:faults", "17:5:crash-after", "18:9:sleep-before"}) {
    const auto run = check::RunName::Parse(name);
    ASSERT_TRUE(run.ok());
    const std::string once = trace_of(*run);
    EXPECT_GT(once.size(), 1000u) << name;
    EXPECT_EQ(once, trace_of(*run)) << name;
    EXPECT_EQ(run->ToString(), name);
  }
  EXPECT_NE(trace_of({.seed = 17, .faults = false, .fault = {}}), trace_of({.seed = 18, .faults = false, .fault = {}}));
}

TEST(Replay, MalformedNamesAreRefused) {
  for (const char* name : {"", "xyz", "-1", "5:", "5:x", "5:1", "5:1:", "5:1:nosuch", "5:1:crash-after:", "99999999999999999999"}) {
    EXPECT_FALSE(check::RunName::Parse(name).ok()) << name;
  }
}

}  // namespace
}  // namespace farside::index::reference
