#include "tools/paper/paper.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "tools/common/output.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

using paper::Experiment;
using paper::Report;
using paper::Row;

constexpr Nanos kPatience = std::chrono::milliseconds(500);
constexpr std::string_view kSelf = "farside paper";

ExitCode List(bool json) {
  if (json) {
    Print(PaperNamesJson());
    return kSuccess;
  }
  for (const Experiment& experiment : paper::Experiments())
    Print(fmt::format("{:<18}{}\n", experiment.name, experiment.title));
  return kSuccess;
}

std::string ClaimResult(const Row& row, const Paint& paint, bool unicode) {
  if (!row.rule.promises()) return "";
  if (row.holds()) return paint.Green(unicode ? "✓" : "holds");
  return paint.Red(unicode ? "✗ does not hold" : "DOES NOT HOLD");
}

std::string RowsText(const std::vector<Row>& rows, const Paint& paint, bool unicode) {
  size_t metric = 6;
  size_t ours = 10;
  for (const Row& row : rows) {
    metric = std::max(metric, row.metric.size());
    ours = std::max(ours, Format(row.unit, row.ours).size());
  }
  std::string text =
      paint.Dim(fmt::format("{:<{}}  {:>9}  {:>{}}   {}", "metric", metric, "paper", "ours", ours, "rule")) +
      "\n";
  for (const Row& row : rows) {
    const std::string reported = row.paper.has_value() ? Format(row.unit, *row.paper) : "-";
    const std::string verdict = ClaimResult(row, paint, unicode);
    text += fmt::format("{:<{}}  {:>9}  {:>{}}   ", row.metric, metric, reported, Format(row.unit, row.ours),
                        ours);
    text +=
        verdict.empty() ? row.rule.Text(row.unit) : fmt::format("{:<12}{}", row.rule.Text(row.unit), verdict);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string PaperText(const Experiment& experiment, const Report& report, const Paint& paint, bool unicode) {
  std::string text =
      fmt::format("{}: {}\n\n{}\n\n", paint.Bold(experiment.name), experiment.title, report.set_up);
  for (const paper::Plot& plot : report.plots) text += PlotText(plot, unicode) + "\n";
  text += RowsText(report.rows, paint, unicode);
  if (!report.note.empty()) text += "\n" + report.note + "\n";
  return text;
}

ExitCode Paper(const PaperCommand& command) {
  if (command.name == "list") return List(command.json);
  const Experiment* experiment = paper::FindExperiment(command.name);
  if (experiment == nullptr) {
    return WrongUsage(kSelf, fmt::format("there is no experiment '{}'; 'farside paper list' has them all",
                                         Escape(command.name)));
  }
  Result<Report> report = Error(ErrorCode::kUnavailable, "not run");
  {
    ProgressLines lines(kPatience);
    paper::Settings settings{.percent = command.percent, .full = command.full};
    settings.progress = [&](std::string_view what, uint64_t done, uint64_t total, std::string_view unit) {
      if (!command.json) lines.Show(what, done, total, unit);
    };
    report = experiment->run(settings);
  }
  if (!report.ok()) return CouldNotRun(kSelf, report.error().message());
  Print(command.json ? ToJson(command, *experiment, *report)
                     : PaperText(*experiment, *report, Paint::ForStdout(), StdoutDrawsUnicode()));
  return paper::AllHold(report->rows) ? kSuccess : kDoesNotHold;
}

}  // namespace farside::tools
