#include "bench/peers/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/common/output.h"

namespace farside::peers {
namespace {

constexpr double kTooMuch = 0.1;

void AppendSetting(const Results& results, std::string& text) {
  const Setting& setting = results.setting;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "machine   {}, {} cores, {:.1f} GiB, {}\n", setting.processor, setting.cores,
                 static_cast<double>(setting.memory_bytes) / (1 << 30), setting.kernel);
  fmt::format_to(out, "records   {}, keys of {} and values of {} bytes, keys drawn uniformly\n",
                 tools::Grouped(setting.records), kKeyBytes, setting.value_size);
  fmt::format_to(out, "runs      {} rounds of {} s, systems in turns; medians\n", setting.rounds,
                 setting.seconds);
  fmt::format_to(out, "versions  farside {}", setting.commit);
  std::vector<std::string> said;
  for (const SystemInfo& system : results.systems) {
    if (system.version.empty() || std::find(said.begin(), said.end(), system.version) != said.end()) continue;
    said.push_back(system.version);
    fmt::format_to(out, ", {}", system.version);
  }
  text += '\n';
  if (!setting.taken_by_others.has_value()) return;
  fmt::format_to(out, "others    took {:.0f} % of the processors meanwhile{}\n",
                 *setting.taken_by_others * 100,
                 *setting.taken_by_others > kTooMuch ? ": too much for figures to mean anything" : "");
}

void AppendRow(const Results& results, const Cell& cell, const Entry& entry, size_t width,
               std::string& text) {
  const Figures middle = entry.Middle();
  const std::optional<double> ratio = BaseAgainst(results, cell, entry);
  const double spread =
      middle.ops_per_second > 0 ? (entry.Fastest() - entry.Slowest()) / 2 / middle.ops_per_second * 100 : 0;
  fmt::format_to(std::back_inserter(text), "{:<{}}{:>7}{:>12} {:>4.0f} %{:>11.1f}{:>11.1f}{:>11}  {}\n",
                 results.systems[entry.system].name, width, cell.depth, ShortNumber(middle.ops_per_second),
                 spread, middle.p50_us, middle.p99_us, ratio.has_value() ? fmt::format("{:.2f}", *ratio) : "",
                 entry.manner);
  while (text.ends_with(" \n")) text.erase(text.size() - 2, 1);
}

nlohmann::json ToJson(const Results& results, const Cell& cell, const Entry& entry) {
  const Figures middle = entry.Middle();
  nlohmann::json json = {{"system", results.systems[entry.system].name},
                         {"operation", Name(cell.operation)},
                         {"clients", cell.clients},
                         {"depth", cell.depth},
                         {"manner", entry.manner},
                         {"ops_per_second", middle.ops_per_second},
                         {"latency_us", {{"p50", middle.p50_us}, {"p99", middle.p99_us}}}};
  const std::optional<double> ratio = BaseAgainst(results, cell, entry);
  json["base_against_this"] = ratio.has_value() ? nlohmann::json(*ratio) : nlohmann::json();
  for (const Figures& round : entry.rounds) {
    json["rounds"].push_back(
        {{"ops_per_second", round.ops_per_second}, {"p50", round.p50_us}, {"p99", round.p99_us}});
  }
  return json;
}

}  // namespace

std::string ShortNumber(double number) {
  if (!std::isfinite(number)) return "-";
  if (number >= 999'500) return fmt::format("{:.2f} M", number / 1e6);
  if (number >= 999.5) return fmt::format("{:.1f} k", number / 1e3);
  return fmt::format("{:.0f}", number);
}

std::string ReportText(const Results& results) {
  std::string text;
  AppendSetting(results, text);
  size_t width = 8;
  for (const SystemInfo& system : results.systems) width = std::max(width, system.name.size());
  const std::string base = results.base.has_value() ? "base/this" : "";
  const Cell* last = nullptr;
  for (const Cell& cell : results.cells) {
    if (last == nullptr || last->operation != cell.operation || last->clients != cell.clients) {
      fmt::format_to(std::back_inserter(text),
                     "\n{}, {} client{}\n{:<{}}{:>7}{:>12} {:>6}{:>11}{:>11}{:>11}  {}\n",
                     Name(cell.operation), cell.clients, cell.clients == 1 ? "" : "s", "system", width,
                     "depth", "ops/s", "+-", "p50 us", "p99 us", base, "asked by");
    } else {
      text += '\n';
    }
    last = &cell;
    for (const Entry& entry : cell.entries) AppendRow(results, cell, entry, width, text);
  }
  if (results.base.has_value()) {
    fmt::format_to(std::back_inserter(text), "\nbase/this: how many times as fast as this '{}' was\n",
                   results.systems[*results.base].name);
  }
  return text;
}

std::string ReportJson(const Results& results) {
  const Setting& setting = results.setting;
  nlohmann::json json = {{"machine",
                          {{"processor", setting.processor},
                           {"cores", setting.cores},
                           {"memory_bytes", setting.memory_bytes},
                           {"kernel", setting.kernel}}},
                         {"commit", setting.commit},
                         {"records", setting.records},
                         {"key_size", kKeyBytes},
                         {"value_size", setting.value_size},
                         {"rounds", setting.rounds},
                         {"seconds", setting.seconds}};
  json["taken_by_others"] =
      setting.taken_by_others.has_value() ? nlohmann::json(*setting.taken_by_others) : nlohmann::json();
  json["base"] =
      results.base.has_value() ? nlohmann::json(results.systems[*results.base].name) : nlohmann::json();
  json["systems"] = nlohmann::json::array();
  for (const SystemInfo& system : results.systems) {
    json["systems"].push_back({{"name", system.name}, {"version", system.version}});
  }
  json["cells"] = nlohmann::json::array();
  for (const Cell& cell : results.cells) {
    for (const Entry& entry : cell.entries) json["cells"].push_back(ToJson(results, cell, entry));
  }
  // Names come from the command line: any bytes, which JSON does not take.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace farside::peers
