// The engine of raw tables, and its entry in the list of engines.
#include <array>

#include <fmt/format.h>

#include "index/engine_entry.h"
#include "index/kit/options.h"
#include "index/kit/zeroed_roots.h"
#include "index/raw/raw.h"

namespace farside::index::raw {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;

namespace {

constexpr uint64_t kMostRecords = 4'000'000'000;

constexpr auto kTrips = std::to_array<OptionWord<uint64_t>>({{"1", 1}, {"2", 2}});
constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"records",
     [](Options& o, const OptionText& given) { return Set(o.records, given.Number(1, kMostRecords)); }},
    {"bucket",
     [](Options& o, const OptionText& given) {
       return Set(o.bucket_bytes, given.MultipleOf(pool::kLine, kMostBucketBytes));
     }},
    {"block",
     [](Options& o, const OptionText& given) {
       return Set(o.block_bytes, given.MultipleOf(pool::kLine, kMostBlockBytes));
     }},
    {"trips", [](Options& o, const OptionText& given) { return SetToOneOf(o.trips, given, kTrips); }},
});

}  // namespace

uint64_t RawEngine::empty_bytes() const { return options_.RootBytes(); }

OptionMap RawEngine::recorded_options() const {
  return {{"block", std::to_string(options_.block_bytes)},
          {"bucket", std::to_string(options_.bucket_bytes)},
          {"records", std::to_string(options_.records)}};
}

// So every page is there before anything is measured.
Task<std::vector<FarAddr>> RawEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  return MakeZeroedRoots(op, pool, std::move(nodes), empty_bytes());
}

std::unique_ptr<Index> RawEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, std::move(roots));
}

std::string RawEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  for (const FarAddr& root : roots) {
    const uint64_t inside = at.offset - root.offset;
    if (at.node != root.node || at.offset < root.offset || inside >= options_.RootBytes()) continue;
    const uint64_t buckets = options_.records * options_.bucket_bytes;
    if (inside < buckets) return fmt::format("bucket {}", inside / options_.bucket_bytes);
    return fmt::format("block {}", (inside - buckets) / options_.block_bytes);
  }
  return "";
}

Result<Options> Options::Parse(const OptionMap& options) { return ParseOptions("raw", kRules, options); }

Result<std::shared_ptr<Engine>> MakeRawEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<RawEngine>(*parsed));
}

EngineEntry Register() { return {.name = kName, .rank = 99, .make = MakeRawEngine}; }

}  // namespace farside::index::raw
