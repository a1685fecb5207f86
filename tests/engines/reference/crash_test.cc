// The reference table under dying, sleeping and disconnected clients, at exact places.
#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <string>
#include <string_view>

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

// One client puts "old" and then "new"; afterwards the auditor of check::Run reads the key.
RunReport TwoPuts(std::optional<Fault> fault, std::string* trace_text = nullptr) {
  const auto engine = MakeReferenceEngine({});
  Workload workload;
  workload.keys = {"k0"};
  workload.scripts = {
      {{.kind = Kind::kPut, .key = "k0", .value = "old"}, {.kind = Kind::kPut, .key = "k0", .value = "new"}}};
  SimOptions options;
  options.chaos = Chaos::Calm();
  options.fault = fault;
  Trace trace;
  options.trace = &trace;
  RunReport report = check::Run(**engine, workload, options);
  if (trace_text != nullptr) *trace_text = trace.ToString();
  return report;
}

// The number of the n-th verb that is posted with this text, from a run without faults.
uint64_t FindVerb(const std::string& verb, int nth) {
  std::string trace;
  TwoPuts(std::nullopt, &trace);
  const std::regex posted("#([0-9]+) " + verb);
  size_t from = 0;
  for (std::string_view line; from < trace.size(); from += line.size() + 1) {
    line = std::string_view(trace).substr(from, trace.find('\n', from) - from);
    std::match_results<std::string_view::const_iterator> match;
    if (line.find("posts trip") == std::string_view::npos ||
        !std::regex_search(line.begin(), line.end(), match, posted)) {
      continue;
    }
    if (--nth == 0) return std::stoull(match[1].str());
  }
  ADD_FAILURE() << "no such verb: " << verb;
  return 0;
}

// Verbs of the second Put.
uint64_t Lock() { return FindVerb("MCAS [^#]*head", 2); }
uint64_t WriteImage() { return FindVerb("WRITE [^#]*image", 2); }
uint64_t CommitHead() { return WriteImage() + 1; }

RunReport PutWithFault(Fault fault, std::string* trace_text = nullptr) { return TwoPuts(fault, trace_text); }

std::string ValueFoundByAuditor(const RunReport& report) {
  for (const check::Operation& operation : report.history.operations()) {
    if (operation.client != 1) continue;
    return std::get<check::Found>(operation.outcome).value.value_or("absent");
  }
  return "never read";
}

TEST(ReferenceCrash, OwnerDiesBeforeItsLockLands_NothingHappened) {
  const RunReport report = PutWithFault({Lock(), FaultKind::kCrashBefore});
  EXPECT_TRUE(report.fault_fired);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
}

TEST(ReferenceCrash, OwnerDiesWithTheLock_NextWriterFencesItAndTakesOver) {
  // Given a client that died after its lock landed.
  // When the auditor reads and then writes the key.
  // Expect the old value, a fence, and a write that succeeds.
  std::string trace;
  const RunReport report = PutWithFault({Lock(), FaultKind::kCrashAfter}, &trace);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
  EXPECT_NE(trace.find("fences client 1"), std::string::npos) << trace;
}

TEST(ReferenceCrash, OwnerDiesInTheMiddleOfItsImage_OldValueStays) {
  const RunReport report = PutWithFault({WriteImage(), FaultKind::kCrashMid});
  EXPECT_TRUE(report.fault_fired);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
}

TEST(ReferenceCrash, OwnerDiesBetweenImageAndCommit_OldValueStays) {
  const RunReport report = PutWithFault({WriteImage(), FaultKind::kCrashAfter});
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "old");
}

TEST(ReferenceCrash, OwnerDiesAfterCommit_NewValueIsThere) {
  const RunReport report = PutWithFault({CommitHead(), FaultKind::kCrashAfter});
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(ValueFoundByAuditor(report), "new");
}

TEST(ReferenceCrash, CommitGoesUnanswered_TheClientIsToldSo) {
  // Given a commit that takes effect but whose completion is lost.
  // Expect the operation to end as unknown, and the new value to be there.
  const RunReport report = PutWithFault({CommitHead(), FaultKind::kLoseCompletion});
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
  options.seeds = 8;
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(**engine, options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.crash_points, 8u * 200);
}

}  // namespace
}  // namespace farside::index::reference
