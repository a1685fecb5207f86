#include "tools/table/dry_run_engine.h"

#include <string>
#include <utility>
#include <vector>

#include "pool/client.h"
#include "store/engines.h"

namespace farside::tools {
namespace {

using fabric::FarAddr;

class DryRunEngine final : public index::Engine {
 public:
  explicit DryRunEngine(std::shared_ptr<index::Engine> engine) : engine_(std::move(engine)) {}

  std::string_view name() const override { return engine_->name(); }
  index::Traits traits() const override { return engine_->traits(); }
  uint32_t layout_version() const override { return engine_->layout_version(); }
  uint64_t empty_bytes() const override { return engine_->empty_bytes(); }
  index::OptionMap recorded_options() const override { return engine_->recorded_options(); }

  Task<std::vector<FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                    std::vector<fabric::NodeId> nodes) override {
    std::vector<FarAddr> roots;
    for (const fabric::NodeId node : nodes) {
      roots.push_back(co_await pool.allocator(node).Allocate(op, engine_->empty_bytes()));
    }
    co_return std::move(roots);
  }
  std::unique_ptr<index::Index> Open(pool::PoolClient& pool, std::vector<FarAddr> roots) override {
    return engine_->Open(pool, std::move(roots));
  }
  std::string Describe(FarAddr at, std::span<const FarAddr> roots) const override {
    return engine_->Describe(at, roots);
  }

 private:
  const std::shared_ptr<index::Engine> engine_;
};

}  // namespace

Result<std::shared_ptr<index::Engine>> MakeDryRunEngine(std::string_view name,
                                                        const index::OptionMap& options) {
  Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(name, options);
  if (!engine.ok()) return engine;
  return std::shared_ptr<index::Engine>(std::make_shared<DryRunEngine>(std::move(*engine)));
}

}  // namespace farside::tools
