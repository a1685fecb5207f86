// Power cuts in checked runs: an engine that claims to survive them, and makes nothing durable, is caught by
// chance and by the sweep; one that claims nothing never meets them.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "check/campaign.h"
#include "index/index.h"
#include "index/reference/reference.h"

namespace farside::check {
namespace {

// The reference table, whose clients WRITE and CAS records, and call nothing durable.
class FalseClaim final : public index::Engine {
 public:
  explicit FalseClaim(std::shared_ptr<index::Engine> behind) : behind_(std::move(behind)) {}

  std::string_view name() const override { return behind_->name(); }
  index::Traits traits() const override {
    index::Traits traits = behind_->traits();
    traits.durable = true;
    return traits;
  }
  uint32_t layout_version() const override { return behind_->layout_version(); }
  uint64_t empty_bytes() const override { return behind_->empty_bytes(); }
  index::OptionMap recorded_options() const override { return behind_->recorded_options(); }
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override {
    return behind_->Create(op, pool, std::move(nodes));
  }
  std::unique_ptr<index::Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override {
    return behind_->Open(pool, std::move(roots));
  }
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override {
    return behind_->Describe(at, roots);
  }

 private:
  const std::shared_ptr<index::Engine> behind_;
};

std::shared_ptr<index::Engine> Reference() { return *index::reference::MakeReferenceEngine({}); }

RunName OfSeed(uint64_t seed, bool faults) { return {.seed = seed, .faults = faults, .fault = std::nullopt}; }
RunName PowerCutAt(uint64_t seed, uint64_t step) {
  return {.seed = seed,
          .faults = false,
          .fault = fabric::sim::Fault{.verb = step, .kind = fabric::sim::FaultKind::kPowerCut}};
}

TEST(CheckPowerCuts, ByChance_AFalseClaimIsCaught) {
  // Given an engine that claims to survive power cuts, and does not. When it is checked without faults.
  // Expect nothing. When it is checked with faults by chance. Expect that nodes lose their power, and that
  // this shows.
  FalseClaim engine(Reference());
  uint64_t power_cuts = 0;
  uint64_t caught = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const RunReport calm = Replay(engine, {}, OfSeed(seed, false));
    EXPECT_TRUE(calm.ok()) << "seed " << seed << ": " << calm.problem;
    EXPECT_EQ(calm.power_cuts, 0u);
    const RunReport broken = Replay(engine, {}, OfSeed(seed, true));
    power_cuts += broken.power_cuts;
    caught += broken.ok() ? 0 : 1;
    EXPECT_TRUE(broken.ok() || broken.power_cuts > 0) << "seed " << seed << ": " << broken.problem;
  }
  EXPECT_GT(power_cuts, 5u);
  EXPECT_GT(caught, 0u);
}

TEST(CheckPowerCuts, AtEveryStep_AFalseClaimIsCaught_AndTheNameReplaysIt) {
  // Given the short script of a seed. When the power is cut after each step of the handlers that the pool
  // calls for it. Expect that each such run has one cut, that some lose what was acknowledged, and that the
  // name of a run gives the same run again.
  FalseClaim engine(Reference());
  std::optional<RunName> first;
  std::string problem;
  uint64_t step = 0;
  while (true) {
    const RunReport run = Replay(engine, {}, PowerCutAt(3, step));
    if (!run.fault_fired) {
      EXPECT_EQ(run.script_steps, step);
      EXPECT_TRUE(run.ok()) << run.problem;
      break;
    }
    EXPECT_EQ(run.power_cuts, 1u);
    if (!run.ok() && !first.has_value()) {
      first = PowerCutAt(3, step);
      problem = run.problem;
    }
    ++step;
  }
  EXPECT_GT(step, 10u);
  ASSERT_TRUE(first.has_value());
  const Result<RunName> parsed = RunName::Parse(first->ToString());
  ASSERT_TRUE(parsed.ok()) << first->ToString();
  EXPECT_TRUE(first->ToString().ends_with(":power-cut"));
  EXPECT_EQ(Replay(engine, {}, *parsed).problem, problem);
}

TEST(CheckPowerCuts, ACampaignCutsThePowerOfDurableEnginesAlone) {
  // Given campaigns of an engine that claims nothing, and of one that does. Expect power cuts in the second
  // one only, and that they count as crash points.
  const std::shared_ptr<index::Engine> honest = Reference();
  FalseClaim engine(Reference());
  CampaignOptions options{.first_seed = 3, .seeds = 1, .crash = true};
  options.shape.clients = 2;
  options.shape.operations = 2;
  const CampaignReport without = RunCampaign(*honest, options);
  EXPECT_TRUE(without.ok());
  EXPECT_EQ(without.power_cuts, 0u);
  const CampaignReport with = RunCampaign(engine, options);
  EXPECT_GT(with.power_cuts, 10u);
  EXPECT_GT(with.violations, 0u);
  EXPECT_GT(with.crash_points, with.power_cuts / 2);
}

}  // namespace
}  // namespace farside::check
