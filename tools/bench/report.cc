#include "tools/bench/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "fabric/verb.h"
#include "index/tables.h"
#include "tools/common/output.h"
#include "tools/common/version.h"
#include "workload/mix.h"

namespace farside::tools {
namespace {

using fabric::OpKind;
using fabric::OpTally;
using fabric::Purpose;
using fabric::VerbTally;

constexpr std::array kOperationKinds = {OpKind::kSearch, OpKind::kInsert, OpKind::kUpdate, OpKind::kDelete,
                                        OpKind::kScan};
constexpr double kBusy = 0.9;  // of the time: what is busier binds
constexpr size_t kUsesShown = 3;

OpTally AllOutcomes(const fabric::Counters& counters, OpKind kind) {
  OpTally sum;
  for (size_t outcome = 0; outcome < fabric::kOpOutcomes; ++outcome) {
    sum.Add(counters.at(kind, static_cast<fabric::OpOutcome>(outcome)));
  }
  return sum;
}

const VerbTally& Of(const OpTally& tally, Purpose purpose) {
  return tally.by_purpose[static_cast<size_t>(purpose)];
}

double Per(double amount, uint64_t operations) {
  return operations == 0 ? 0 : amount / static_cast<double>(operations);
}

std::string Rate(double per_second) { return Grouped(static_cast<uint64_t>(per_second + 0.5)); }

std::string Micros(uint64_t nanos) { return fmt::format("{:.2f}", static_cast<double>(nanos) / 1000); }

std::string HeadText(const BenchPlan& plan) {
  const bool simulated = plan.fabric == BenchFabric::kSim;
  std::string text;
  text += fmt::format("workload      {}, {}, seed {}\n", plan.mix.name,
                      plan.mix.is_load ? "in order" : Name(plan.distribution), plan.seed);
  text += fmt::format("engine        {}{}{}\n", plan.engine_name, plan.engine_options.empty() ? "" : ", ",
                      index::ToText(plan.engine_options));
  text += fmt::format("fabric        {}, {} memory node{}",
                      simulated ? "sim (times are virtual)" : FabricText(plan), plan.nodes,
                      plan.nodes == 1 ? "" : "s");
  if (simulated)
    text += fmt::format(", {} compute node{}", plan.compute_nodes, plan.compute_nodes == 1 ? "" : "s");
  text += fmt::format("\nclients       {}, each with {} operation{} in flight\n", plan.clients, plan.depth,
                      plan.depth == 1 ? "" : "s");
  text += fmt::format("records       {}, keys of {} and values of {} bytes\n", Grouped(plan.records),
                      plan.key_size, plan.value_size);
  return text;
}

std::string PhaseRow(std::string_view name, const BenchTally& tally) {
  return fmt::format("{:<14}{:>14}{:>12.3f}{:>16}\n", name, Grouped(tally.operations), tally.seconds(),
                     Rate(OpsPerSecond(tally)));
}

std::string PhasesText(const BenchResult& result, const Paint& paint) {
  std::string text =
      paint.Dim(fmt::format("{:<14}{:>14}{:>12}{:>16}", "phase", "operations", "seconds", "ops/s")) + "\n";
  if (result.run.load != nullptr) text += PhaseRow("load", *result.run.load);
  text += PhaseRow("run", *result.run.run);
  if (result.raw.has_value()) text += PhaseRow("run of raw", *result.raw->run);
  return text;
}

std::string LatencyRow(std::string_view name, const Histogram& latency) {
  return fmt::format("{:<20}{:>12}{:>10}{:>10}{:>10}{:>12}\n", name, Grouped(latency.Count()),
                     Micros(latency.ValueAtQuantile(0.5)), Micros(latency.ValueAtQuantile(0.99)),
                     Micros(latency.ValueAtQuantile(0.999)), Micros(latency.Max()));
}

std::string LatencyText(const BenchTally& tally, const Paint& paint) {
  std::string text = paint.Dim(fmt::format("{:<20}{:>12}{:>10}{:>10}{:>10}{:>12}", "latency, us", "count",
                                           "p50", "p99", "p999", "max")) +
                     "\n";
  for (size_t action = 0; action < workload::kActions; ++action) {
    const Histogram& latency = tally.latency[action];
    if (latency.Count() > 0) text += LatencyRow(Name(static_cast<workload::Action>(action)), latency);
  }
  return text;
}

std::string TripsText(const BenchTally& tally, const Paint& paint) {
  std::string text =
      paint.Dim(fmt::format("{:<20}{:>12}{:>12}", "trips per operation", "index", "end to end")) + "\n";
  for (const OpKind kind : kOperationKinds) {
    const std::optional<KindCost> cost = CostOf(tally, kind);
    if (cost.has_value())
      text +=
          fmt::format("{:<20}{:>12.3f}{:>12.3f}\n", Name(kind), cost->index_trips, cost->end_to_end_trips);
  }
  const OperationCost cost = CostOf(tally);
  text += fmt::format("{:<20}{:>12}{:>12.3f}\n", "maintenance beside", "", cost.maintenance_trips);
  text += fmt::format(
      "\nbytes         {:.1f} read and {:.1f} written by an operation; maintenance {:.1f} beside\n",
      cost.bytes_read, cost.bytes_written, cost.maintenance_bytes);
  if (const std::optional<double> records = RecordsPerScan(tally))
    text += fmt::format("scans         {:.1f} records returned by each\n", *records);
  text += fmt::format("failed CAS    {:.4f} of an operation, and {:.4f} retries\n", cost.cas_failed,
                      cost.retries);
  return text;
}

std::string FlushesText(const BenchRun& run) {
  const std::optional<FlushCost> cost = FlushesOf(run);
  if (!cost.has_value()) return "";
  return fmt::format("flushes       {:.3f} lines made durable by an operation, in {:.3f} drains\n",
                     cost->lines, cost->drains);
}

std::string MemoryText(const BenchRun& run) {
  const double index = Per(static_cast<double>(run.memory.index_bytes), run.records);
  const double blocks = Per(static_cast<double>(run.memory.block_bytes), run.records);
  std::string text = fmt::format(
      "far memory    {:.1f} bytes a record: {:.1f} of the index and {:.1f} of blocks\n"
      "client memory {} bytes\n",
      index + blocks, index, blocks, Grouped(run.stats.client_bytes));
  for (const auto& [name, value] : run.stats.details) text += fmt::format("{:<21} {:.4g}\n", name, value);
  return text;
}

std::string OfRawText(const BenchResult& result) {
  if (!result.raw.has_value()) return "";
  const auto bucket = result.raw_plan->engine_options.find("bucket");
  const auto block = result.raw_plan->engine_options.find("block");
  return fmt::format(
      "of raw        {:.1f} % of a bare array of slots: a search in 2 trips, buckets of {} and blocks of {} "
      "bytes\n",
      100 * result.OfRaw().value_or(0), bucket->second, block->second);
}

std::string ModelText(const BenchRun& run) {
  if (run.model.empty()) return "";
  std::string text = "\nmodel        ";
  for (const BenchFigure& figure : run.model) {
    if (text.size() - text.rfind('\n') > 70) text += "\n             ";
    text += fmt::format(" {} {}{}{};", figure.name, Grouped(figure.value), figure.unit.empty() ? "" : " ",
                        figure.unit);
  }
  text.back() = '\n';
  text += "busiest      ";
  for (size_t i = 0; i < std::min(kUsesShown, run.uses.size()); ++i) {
    text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", run.uses[i].name, 100 * run.uses[i].share);
  }
  const bool bound = !run.uses.empty() && run.uses.front().share >= kBusy;
  text +=
      bound ? fmt::format("; {} binds\n", run.uses.front().name) : "; none of them binds: the clients do\n";
  return text;
}

}  // namespace

std::optional<double> BenchResult::OfRaw() const {
  if (!raw.has_value()) return std::nullopt;
  const double raw_rate = OpsPerSecond(*raw->run);
  return raw_rate > 0 ? OpsPerSecond(*run.run) / raw_rate : 0;
}

uint64_t BenchResult::Errors() const {
  return run.run->errors + (run.load != nullptr ? run.load->errors : 0);
}

double OpsPerSecond(const BenchTally& tally) {
  return tally.seconds() > 0 ? static_cast<double>(tally.operations) / tally.seconds() : 0;
}

Histogram AllLatencies(const BenchTally& tally) {
  Histogram all;
  for (const Histogram& latency : tally.latency) all.Merge(latency);
  return all;
}

std::optional<KindCost> CostOf(const BenchTally& tally, OpKind kind) {
  const OpTally sum = AllOutcomes(tally.counters, kind);
  if (sum.operations == 0) return std::nullopt;
  return KindCost{.index_trips = Per(static_cast<double>(sum.index_trips), sum.operations),
                  .end_to_end_trips = Per(static_cast<double>(sum.end_to_end_trips), sum.operations)};
}

std::optional<double> RecordsPerScan(const BenchTally& tally) {
  const uint64_t scans = tally.latency[static_cast<size_t>(workload::Action::kScan)].Count();
  if (scans == 0) return std::nullopt;
  return Per(static_cast<double>(tally.scanned), scans);
}

std::optional<FlushCost> FlushesOf(const BenchRun& run) {
  const uint64_t operations = run.run->operations;
  if (run.flushed == fabric::FlushCounts{} || operations == 0) return std::nullopt;
  return FlushCost{.lines = Per(static_cast<double>(run.flushed.lines), operations),
                   .drains = Per(static_cast<double>(run.flushed.drains), operations)};
}

OperationCost CostOf(const BenchTally& tally) {
  OpTally operations;
  for (const OpKind kind : kOperationKinds) operations.Add(AllOutcomes(tally.counters, kind));
  const OpTally maintenance = AllOutcomes(tally.counters, OpKind::kMaintenance);
  const uint64_t count = tally.operations;

  OperationCost cost;
  uint64_t aside_bytes = 0;
  for (const Purpose purpose : {Purpose::kIndex, Purpose::kBlock}) {
    const VerbTally& part = Of(operations, purpose);
    cost.bytes_read += Per(static_cast<double>(part.bytes_read), count);
    cost.bytes_written += Per(static_cast<double>(part.bytes_written), count);
    cost.cas_failed += Per(static_cast<double>(part.failed_cas), count);
  }
  const VerbTally& inside = Of(operations, Purpose::kMaintenance);
  aside_bytes += inside.bytes_read + inside.bytes_written;
  for (const VerbTally& part : maintenance.by_purpose) aside_bytes += part.bytes_read + part.bytes_written;
  cost.retries = Per(static_cast<double>(operations.retries), count);
  cost.maintenance_trips =
      Per(static_cast<double>(operations.maintenance_trips + maintenance.maintenance_trips +
                              maintenance.end_to_end_trips),
          count);
  cost.maintenance_bytes = Per(static_cast<double>(aside_bytes), count);
  return cost;
}

double BucketBytes(const BenchTally& tally) {
  const OpTally searches = AllOutcomes(tally.counters, OpKind::kSearch);
  if (searches.operations > 0)
    return Per(static_cast<double>(Of(searches, Purpose::kIndex).bytes_read), searches.operations);
  OpTally all;
  for (const OpKind kind : kOperationKinds) all.Add(AllOutcomes(tally.counters, kind));
  return Per(static_cast<double>(Of(all, Purpose::kIndex).bytes_read), all.operations);
}

std::string BenchText(const BenchPlan& plan, const BenchResult& result, const Paint& paint) {
  const BenchTally& run = *result.run.run;
  std::string text = HeadText(plan);
  text += "\n" + PhasesText(result, paint);
  text += "\n" + LatencyText(run, paint);
  text += "\n" + TripsText(run, paint);
  text += FlushesText(result.run);
  text += MemoryText(result.run);
  text += OfRawText(result);
  text += ModelText(result.run);
  text += fmt::format("errors        {}\n", Grouped(result.Errors()));
  for (const BenchTally* tally : {result.run.load.get(), result.run.run.get()}) {
    if (tally != nullptr && !tally->first_problem.empty())
      text += fmt::format("the first     {}\n", paint.Red(tally->first_problem));
  }
  return text;
}

}  // namespace farside::tools
