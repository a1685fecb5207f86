#include "tools/check/report.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "check/history.h"
#include "check/shrink.h"
#include "tools/common/output.h"

namespace farside::tools {
namespace {

using check::CampaignReport;
using check::RunName;
using check::RunReport;

// A longer history says little to a person; the replay shows all of it.
constexpr size_t kMostOperationsShown = 16;

std::string Indented(std::string_view text) {
  std::string indented;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    indented += fmt::format("  {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return indented;
}

std::string Row(std::string_view what, std::string_view value) {
  return fmt::format("{:<14}{}\n", what, value);
}

std::string Seeds(const CheckCommand& command, const CampaignReport& report) {
  const uint64_t first = command.campaign.first_seed;
  if (report.seeds == 1) return fmt::format("1 (seed {})", first);
  return fmt::format("{} (seeds {} to {})", Grouped(report.seeds), first, first + report.seeds - 1);
}

std::string Speed(uint64_t verbs, double seconds) {
  const double each_second = static_cast<double>(verbs) / std::max(seconds, 1e-6);
  return fmt::format("{} ({:.1f} s)", Grouped(static_cast<uint64_t>(each_second)), seconds);
}

constexpr std::string_view kWhyUndecided =
    "  this is no proof of a bug: the checker gave up; try fewer clients, fewer operations or more keys\n";

// What a violating run did: the few operations that contradict each other or, if none do, all of them.
std::string Evidence(const RunReport& run) {
  if (run.verdict.answer == check::Answer::kNotLinearizable) {
    return "witness\n" + Indented(check::ToString(check::Shrink(run.history, run.verdict)));
  }
  if (run.history.operations().size() > kMostOperationsShown) return "";
  return "history\n" + Indented(check::Chart(run.history.operations()));
}

std::string TraceText(const std::vector<std::string>& trace) {
  std::string text = "trace (clients numbered from 1 in the order in which they connect)\n";
  for (const std::string& line : trace) text += fmt::format("  {}\n", line);
  return text;
}

// A fault that was asked for may have had no place to happen.
std::string FaultText(const RunName& name, const RunReport& run) {
  if (!name.fault.has_value() || run.fault_fired) return "";
  if (name.fault->kind == fabric::sim::FaultKind::kPowerCut) {
    return run.script_steps == 0
               ? "the fault did not happen: no handler made anything durable\n"
               : fmt::format("the fault did not happen: the handlers of the run have steps 0 to {}\n",
                             run.script_steps - 1);
  }
  if (name.fault->verb >= run.script_verbs) {
    return fmt::format("the fault did not happen: the run has verbs 0 to {}\n", run.script_verbs - 1);
  }
  return fmt::format("the fault did not happen: verb {} gives no occasion for {}\n", name.fault->verb,
                     Name(name.fault->kind));
}

std::string VerdictText(const RunReport& run) {
  if (run.ok()) return check::ToString(run.verdict);
  return (run.undecided() ? "UNDECIDED: " : "VIOLATION: ") + run.problem;
}

std::string Headline(std::string_view what, const check::FailedRun& failed) {
  return fmt::format("\n{}: run {}\n  {}\n", what, failed.run.ToString(), failed.problem);
}

std::string ReplayHint(const CheckCommand& command, const RunName& run) {
  return fmt::format("replay\n  {}\n", ReplayCommand(command, run));
}

}  // namespace

CampaignReport AsCampaign(const RunName& name, const RunReport& run) {
  CampaignReport report;
  report.seeds = 1;
  report.Add(name, run);
  return report;
}

std::string ReplayCommand(const CheckCommand& command, const RunName& run) {
  std::string text = fmt::format("{} check --engine {}", ShellQuoted(command.program), command.engine);
  for (const auto& [key, value] : command.options)
    text += " --option " + ShellQuoted(fmt::format("{}={}", key, value));
  // The scripts of a run with an exact fault have a shape of their own.
  if (!run.fault.has_value()) {
    const check::WorkloadShape& shape = command.campaign.shape;
    const check::WorkloadShape usual;
    if (shape.clients != usual.clients) text += fmt::format(" --clients {}", shape.clients);
    if (shape.operations != usual.operations) text += fmt::format(" --ops {}", shape.operations);
    if (shape.keys != usual.keys) text += fmt::format(" --keys {}", shape.keys);
  }
  if (!command.mutant.empty()) text += " --mutant " + ShellQuoted(command.mutant);
  return text + " --replay " + run.ToString();
}

std::string CampaignText(const CheckCommand& command, const CheckResult& result) {
  const CampaignReport& report = result.report;
  std::string text =
      Row("engine", command.engine) + Row("seeds", Seeds(command, report)) +
      Row("histories", Grouped(report.histories)) + Row("operations", Grouped(report.operations)) +
      Row("verbs", Grouped(report.verbs)) +
      Row("crash points", command.campaign.crash ? Grouped(report.crash_points) : "0 (--crash adds them)") +
      (report.power_cuts > 0 ? Row("power cuts", Grouped(report.power_cuts)) : "") +
      Row("violations", Grouped(report.violations)) + Row("undecided", Grouped(report.undecided));
  if (result.seconds.has_value()) text += Row("verbs/second", Speed(report.verbs, *result.seconds));
  if (report.first_violation.has_value()) {
    text += Headline("first violation", *report.first_violation);
    if (result.shown.has_value()) text += Evidence(*result.shown);
    if (result.trace.has_value()) text += TraceText(*result.trace);
    text += ReplayHint(command, report.first_violation->run);
  }
  if (report.first_undecided.has_value()) {
    text += Headline("first undecided", *report.first_undecided);
    text += kWhyUndecided;
    text += ReplayHint(command, report.first_undecided->run);
  }
  return text;
}

std::string ReplayText(const CheckCommand& command, const CheckResult& result) {
  const RunReport& run = *result.shown;
  std::string text = fmt::format("run {} of {}: {} operations, {} verbs\n", command.replay->ToString(),
                                 command.engine, run.operations, run.verbs);
  text += FaultText(*command.replay, run);
  text += "history\n" + Indented(check::Chart(run.history.operations()));
  text += fmt::format("verdict\n  {}\n", VerdictText(run));
  if (run.undecided()) {
    text += kWhyUndecided;
  } else if (run.verdict.answer == check::Answer::kNotLinearizable) {
    text += Evidence(run);
  }
  if (result.trace.has_value()) text += TraceText(*result.trace);
  return text;
}

}  // namespace farside::tools
