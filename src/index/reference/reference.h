// The reference table: the simplest table that is linearizable under everything the contract allows. It is
// not fast, and it does not grow. See docs/engines/reference.md.
//
// Invariants
//   reference/1  The image that the head names is complete: sealed with the head's version.
//   reference/2  Only the owner in the head writes to the bucket, and only to the image that the head does
//                not name. The lock is taken from an owner only when it is gone (pool/2).
//   reference/3  A change is visible exactly from the CAS that turns the head (and frees the lock).
//   reference/4  No two images of a bucket that may exist at the same time are sealed with one version. So an
//                owner that has taken the lock over skips the versions that its predecessors may have used: a
//                torn READ could show the image of one with the head of the other.
//   reference/5  A block is complete before the image that points to it counts, and is retired by the client
//                whose CAS replaced it. An operation that reads a block holds a pin since before it read the
//                bucket.
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
  Traits traits() const override { return {.ordered = true, .scans_read_all = true, .read_only_walk = true}; }
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
