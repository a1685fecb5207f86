#include "tools/bench/options.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "index/raw/raw.h"
#include "pool/client.h"
#include "pool/memory/block.h"
#include "pool/memory/size_class.h"
#include "pool/region/layout.h"
#include "pool/region/superblock.h"
#include "pool/region/url.h"
#include "store/engines.h"

namespace farside::tools {
namespace {

constexpr uint64_t kDefaultOperations = 1'000'000;
constexpr uint64_t kMostWarmup = 100'000;
constexpr uint64_t kMostRegionBytes = uint64_t{1} << 40;

// A region is address space until it is touched, so there is no harm in room for an index that is not the
// smallest, and for a chunk of each size at every client.
constexpr uint64_t kIndexBytesPerRecord = 192;
constexpr uint64_t kFewestRegionBytes = 64 << 20;
constexpr uint64_t kBytesPerClient = 8 << 20;
// What a client has retired waits until all others have synced twice, and perhaps begun a third time.
constexpr uint64_t kSyncsUntilFree = 4;
constexpr uint64_t kBytesRetiredPerSync = 32 << 20;
constexpr uint64_t kFewestOperationsPerSync = 8;
// For runs that are as long as a time, and insert: records that a client may add in a second, at the very
// best.
constexpr double kMostInsertsPerSecond = 200'000;

Error Refuse(std::string why) { return Error(ErrorCode::kInvalidArgument, std::move(why)); }

Result<BenchFabric> ParseFabric(const std::string& text) {
  for (const BenchFabric fabric :
       {BenchFabric::kEmbedded, BenchFabric::kShm, BenchFabric::kTcp, BenchFabric::kSim}) {
    if (Name(fabric) == text) return fabric;
  }
  return Refuse(
      fmt::format("there is no fabric '{}' to measure; there is: embedded, shm, tcp, sim", Escape(text)));
}

// What is there already decides what can be asked for.
Status PlanUrl(const BenchCommand& command, BenchPlan& plan) {
  if (!command.fabric.empty()) return Refuse("--url says where the memory is; leave out --fabric");
  if (command.nodes != 1 || !command.size.empty())
    return Refuse(
        "--nodes and --size are for pools that are made for the benchmark; leave them out with --url");
  const Result<pool::PoolUrl> url = pool::ParseUrl(command.url);
  if (!url.ok()) return Refuse("--url: " + url.error().message());
  if (!url->remote()) {
    return Refuse(
        "--url: takes shm: or tcp:, memory nodes that run; for memory of this process use --fabric embedded");
  }
  plan.fabric = BenchFabric::kUrl;
  plan.url = command.url;
  plan.table = fmt::format("farside-bench-{}", ::getpid());
  plan.nodes = url->nodes;
  return OkStatus();
}

uint64_t Inserts(const BenchPlan& plan) {
  if (plan.mix.is_load || !plan.mix.inserts()) return 0;
  const double share = plan.mix.percent[static_cast<size_t>(workload::Action::kInsert)] / 100.0;
  if (!plan.duration.has_value()) {
    return static_cast<uint64_t>(share * static_cast<double>(plan.operations + plan.warmup)) + 1;
  }
  const double seconds = std::chrono::duration<double>(*plan.duration).count();
  return static_cast<uint64_t>(seconds * kMostInsertsPerSecond * plan.clients) + plan.warmup;
}

// What a key and its value take when memory is cut into blocks.
uint64_t BytesAsCut(const BenchPlan& plan) {
  const uint64_t bytes = pool::BlockBytes(plan.key_size, plan.value_size);
  const pool::SizeClasses classes{pool::FormatOptions().chunk_bytes};
  if (bytes > classes.largest()) return classes.ChunksOf(bytes) * classes.chunk_bytes();
  return classes.chunk_bytes() / classes.shape(classes.ClassOf(bytes)).blocks;
}

uint64_t OperationsPerSync(const BenchPlan& plan) {
  return std::clamp(kBytesRetiredPerSync / BytesAsCut(plan), kFewestOperationsPerSync,
                    pool::ClientOptions().operations_per_sync);
}

uint64_t RegionBytes(const BenchPlan& plan) {
  const uint64_t block = BytesAsCut(plan);
  const uint64_t records =
      (plan.records + Inserts(plan)) * 5 / 4 / plan.nodes + 1;  // no node has exactly its share
  const uint64_t in_hand = kSyncsUntilFree * plan.operations_per_sync + plan.depth;
  const uint64_t bytes = kFewestRegionBytes + plan.engine->empty_bytes() +
                         records * (block + kIndexBytesPerRecord) +
                         plan.clients * (kBytesPerClient + in_hand * block);
  return pool::RoundUp(bytes, uint64_t{1} << 20);
}

// What the engine with these options cannot do.
Status CheckEngine(const BenchPlan& plan) {
  if (plan.mix.scans() && !plan.engine->traits().ordered) {
    return Refuse(
        fmt::format("--workload: {} scans ranges of keys, and the engine {} keeps them in no order; take an "
                    "ordered one: {}",
                    plan.mix.name, plan.engine_name, store::OrderedEngineNames()));
  }
  const std::optional<size_t> size = plan.engine->traits().fixed_size;
  if (size.has_value() && (plan.key_size != *size || plan.value_size != *size)) {
    return Refuse(
        fmt::format("{} with these options takes only keys and values of {} bytes: --key-size {} "
                    "--value-size {}",
                    plan.engine_name, *size, *size, *size));
  }
  return OkStatus();
}

Status CheckCombination(const BenchCommand& command, const BenchPlan& plan) {
  if (command.ops.has_value() && command.seconds.has_value())
    return Refuse("--ops and --seconds say the same thing in two ways; give one of them");
  if (plan.mix.is_load && (command.ops.has_value() || command.seconds.has_value()))
    return Refuse("workload load inserts every record once: give --records instead of --ops or --seconds");
  const bool simulated = plan.fabric == BenchFabric::kSim;
  if (!simulated && command.compute_nodes != 1)
    return Refuse("--compute-nodes is for --fabric sim: elsewhere all clients are in this process");
  if (command.compute_nodes > command.clients)
    return Refuse("--compute-nodes: there are fewer clients than that");
  return OkStatus();
}

}  // namespace

std::string_view Name(BenchFabric fabric) {
  switch (fabric) {
    case BenchFabric::kEmbedded: return "embedded";
    case BenchFabric::kShm: return "shm";
    case BenchFabric::kTcp: return "tcp";
    case BenchFabric::kUrl: return "url";
    case BenchFabric::kSim: return "sim";
  }
  return "";
}

std::string FabricText(const BenchPlan& plan) {
  return plan.fabric == BenchFabric::kUrl ? plan.url.substr(0, plan.url.find(':'))
                                          : std::string(Name(plan.fabric));
}

Result<BenchPlan> PlanBench(const BenchCommand& command) {
  BenchPlan plan;
  Result<workload::Mix> mix = workload::FindMix(command.workload);
  if (!mix.ok()) return Refuse(fmt::format("--workload: {}", mix.error().message()));
  plan.mix = *mix;
  plan.distribution = mix->distribution;
  if (!command.distribution.empty()) {
    Result<workload::Distribution> chosen = workload::ParseDistribution(command.distribution);
    if (!chosen.ok()) return Refuse(fmt::format("--distribution: {}", chosen.error().message()));
    plan.distribution = *chosen;
  }
  plan.nodes = command.nodes;
  if (command.url.empty()) {
    Result<BenchFabric> fabric = ParseFabric(command.fabric.empty() ? "embedded" : command.fabric);
    if (!fabric.ok()) return Refuse(fmt::format("--fabric: {}", fabric.error().message()));
    plan.fabric = *fabric;
  } else if (Status there = PlanUrl(command, plan); !there.ok()) {
    return there.error();
  }
  if (Status fits = CheckCombination(command, plan); !fits.ok()) return fits.error();
  Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(command.engine, command.options);
  if (!engine.ok()) return engine.error();
  plan.engine_name = command.engine;
  plan.engine_options = command.options;
  plan.engine = std::move(*engine);

  plan.compute_nodes = command.compute_nodes;
  plan.records = command.records;
  plan.operations = command.ops.value_or(kDefaultOperations);
  if (plan.mix.is_load) plan.operations = plan.records;
  if (command.seconds.has_value())
    plan.duration = Nanos(static_cast<int64_t>(std::llround(*command.seconds * 1e9)));
  plan.warmup = command.warmup.value_or(std::min(plan.records, kMostWarmup));
  if (plan.mix.is_load) plan.warmup = 0;
  plan.clients = command.clients;
  plan.depth = command.depth;
  plan.key_size = command.key_size;
  plan.value_size = command.value_size;
  plan.seed = command.seed;
  if (Status fits = CheckEngine(plan); !fits.ok()) return fits.error();
  plan.operations_per_sync = OperationsPerSync(plan);
  plan.region_bytes = RegionBytes(plan);
  if (!command.size.empty()) {
    const Result<uint64_t> size = ParseSize(command.size);
    if (!size.ok()) return Refuse(fmt::format("--size: {}", size.error().message()));
    plan.region_bytes = *size / pool::kPage * pool::kPage;
  }
  if (plan.region_bytes > kMostRegionBytes) {
    return Refuse(
        fmt::format("this takes {} on each node, which is more than {}; choose fewer or smaller records",
                    FormatSize(plan.region_bytes), FormatSize(kMostRegionBytes)));
  }
  return plan;
}

Result<BenchPlan> PlanRaw(const BenchPlan& plan, double bucket_bytes, uint64_t trips) {
  BenchPlan raw = plan;
  const double lines = std::round(bucket_bytes / static_cast<double>(pool::kLine));
  const auto bucket = static_cast<uint64_t>(std::clamp(lines * pool::kLine, static_cast<double>(pool::kLine),
                                                       static_cast<double>(index::raw::kMostBucketBytes)));
  const uint64_t block = pool::BlockBytes(plan.key_size, plan.value_size);
  raw.engine_name = index::raw::kName;
  raw.engine_options = {{"records", std::to_string(plan.records / plan.nodes + 1)},
                        {"bucket", std::to_string(bucket)},
                        {"block", std::to_string(block)},
                        {"trips", std::to_string(trips)}};
  Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(raw.engine_name, raw.engine_options);
  if (!engine.ok()) return engine.error();
  raw.engine = std::move(*engine);
  raw.region_bytes = RegionBytes(raw);
  return raw;
}

}  // namespace farside::tools
