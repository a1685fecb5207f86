#include "bench/peers/results.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "tools/common/machine.h"
#include "tools/common/version.h"

namespace farside::peers {
namespace {

std::vector<double> Column(const std::vector<Figures>& rounds, double Figures::*field) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const Figures& round : rounds) values.push_back(round.*field);
  return values;
}

// The first line of this name in /proc/cpuinfo.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Figures Entry::Middle() const {
  return {.ops_per_second = Median(Column(rounds, &Figures::ops_per_second)),
          .p50_us = Median(Column(rounds, &Figures::p50_us)),
          .p99_us = Median(Column(rounds, &Figures::p99_us))};
}

double Entry::Slowest() const {
  const std::vector<double> values = Column(rounds, &Figures::ops_per_second);
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

double Entry::Fastest() const {
  const std::vector<double> values = Column(rounds, &Figures::ops_per_second);
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::optional<double> BaseAgainst(const Results& results, const Cell& cell, const Entry& entry) {
  const double ours = entry.Middle().ops_per_second;
  for (const Entry& other : cell.entries) {
    if (other.system == results.base && ours > 0) return other.Middle().ops_per_second / ours;
  }
  return std::nullopt;
}

Setting ReadSetting() {
  const tools::Machine machine = tools::ReadMachine();
  Setting setting;
  setting.processor = ProcessorName();
  setting.cores = machine.cores;
  setting.memory_bytes = machine.memory_bytes.value_or(0);
  utsname names{};
  if (::uname(&names) == 0) setting.kernel = fmt::format("{} {}", names.sysname, names.release);
  setting.commit = tools::Commit();
  return setting;
}

}  // namespace farside::peers
