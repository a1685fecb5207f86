#include "tools/bench/sim.h"

#include <algorithm>
#include <utility>

#include "fabric/run.h"
#include "pool/client.h"
#include "pool/region/superblock.h"
#include "store/engines.h"
#include "tools/bench/index_table.h"
#include "tools/bench/world.h"

namespace farside::tools {
namespace {

using fabric::sim::TimedFabric;

// Clients' operations overlap in virtual time, so how far they have come is worth a look now and then only.
constexpr uint64_t kEventsPerLook = 4096;

class SimWorld final : public BenchWorld {
 public:
  SimWorld(const BenchPlan& plan, std::unique_ptr<TimedFabric> fabric)
      : plan_(plan), fabric_(std::move(fabric)) {}

  Result<std::unique_ptr<BenchTable>> Join() override {
    Result<std::unique_ptr<fabric::Client>> connected = fabric_->Connect(joined_ % plan_.compute_nodes);
    if (!connected.ok()) return connected.error();
    pool::ClientOptions options;
    options.operations_per_sync = plan_.operations_per_sync;
    auto table = std::make_unique<IndexTable>(std::move(*connected), options);
    const Result<bool> made = fabric::Run(table->client(), table->Join(plan_));
    if (!made.ok()) return made.error();
    if (joined_++ == 0 && !*made) return TableExists(plan_);
    return std::unique_ptr<BenchTable>(std::move(table));
  }

  Status Run(std::span<const std::unique_ptr<BenchClient>> clients, BenchPhase& phase, uint32_t depth,
             const Progress& progress) override {
    fabric_->ResetUses();
    for (const std::unique_ptr<BenchClient>& client : clients) {
      if (Status started = client->Run(phase, depth); !started.ok()) return started;
    }
    for (uint64_t event = 0; !phase.over(); ++event) {
      if (event % kEventsPerLook == 0) progress(phase.done());
      if (!fabric_->Step()) return fabric::NothingInFlight();
    }
    // Before the clients notice that it is over, which takes a pause.
    RememberUses();
    for (const std::unique_ptr<BenchClient>& client : clients) {
      while (!client->done()) {
        if (!fabric_->Step()) return fabric::NothingInFlight();
      }
    }
    return OkStatus();
  }

  std::vector<BenchFigure> Model() const override {
    std::vector<BenchFigure> figures;
    for (const fabric::sim::ModelFigure& figure : FiguresOf(fabric_->model())) {
      figures.push_back({std::string(figure.name), std::string(figure.unit), figure.value});
    }
    return figures;
  }
  fabric::FlushCounts Flushed() const override { return fabric_->flushed(); }
  std::vector<BenchUse> Uses() const override { return uses_; }

 private:
  void RememberUses() {
    uses_.clear();
    for (fabric::sim::ResourceUse& use : fabric_->Uses()) uses_.push_back({std::move(use.name), use.share});
    std::stable_sort(uses_.begin(), uses_.end(),
                     [](const BenchUse& a, const BenchUse& b) { return a.share > b.share; });
  }

  const BenchPlan& plan_;
  const std::unique_ptr<TimedFabric> fabric_;
  uint32_t joined_ = 0;  // clients so far
  std::vector<BenchUse> uses_;
};

}  // namespace

Result<std::unique_ptr<TimedFabric>> MakeSimFabric(const BenchPlan& plan) {
  fabric::sim::TimedOptions options;
  options.seed = plan.seed;
  options.region_bytes.assign(plan.nodes, plan.region_bytes);
  options.compute_nodes = plan.compute_nodes;
  Result<std::unique_ptr<TimedFabric>> fabric = TimedFabric::Open(std::move(options));
  if (!fabric.ok()) return fabric.error();
  store::RegisterHandlers((*fabric)->calls());
  for (uint32_t node = 0; node < plan.nodes; ++node) {
    const Result<pool::Geometry> formatted = pool::FormatVolatile(
        (*fabric)->memory(static_cast<fabric::NodeId>(node)), FormatFor(plan), {plan.seed + 1, node});
    if (!formatted.ok()) return formatted.error();
  }
  return fabric;
}

Result<std::unique_ptr<BenchWorld>> MakeSimWorld(const BenchPlan& plan) {
  Result<std::unique_ptr<TimedFabric>> fabric = MakeSimFabric(plan);
  if (!fabric.ok()) return fabric.error();
  return std::unique_ptr<BenchWorld>(std::make_unique<SimWorld>(plan, std::move(*fabric)));
}

}  // namespace farside::tools
