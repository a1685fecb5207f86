// The engine of the reference table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "index/reference/layout.h"
#include "index/reference/options.h"

namespace farside::index::reference {

class ReferenceEngine final : public Engine {
 public:
  explicit ReferenceEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "reference"; }
  Traits traits() const override { return {.ordered = true, .read_only_walk = true}; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override { return RootBytes(options_.buckets); }
  OptionMap recorded_options() const override { return options_.Recorded(); }
  OptionMap OptionsFor(const ExpectedRecords& expected) const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeReferenceEngine(const OptionMap& options);

}  // namespace farside::index::reference
