#include "tools/check/check.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "fabric/sim/trace.h"
#include "store/engines.h"
#include "tools/check/report.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

using fabric::sim::Trace;

constexpr Nanos kPatience = std::chrono::milliseconds(500);
// Every run makes a table and verifies all of it, so a large one only costs time.
constexpr uint64_t kMostTableBytes = 1 << 20;

// Runs the named run once more, to look at it closely.
void LookAt(const check::Subjects& engine, const CheckCommand& command, const check::RunName& name,
            bool traced, CheckResult& result) {
  Trace trace;
  result.shown = check::Replay(engine, command.campaign, name, traced ? &trace : nullptr);
  if (traced) result.trace = trace.lines();
}

CheckResult RunTheCampaign(const check::Subjects& engine, const CheckCommand& command) {
  CheckResult result;
  const SteadyClock clock;
  const Nanos start = clock.Now();
  {
    ProgressLine progress("checking " + command.engine, "seeds", command.campaign.seeds, kPatience);
    result.report = check::RunCampaign(
        engine, command.campaign, [&](const check::CampaignReport& so_far) { progress.Show(so_far.seeds); });
  }
  result.seconds = std::chrono::duration<double>(clock.Now() - start).count();
  if (result.report.first_violation.has_value()) {
    LookAt(engine, command, result.report.first_violation->run, command.trace, result);
  } else if (command.trace) {
    result.trace.emplace();
  }
  return result;
}

CheckResult ReplayOneRun(const check::Subjects& engine, const CheckCommand& command) {
  CheckResult result;
  LookAt(engine, command, *command.replay, command.trace || !command.json, result);
  result.report = AsCampaign(*command.replay, *result.shown);
  return result;
}

std::string TextOf(const CheckCommand& command, const CheckResult& result) {
  if (command.json) return ToJson(command, result);
  return command.replay.has_value() ? ReplayText(command, result) : CampaignText(command, result);
}

// With the options that the user gave, or else with those under which small tables show most.
Result<std::vector<std::shared_ptr<index::Engine>>> EnginesFor(const CheckCommand& command) {
  Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(command.engine, command.options);
  if (!engine.ok()) return engine.error();
  if (!command.options.empty()) return std::vector{*engine};
  std::vector<std::shared_ptr<index::Engine>> engines;
  for (const index::OptionMap& options : (*engine)->stress_options())
    engines.push_back(*store::MakeEngine(command.engine, options));
  return engines;
}

}  // namespace

ExitCode Check(const CheckCommand& command) {
  const Result<std::vector<std::shared_ptr<index::Engine>>> engines = EnginesFor(command);
  if (!engines.ok()) return WrongUsage("farside check", engines.error().message());
  std::vector<index::Engine*> subjects;
  for (const auto& engine : *engines) subjects.push_back(engine.get());
  const std::shared_ptr<index::Engine>* const engine = &engines->front();
  if (!(*engine)->traits().keeps_records) {
    return WrongUsage("farside check",
                      fmt::format("{} only measures the fabric and remembers nothing, so there is "
                                  "nothing to check; it is for 'farside bench'",
                                  command.engine));
  }
  if ((*engine)->empty_bytes() > kMostTableBytes) {
    return WrongUsage(
        "farside check",
        fmt::format("this table needs {} bytes; choose engine options with which it needs up to {}",
                    (*engine)->empty_bytes(), kMostTableBytes));
  }
  const check::Subjects checked(subjects);
  const CheckResult result =
      command.replay.has_value() ? ReplayOneRun(checked, command) : RunTheCampaign(checked, command);
  Print(TextOf(command, result));
  return result.report.ok() ? kSuccess : kDoesNotHold;
}

}  // namespace farside::tools
