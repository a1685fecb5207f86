// farside_peers: Farside beside redis and memcached. `./dev bench peers` installs those, builds this and runs
// it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

#include <fmt/format.h>

#include "bench/peers/campaign.h"
#include "bench/peers/chart.h"
#include "bench/peers/idle.h"
#include "bench/peers/interrupt.h"
#include "bench/peers/line_up.h"
#include "bench/peers/options.h"
#include "bench/peers/report.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"

namespace farside::peers {
namespace {

using tools::ExitCode;

constexpr std::string_view kProgram = "farside_peers";

Status WriteFile(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (file.flush()) return OkStatus();
  return Error(ErrorCode::kUnavailable, fmt::format("cannot write {}", path.string()));
}

Status WriteFiles(const std::string& folder, const Results& results) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  const std::filesystem::path where(folder);
  if (Status wrote = WriteFile(where / "peers.svg", Chart(results)); !wrote.ok()) return wrote;
  if (Status wrote = WriteFile(where / "peers.json", ReportJson(results)); !wrote.ok()) return wrote;
  fmt::print(stderr, "{}: wrote {} and {}\n", kProgram, (where / "peers.svg").string(),
             (where / "peers.json").string());
  return OkStatus();
}

Status RunIdle(const PeersCommand& command, const LineUp& line_up, Interrupt& interrupt) {
  const Result<std::vector<IdleRow>> rows =
      MeasureIdle(line_up.systems(), command.idle_connections, command.idle_seconds, interrupt);
  if (!rows.ok()) return rows.error();
  tools::Print(command.json ? IdleJson(*rows, command.idle_seconds) : IdleText(*rows, command.idle_seconds));
  return OkStatus();
}

// With a progress line, which is wiped before anything is printed.
Result<Results> MeasureAll(const PeersCommand& command, const LineUp& line_up, Interrupt& interrupt) {
  tools::ProgressLines lines(Nanos{0});
  const auto show = [&lines](std::string_view, uint64_t done, uint64_t total) {
    lines.Show("measuring", done, total, "steps");
  };
  return RunCampaign(line_up.systems(), command.campaign, interrupt, show);
}

Status RunAll(const PeersCommand& command, const LineUp& line_up, Interrupt& interrupt) {
  const Result<Results> results = MeasureAll(command, line_up, interrupt);
  if (!results.ok()) return results.error();
  tools::Print(command.json ? ReportJson(*results) : ReportText(*results));
  if (command.folder.empty()) return OkStatus();
  return WriteFiles(command.folder, *results);
}

Status Run(const PeersCommand& command) {
  // Before everything else: no thread may exist yet.
  Result<Interrupt> interrupt = Interrupt::Watch();
  if (!interrupt.ok()) return interrupt.error();
  LineUpOptions options;
  options.specs = command.specs;
  options.records = command.campaign.records;
  options.value_size = command.campaign.value_size;
  options.farside_program = command.farside_program;
  const size_t clients = *std::max_element(command.campaign.clients.begin(), command.campaign.clients.end());
  options.connections = static_cast<uint32_t>(command.idle ? command.idle_connections : clients);
  const Result<LineUp> line_up = LineUp::Start(options, *interrupt);
  if (!line_up.ok()) return line_up.error();
  return command.idle ? RunIdle(command, *line_up, *interrupt) : RunAll(command, *line_up, *interrupt);
}

ExitCode Main(int argc, const char* const* argv) {
  const auto parsed = ParseOptions(argc, argv);
  if (const auto* help = std::get_if<HelpText>(&parsed)) {
    tools::Print(help->text);
    return tools::FinishOutput(tools::kSuccess);
  }
  if (const auto* wrong = std::get_if<UsageError>(&parsed)) return tools::WrongUsage(kProgram, wrong->why);
  const Status ran = Run(std::get<PeersCommand>(parsed));
  if (ran.ok()) return tools::FinishOutput(tools::kSuccess);
  if (ran.error().code() != ErrorCode::kCorrupt) return tools::CouldNotRun(kProgram, ran.error().message());
  fmt::print(stderr, "{}: {}\n", kProgram, ran.error().message());
  return tools::kDoesNotHold;
}

}  // namespace
}  // namespace farside::peers

int main(int argc, char** argv) { return farside::peers::Main(argc, argv); }
