// The chime table beside a B+ tree that is read as the paper describes Sherman: the same tree, by a client
// whose options say so. Both are measured on the simulated cluster of the paper: ten machines with 64
// operations in flight each, and one memory node.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "index/chime/layout.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/chime.h"

namespace farside::tools::paper {
namespace {

constexpr std::optional<double> kNotGiven;
constexpr uint32_t kMachines = 10;
constexpr uint32_t kInFlight = 64;
// Of a leaf of Sherman with 64 entries and the versions that the paper gives it, computed from its
// description; and what the wire adds to an answer, in the model.
constexpr double kShermanLeafBytes = 1132;
constexpr double kHeaderBytes = 64;

index::OptionMap AsSherman() {
  return {{"keys", "inline"},       {"hotspot", "0"},         {"leaf_read", "whole"},
          {"insert_read", "whole"}, {"fence_read", "always"}, {"lock_read", "apart"}};
}

index::OptionMap AsOurs(uint64_t records) {
  return {{"keys", "inline"}, {"hotspot", std::to_string(records / kRecordsPerHotspotByte)}};
}

uint64_t RecordsOf(const Settings& settings) { return settings.Scaled(100'000, 3'000'000, 2000); }

BenchCommand OnCluster(std::string_view workload, const index::OptionMap& options, const Settings& settings) {
  BenchCommand command;
  command.engine = "chime";
  command.options = options;
  command.workload = workload;
  command.fabric = "sim";
  command.records = RecordsOf(settings);
  if (workload != "load") {
    const bool scans = workload == "e";
    command.ops = settings.Scaled(scans ? 100'000 : 300'000, 3'000'000, 5000);
    command.warmup = settings.Scaled(scans ? 20'000 : 100'000, 1'000'000, 2000);
  }
  command.compute_nodes = kMachines;
  command.clients = kMachines;
  command.depth = kInFlight;
  return command;
}

// What was used most: "memory 0 verbs 99.9 %".
std::string BusiestOf(const BenchRun& run) {
  if (run.uses.empty()) return "nothing";
  return fmt::format("{} {:.1f} %", run.uses.front().name, 100 * run.uses.front().share);
}

std::string SetUpOf(const Settings& settings) {
  return fmt::format(
      "{} machines with {} operations in flight each, which share what they remember; one memory node, 100 "
      "Gb/s;\n"
      "{} records, keys=inline; simulated. Keys are drawn as YCSB does.",
      kMachines, kInFlight, Grouped(RecordsOf(settings)));
}

// ---- figure 12 -----------------------------------------------------------------------------------------

struct Compared {
  std::string_view workload;
  double paper;  // times Sherman's throughput
  bool promised;
};
constexpr std::array kCompared = {
    Compared{"c", 4.3, true},  Compared{"a", 2.2, true},  Compared{"e", 1.2, true},
    Compared{"b", 3.6, false}, Compared{"d", 4.2, false}, Compared{"load", 1.6, false},
};

Status AddCompared(const Compared& compared, const Settings& settings, Report& report, std::string& binds) {
  std::array<double, 2> rates{};
  std::array<std::string, 2> busiest;
  for (size_t i = 0; i < rates.size(); ++i) {
    const Result<BenchRun> run = Measure(
        OnCluster(compared.workload, i == 0 ? AsOurs(RecordsOf(settings)) : AsSherman(), settings), settings);
    if (!run.ok()) return run.error();
    rates[i] = OpsPerSecond(*run->run);
    busiest[i] = BusiestOf(*run);
  }
  const std::string name(compared.workload);
  report.rows.push_back({fmt::format("{}, times the B+ tree", name), compared.paper, rates[0] / rates[1],
                         compared.promised ? Rule::AtLeast(compared.paper) : Rule::Reported(), Unit::kTimes});
  report.rows.push_back(
      {fmt::format("{}, chime", name), kNotGiven, rates[0], Rule::Reported(), Unit::kOpsPerSecond});
  report.rows.push_back(
      {fmt::format("{}, the B+ tree", name), kNotGiven, rates[1], Rule::Reported(), Unit::kOpsPerSecond});
  if (compared.workload == "c") {
    const index::chime::Shape shape{.inline_keys = true};
    const double packed =
        (static_cast<double>(shape.leaf_bytes()) + kHeaderBytes) / (kShermanLeafBytes + kHeaderBytes);
    report.rows.push_back({"c, if its leaves had 1132 bytes, computed", kNotGiven,
                           rates[0] / (rates[1] * packed), Rule::Reported(), Unit::kTimes});
  }
  binds += fmt::format("\n  {:<6}{:<34}{}", name, busiest[0], busiest[1]);
  return OkStatus();
}

}  // namespace

Result<Report> RunChimeSherman(const Settings& settings) {
  Report report;
  report.set_up =
      SetUpOf(settings) +
      "\nThe B+ tree is the same one, whose leaves are read whole and with their fence, by searches "
      "and by\nchanges, and locked in a trip of its own.";
  std::string binds;
  for (const Compared& compared : kCompared) {
    if (Status added = AddCompared(compared, settings, report, binds); !added.ok()) return added.error();
  }
  report.note =
      "What was used most by chime, and by the B+ tree:" + binds +
      "\n"
      "c: a leaf that is packed as the paper describes Sherman's has 1132 bytes, ours 1088; the row that is\n"
      "computed says what it would be with those, if the B+ tree did less in proportion to its bytes.\n"
      "a: a lock is taken by a CAS, of which the model's card does 9 million in a second, and released by a\n"
      "WRITE, as in the paper.\n"
      "e: the paper's scans read the neighbourhoods of the keys that they ask for, and so must know them.\n"
      "Ours return what is there, for which leaves are read whole, as by the B+ tree.";
  return report;
}

// ---- figure 15 -----------------------------------------------------------------------------------------

namespace {

struct Technique {
  std::string_view name;
  std::string_view option;  // that is left to its default from here on
  std::string_view workload;
  std::optional<double> paper;  // times the throughput of the step before, on that workload
};
// In the order of the paper, but for the last but one, which is ours.
constexpr std::array kTechniques = {
    Technique{"neighbourhoods", "leaf_read", "c", 2.3},
    Technique{"inserts read neighbourhoods", "insert_read", "load", 1.6},
    Technique{"no fence for what is found", "fence_read", "c", 1.6},
    Technique{"lock and read in one trip", "lock_read", "a", kNotGiven},
    Technique{"speculative reads", "hotspot", "c", 1.2},
};
constexpr std::array<std::string_view, 3> kWorkloadsOfFigure15 = {"c", "load", "a"};

Status AddStep(std::string_view name, const index::OptionMap& options, const Settings& settings,
               std::array<double, kWorkloadsOfFigure15.size()>& rates, Report& report) {
  for (size_t i = 0; i < rates.size(); ++i) {
    const Result<BenchRun> run = Measure(OnCluster(kWorkloadsOfFigure15[i], options, settings), settings);
    if (!run.ok()) return run.error();
    rates[i] = OpsPerSecond(*run->run);
    report.rows.push_back({fmt::format("{}: {}", name, kWorkloadsOfFigure15[i]), kNotGiven, rates[i],
                           Rule::Reported(), Unit::kOpsPerSecond});
  }
  return OkStatus();
}

}  // namespace

Result<Report> RunChimeFigure15(const Settings& settings) {
  Report report;
  std::array<double, kWorkloadsOfFigure15.size()> before{};
  index::OptionMap options = AsSherman();
  if (Status added = AddStep("B+ tree", options, settings, before, report); !added.ok()) return added.error();
  for (const Technique& technique : kTechniques) {
    options.erase(std::string(technique.option));
    if (technique.option == "hotspot") options = AsOurs(RecordsOf(settings));
    std::array<double, kWorkloadsOfFigure15.size()> rates{};
    const std::string name = fmt::format("+ {}", technique.name);
    if (Status added = AddStep(name, options, settings, rates, report); !added.ok()) return added.error();
    for (size_t i = 0; i < rates.size(); ++i) {
      if (kWorkloadsOfFigure15[i] != technique.workload) continue;
      report.rows.push_back({fmt::format("{}: {}, of the step before", name, technique.workload),
                             technique.paper, rates[i] / before[i], Rule::Reported(), Unit::kTimes});
    }
    before = rates;
  }
  report.set_up = SetUpOf(settings) +
                  "\nThe B+ tree of chime-sherman, and then one technique after the other, each with those "
                  "before it.";
  report.note =
      "The paper's metadata replication saves a READ of the leaf's header; ours is not read when a key is "
      "found.\n"
      "Its vacancy bitmap lets inserts read less than a leaf; ours read the neighbourhood, and all of the "
      "leaf\n"
      "only if that is full.";
  return report;
}

}  // namespace farside::tools::paper
