// The continuity table: it survives power cuts. Lookups are one-sided and take one trip; a change is one
// Call, decided by the processor of the node and answered when it is durable. See docs/engines/continuity.md;
// the invariants stand in node_table.h, segment.h and partition.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/continuity/layout.h"
#include "index/continuity/options.h"
#include "index/index.h"

namespace farside::index::continuity {

class ContinuityEngine final : public Engine {
 public:
  explicit ContinuityEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "continuity"; }
  Traits traits() const override { return {.durable = true, .grows_by_nodes = true}; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override { return sizeof(Root) + TableBytes(options_.pairs); }
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  OptionMap OptionsFor(const ExpectedRecords& expected) const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeContinuityEngine(const OptionMap& options);

}  // namespace farside::index::continuity
