#include "tools/demo/demo.h"

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "check/campaign.h"
#include "store/engines.h"
#include "tools/check/check.h"
#include "tools/check/report.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/version.h"
#include "tools/demo/parts.h"

namespace farside::tools {
namespace {

constexpr uint64_t kDemoSeeds = 2;
constexpr std::array kParts = {demo::ShowTable, demo::ShowGrowth, demo::ShowEngines, demo::ShowCrash};

// With the options under which small tables pass through everything that large ones do.
ExitCode ShowCampaign(const std::string& program, const Paint& paint, int number) {
  Print(demo::Heading(paint, number, "A search for bugs"));
  Print(
      "Four clients on three keys of a shard table that is so small that it splits all the time. The "
      "simulator\n"
      "reorders, tears and delays what it may, and a short run is repeated with a fault at each of its "
      "verbs. Every\n"
      "history is checked for linearizability.\n\n");
  CheckCommand command;
  command.program = program;
  command.engine = "shard";
  command.campaign.seeds = kDemoSeeds;
  command.campaign.crash = true;
  std::vector<std::shared_ptr<index::Engine>> engines;
  std::vector<index::Engine*> subjects;
  for (const index::OptionMap& options : (*store::MakeEngine(command.engine, {}))->stress_options()) {
    engines.push_back(*store::MakeEngine(command.engine, options));
    subjects.push_back(engines.back().get());
  }
  CheckResult result;
  {
    ProgressLine progress("checking", "seeds", kDemoSeeds, Nanos{0});
    result.report =
        check::RunCampaign(check::Subjects(subjects), command.campaign,
                           [&](const check::CampaignReport& so_far) { progress.Show(so_far.seeds); });
  }
  if (!result.report.ok()) {
    Print(CampaignText(command, result));
    return kDoesNotHold;
  }
  Print(fmt::format("  {} seeds, {} histories, {} verbs, {} crash points: {}\n", Grouped(result.report.seeds),
                    Grouped(result.report.histories), Grouped(result.report.verbs),
                    Grouped(result.report.crash_points), paint.Green("0 violations")));
  return kSuccess;
}

void ShowNext(const std::string& program, const Paint& paint) {
  struct Hint {
    std::string_view arguments;
    std::string_view what;
  };
  constexpr std::array kHints = {
      Hint{"bench --engine shard --workload a", "throughput, latency and trips, on this machine"},
      Hint{"bench --engine shard --fabric sim --clients 64 --ops 200000", "the same, of a cluster"},
      Hint{"paper shard-levels", "what a paper reports against what we measure"},
      Hint{"table create 'file:demo.farside?size=64MiB' users --engine shard", "a table that stays"},
      Hint{"check --engine shard --seeds 200", "a longer search for bugs"},
      Hint{"check --engine reference --replay 1:50:crash-after", "one run of it, verb by verb"},
      Hint{"doctor", "what this machine can do"},
      Hint{"help", "all commands"},
  };
  Print(fmt::format("\n{}\n\n", paint.Bold("What to try next")));
  for (const Hint& hint : kHints) {
    Print(fmt::format("  {} {:<64}  {}\n", ShellQuoted(program), hint.arguments,
                      paint.Dim(fmt::format("# {}", hint.what))));
  }
}

}  // namespace

ExitCode Demo(const DemoCommand& command) {
  const Paint paint = Paint::ForStdout();
  Print(fmt::format("{} {}: key-value tables in far memory\n", paint.Bold("Farside"), Version()));
  int number = 0;
  for (const auto& show : kParts) {
    if (Status status = show(paint, ++number); !status.ok())
      return CouldNotRun("farside demo", status.error().ToString());
  }
  const ExitCode checked = ShowCampaign(command.program, paint, ++number);
  ShowNext(command.program, paint);
  return checked;
}

}  // namespace farside::tools
