#include "bench/peers/idle.h"

#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/peers/process.h"

namespace farside::peers {
namespace {

using namespace std::chrono_literals;

Result<Nanos> Used(const System& system) {
  const std::optional<Nanos> time = CpuTime(*system.daemon());
  if (!time.has_value()) return Error(ErrorCode::kUnavailable, system.name() + ": the server has ended");
  return *time;
}

}  // namespace

Result<std::vector<IdleRow>> MeasureIdle(const std::vector<std::unique_ptr<System>>& systems,
                                         size_t connections, double seconds, Interrupt& interrupt) {
  std::vector<IdleRow> rows;
  std::vector<std::unique_ptr<Connection>> open;
  for (const std::unique_ptr<System>& system : systems) {
    IdleRow row{.system = system->name(), .has_daemon = system->daemon().has_value()};
    while (row.has_daemon && row.connections < connections) {
      Result<std::unique_ptr<Connection>> connection = system->Connect(1, 8);
      if (!connection.ok() && row.connections == 0) return connection.error();
      if (!connection.ok()) break;  // it has no room for more
      open.push_back(std::move(*connection));
      ++row.connections;
    }
    rows.push_back(std::move(row));
  }
  // What it takes to accept them is over then.
  if (Status waited = interrupt.WaitFor(1s); !waited.ok()) return waited.error();

  const SteadyClock clock;
  std::vector<Nanos> before(systems.size());
  for (size_t i = 0; i < systems.size(); ++i) {
    if (!rows[i].has_daemon) continue;
    const Result<Nanos> used = Used(*systems[i]);
    if (!used.ok()) return used.error();
    before[i] = *used;
  }
  const Nanos began = clock.Now();
  const Status waited =
      interrupt.WaitFor(std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds)));
  if (!waited.ok()) return waited.error();
  const auto passed = static_cast<double>((clock.Now() - began).count());
  for (size_t i = 0; i < systems.size(); ++i) {
    if (!rows[i].has_daemon) continue;
    const Result<Nanos> used = Used(*systems[i]);
    if (!used.ok()) return used.error();
    rows[i].percent = 100 * static_cast<double>((*used - before[i]).count()) / passed;
  }
  return rows;
}

std::string IdleText(const std::vector<IdleRow>& rows, double seconds) {
  std::string text =
      fmt::format("idle for {} s\n{:<32}{:>12}  {}\n", seconds, "system", "connections", "processor");
  for (const IdleRow& row : rows) {
    const std::string used = row.has_daemon ? fmt::format("{:.2f} % of a core", row.percent) : "no server";
    fmt::format_to(std::back_inserter(text), "{:<32}{:>12}  {}\n", row.system, row.connections, used);
  }
  return text;
}

std::string IdleJson(const std::vector<IdleRow>& rows, double seconds) {
  nlohmann::json json = {{"seconds", seconds}, {"systems", nlohmann::json::array()}};
  for (const IdleRow& row : rows) {
    json["systems"].push_back(
        {{"system", row.system},
         {"connections", row.connections},
         {"percent_of_a_core", row.has_daemon ? nlohmann::json(row.percent) : nlohmann::json()}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace farside::peers
