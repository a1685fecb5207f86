#include "tools/check.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "base/clock.h"
#include "fabric/sim/trace.h"
#include "store/engines.h"
#include "tools/check_report.h"
#include "tools/json.h"
#include "tools/output.h"
#include "tools/terminal.h"

namespace farside::tools {
namespace {

using fabric::sim::Trace;

constexpr Nanos kPatience = std::chrono::milliseconds(500);
// Every run makes a table and verifies all of it, so a large one only costs time.
constexpr uint64_t kMostTableBytes = 1 << 20;

// Runs the named run once more, to look at it closely.
void LookAt(index::Engine& engine, const CheckCommand& command, const check::RunName& name, bool traced,
            CheckResult& result) {
  Trace trace;
  result.shown = check::Replay(engine, command.campaign, name, traced ? &trace : nullptr);
  if (traced) result.trace = trace.lines();
}

CheckResult RunTheCampaign(index::Engine& engine, const CheckCommand& command) {
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

CheckResult ReplayOneRun(index::Engine& engine, const CheckCommand& command) {
  CheckResult result;
  LookAt(engine, command, *command.replay, command.trace || !command.json, result);
  result.report = AsCampaign(*command.replay, *result.shown);
  return result;
}

std::string TextOf(const CheckCommand& command, const CheckResult& result) {
  if (command.json) return ToJson(command, result);
  return command.replay.has_value() ? ReplayText(command, result) : CampaignText(command, result);
}

}  // namespace

ExitCode Check(const CheckCommand& command) {
  const Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(command.engine, command.options);
  if (!engine.ok()) return WrongUsage("farside check", engine.error().message());
  if ((*engine)->empty_bytes() > kMostTableBytes) {
    return WrongUsage(
        "farside check",
        fmt::format("this table needs {} bytes; choose engine options with which it needs up to {}",
                    (*engine)->empty_bytes(), kMostTableBytes));
  }
  const CheckResult result =
      command.replay.has_value() ? ReplayOneRun(**engine, command) : RunTheCampaign(**engine, command);
  Print(TextOf(command, result));
  return result.report.ok() ? kSuccess : kDoesNotHold;
}

}  // namespace farside::tools
