// The engine of the reference table, and its entry in the list of engines.
#include "index/reference/reference.h"

#include <algorithm>

#include <fmt/format.h>

#include "index/engine_entry.h"
#include "index/kit/zeroed_roots.h"
#include "index/reference/mutants.h"
#include "index/reference/table.h"

namespace farside::index::reference {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;

namespace {

constexpr uint64_t kRecordsPerBucket = 5;  // of 22: no bucket of a table this full overflows in practice

}  // namespace

// The table does not grow, so it is made large.
OptionMap ReferenceEngine::OptionsFor(const ExpectedRecords& expected) const {
  return {{"buckets", std::to_string(std::max<uint64_t>(1, expected.records / kRecordsPerBucket))}};
}

Task<std::vector<FarAddr>> ReferenceEngine::Create(Op& op, pool::PoolClient& pool,
                                                   std::vector<NodeId> nodes) {
  return MakeZeroedRoots(op, pool, std::move(nodes), empty_bytes());
}

std::unique_ptr<Index> ReferenceEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, std::move(roots));
}

std::string ReferenceEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  for (const FarAddr& root : roots) {
    const FarAddr first = FirstBucket(root);
    if (at.node != root.node || at.offset < first.offset) continue;
    const uint64_t bucket = (at.offset - first.offset) / sizeof(Bucket);
    const uint64_t inside = (at.offset - first.offset) % sizeof(Bucket);
    if (bucket >= options_.buckets) continue;
    if (inside < sizeof(Head)) return fmt::format("bucket {} head", bucket);
    if (inside < kImagesOffset || inside >= kImagesOffset + sizeof(Bucket::images))
      return fmt::format("bucket {}", bucket);
    return fmt::format("bucket {} image {}+{}", bucket, (inside - kImagesOffset) / sizeof(Image),
                       (inside - kImagesOffset) % sizeof(Image));
  }
  return "";
}

Result<std::shared_ptr<Engine>> MakeReferenceEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ReferenceEngine>(*parsed));
}

EngineEntry Register() {
  return {.name = "reference", .rank = 90, .make = MakeReferenceEngine, .mutants = kAllMutants};
}

}  // namespace farside::index::reference
