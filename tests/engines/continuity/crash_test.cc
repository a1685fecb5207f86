// The continuity table under clients that die and nodes that lose their power: at every verb, and at every
// step of the handlers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/campaign.h"
#include "check/run.h"
#include "check/workload.h"
#include "fabric/sim/sim.h"
#include "index/continuity/continuity.h"
#include "tests/support/sanitized.h"

namespace farside::index::continuity {
namespace {

// What the auditors of runs have found.
struct Seen {
  uint64_t tables_that_grew = 0;
  uint64_t tables_with_groups = 0;
};

// A table that tells what has become of it when it is verified, as the auditor of a run does in the end.
class WatchedTable final : public Index {
 public:
  WatchedTable(std::unique_ptr<Index> table, Seen& seen) : table_(std::move(table)), seen_(seen) {}

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override {
    return table_->Get(op, key, value);
  }
  Task<PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) override {
    return table_->Put(op, key, value);
  }
  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) override {
    return table_->Insert(op, key, value);
  }
  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) override {
    return table_->Update(op, key, value);
  }
  Task<bool> Delete(fabric::Op& op, std::string_view key) override { return table_->Delete(op, key); }
  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) override {
    return table_->CompareAndSet(op, key, expected, desired);
  }
  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) override {
    return table_->Increment(op, key, delta);
  }
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override {
    return table_->Next(op, cursor, page);
  }
  Task<TableStats> Stats(fabric::Op& op) override { return table_->Stats(op); }
  void ConfirmTable(const pool::Membership& home, uint64_t catalog_changes) override {
    table_->ConfirmTable(home, catalog_changes);
  }
  Task<bool> Touch(fabric::Op& op, fabric::FarAddr block, std::span<const std::byte> bytes) override {
    return table_->Touch(op, block, bytes);
  }
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override { return table_->Walk(op, reach); }
  Task<Done> Verify(fabric::Op& op) override {
    const TableStats stats = co_await table_->Stats(op);
    for (const auto& [name, figure] : stats.details) {
      if (name == "share of pairs with a group" && figure > 0) ++seen_.tables_with_groups;
    }
    if (table_->growth() > 0) ++seen_.tables_that_grew;
    co_await table_->Verify(op);
    co_return Done{};
  }

 private:
  const std::unique_ptr<Index> table_;
  Seen& seen_;
};

class WatchedEngine final : public Engine {
 public:
  WatchedEngine(const OptionMap& options, Seen& seen)
      : engine_(*MakeContinuityEngine(options)), seen_(seen) {}
  std::string_view name() const override { return engine_->name(); }
  Traits traits() const override { return engine_->traits(); }
  uint32_t layout_version() const override { return engine_->layout_version(); }
  uint64_t empty_bytes() const override { return engine_->empty_bytes(); }
  OptionMap recorded_options() const override { return engine_->recorded_options(); }
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override {
    return engine_->Create(op, pool, std::move(nodes));
  }
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override {
    return std::make_unique<WatchedTable>(engine_->Open(pool, std::move(roots)), seen_);
  }
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override {
    return engine_->Describe(at, roots);
  }

 private:
  const std::shared_ptr<Engine> engine_;
  Seen& seen_;
};

class ContinuityCrash : public testing::Test {
 protected:
  ContinuityCrash() {
    for (const OptionMap& options : (*MakeContinuityEngine({}))->stress_options()) {
      engines_.push_back(std::make_unique<WatchedEngine>(options, seen_));
      subjects_.push_back(engines_.back().get());
    }
  }

  Seen seen_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<Engine*> subjects_;
};

TEST_F(ContinuityCrash, EveryVerbAndEveryStepOfEveryShortScript_SurvivorsGoOn) {
  // Given scripts of two or three clients, and tables of few slots
  // When each of their verbs in turn is the place of each kind of fault, and the power of a node is cut after
  // each step of its handlers
  // Expect every history to be linearizable, and every table to be whole at the end
  check::CampaignOptions options;
  options.seeds = 16 / kFewer;
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects_), options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.crash_points, options.seeds * 100);
  EXPECT_GT(report.power_cuts, options.seeds * 30);
}

TEST_F(ContinuityCrash, PowerIsCutByChanceWhileTablesGrow_NothingIsLost) {
  // Given scripts of many changes
  // When nodes lose their power by chance, and clients die
  // Expect every history to be linearizable, and every table to be whole at the end; and that tables got
  // groups and grew, in runs with power cuts
  check::CampaignOptions options;
  options.crash = true;
  options.shape = {.clients = 3, .operations = 16, .keys = 8};
  uint64_t grown = 0;
  uint64_t with_groups = 0;
  for (uint64_t seed = 1; seed <= 200 / kFewer; ++seed) {
    seen_ = Seen();
    const check::RunReport run =
        check::Replay(check::Subjects(subjects_), options, {.seed = seed, .faults = true});
    ASSERT_TRUE(run.ok()) << "seed " << seed << ": " << run.problem;
    if (run.power_cuts == 0) continue;
    grown += seen_.tables_that_grew;
    with_groups += seen_.tables_with_groups;
  }
  EXPECT_GE(grown, 40 / kFewer);
  EXPECT_GE(with_groups, 20 / kFewer);
  RecordProperty("grown", std::to_string(grown));
  RecordProperty("with groups", std::to_string(with_groups));
}

TEST_F(ContinuityCrash, EveryStepOfScriptsThatGrow_NothingIsLost) {
  // Given scripts of two clients, of which those are taken that make a table grow, or get a group
  // When the power of the node is cut after each step of its handlers in turn
  // Expect every history to be linearizable, and every table to be whole at the end
  constexpr check::WorkloadShape kShape{.clients = 2, .operations = 4, .keys = 3};
  uint64_t grown = 0;
  uint64_t with_groups = 0;
  uint64_t cuts = 0;
  const auto run = [&](uint64_t seed, uint64_t step) {
    fabric::sim::SimOptions sim;
    sim.seed = seed;
    sim.chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false);
    sim.fault = {.verb = step, .kind = fabric::sim::FaultKind::kPowerCut};
    return check::Run(check::Subjects(subjects_).For(seed), check::MakeWorkload(seed, kShape, {}),
                      std::move(sim));
  };
  for (uint64_t seed = 1; seed <= 64 / std::min<uint64_t>(kFewer, 4); ++seed) {
    seen_ = Seen();
    run(seed, ~uint64_t{0});
    const Seen without_cut = seen_;
    if (without_cut.tables_that_grew + without_cut.tables_with_groups == 0) continue;
    grown += without_cut.tables_that_grew;
    with_groups += without_cut.tables_with_groups;
    bool fired = true;
    for (uint64_t step = 0; fired; ++step) {
      const check::RunReport report = run(seed, step);
      ASSERT_TRUE(report.ok()) << "seed " << seed << ", cut after step " << step << ": " << report.problem;
      fired = report.fault_fired;
      cuts += report.power_cuts;
    }
  }
  EXPECT_GE(grown, 8 / kFewer);
  EXPECT_GE(with_groups, 8 / kFewer);
  RecordProperty("grown", std::to_string(grown));
  RecordProperty("with groups", std::to_string(with_groups));
  RecordProperty("cuts", std::to_string(cuts));
}

}  // namespace
}  // namespace farside::index::continuity
