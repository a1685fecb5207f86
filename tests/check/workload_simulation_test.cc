// What the clients of a checked run do: scans where the table has an order, and records that it takes.
#include "check/workload.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "check/campaign.h"
#include "index/reference/reference.h"
#include "tests/support/words_only.h"

namespace farside::check {
namespace {

constexpr uint64_t kSeeds = 50;

bool IsScan(const ScriptedCall& call) { return call.kind == Kind::kScan || call.kind == Kind::kLast; }

TEST(CheckWorkload, WithScans_OnlyReadsBecomeOthers) {
  // Given the scripts of some seeds, without scans and with them. Expect that they differ only where a read
  // became a scan, and that there are scans of all sorts.
  std::set<std::string> sorts;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Workload without = MakeWorkload(seed, {});
    const Workload with = MakeWorkload(seed, {}, {.scans = true});
    ASSERT_EQ(without.scripts.size(), with.scripts.size());
    for (size_t client = 0; client < with.scripts.size(); ++client) {
      for (size_t i = 0; i < with.scripts[client].size(); ++i) {
        const ScriptedCall& before = without.scripts[client][i];
        const ScriptedCall& after = with.scripts[client][i];
        ASSERT_FALSE(IsScan(before));
        if (!IsScan(after)) {
          EXPECT_EQ(before.kind, after.kind);
          EXPECT_EQ(before.key, after.key);
          EXPECT_EQ(before.value, after.value);
          continue;
        }
        EXPECT_EQ(before.kind, Kind::kGet);
        EXPECT_EQ(after.kind == Kind::kScan, after.limit > 0);
        sorts.insert(std::string(Name(after.kind)) + (after.key.empty() ? "" : " from") +
                     (after.to.has_value() ? " to" : ""));
      }
    }
  }
  EXPECT_EQ(sorts, (std::set<std::string>{"Scan", "Scan from", "Scan to", "Scan from to", "Last", "Last from",
                                          "Last to", "Last from to"}));
}

TEST(CheckWorkload, Sweeps_ClientsDieOnTheirWayOfflineAndBack) {
  // Given a client that dies at every verb of short scripts. Expect that some of these verbs are those by
  // which it goes offline or comes back, and that nothing is wrong then.
  const auto engine = index::reference::MakeReferenceEngine({});
  const CampaignReport report = RunCampaign(**engine, {.seeds = 3, .crash = true});
  EXPECT_GT(report.deaths_offline, 50u);
  EXPECT_TRUE(report.ok());
}

TEST(CheckWorkload, ForTablesOfOneSize_KeysAndValuesHaveIt) {
  // Given a table that takes only keys and values of 8 bytes. When scripts are made for it. Expect no others.
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Workload workload = MakeWorkload(seed, {}, {.fixed_size = 8});
    for (const std::string& key : workload.keys) EXPECT_EQ(key.size(), 8u);
    for (const Script& script : workload.scripts) {
      for (const ScriptedCall& call : script) {
        EXPECT_EQ(call.key.size(), 8u);
        if (call.kind == Kind::kIncrement) continue;
        EXPECT_EQ(call.value.size(), call.value.empty() ? 0u : 8u);
        EXPECT_EQ(call.expected.size(), call.expected.empty() ? 0u : 8u);
      }
    }
  }
}

TEST(CheckWorkload, TablesOfOneSize_AreCheckedLikeOthers) {
  // Given a table that refuses all keys and values but those of 8 bytes. When a campaign runs, with tables
  // that come and go.
  // Expect that nothing is refused, and no violation.
  conformance::WordsOnly engine(*index::reference::MakeReferenceEngine({}));
  CampaignOptions options;
  options.seeds = 40;
  options.crash = true;
  options.sweep = false;
  const CampaignReport report = RunCampaign(engine, options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.operations, 0u);
}

}  // namespace
}  // namespace farside::check
