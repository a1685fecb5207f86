// The chime engine: tables whose keys are in order, after "CHIME: A Cache-Efficient and High-Performance
// Hybrid Index on Disaggregated Memory" (SOSP 2024). See docs/engines/chime.md; the table itself is in
// table.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/chime/layout.h"
#include "index/chime/options.h"
#include "index/index.h"
#include "pool/client.h"

namespace farside::index::chime {

class ChimeEngine final : public Engine {
 public:
  explicit ChimeEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "chime"; }
  Traits traits() const override;
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  std::map<std::string, OptionMap> conformance_options() const override;
  OptionMap OptionsFor(const ExpectedRecords& expected) const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeChimeEngine(const OptionMap& options);

}  // namespace farside::index::chime
