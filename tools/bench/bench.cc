#include "tools/bench/bench.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/run.h"
#include "tools/common/output.h"
#include "tools/common/stop_request.h"
#include "tools/common/terminal.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

constexpr Nanos kPatience = std::chrono::milliseconds(500);

Result<BenchResult> RunBoth(const BenchCommand& command, const BenchPlan& plan) {
  ProgressLines line(kPatience);
  // A person may watch stderr while stdout goes to a file; JSON is asked for by programs.
  const BenchProgress progress = [&](std::string_view what, uint64_t done, uint64_t total,
                                     std::string_view unit) {
    if (!command.json) line.Show(what, done, total, unit);
  };
  BenchResult result;
  Result<BenchRun> run = RunBench(plan, progress, StopRequested);
  if (!run.ok()) return run.error();
  result.run = std::move(*run);
  // Nothing is known of what raw would have to read for a scan.
  if (command.no_raw || !plan.engine->traits().keeps_records || plan.mix.scans()) return result;

  Result<BenchPlan> raw_plan = PlanRaw(plan, BucketBytes(*result.run.run));
  if (!raw_plan.ok()) return raw_plan.error();
  result.raw_plan = std::move(*raw_plan);
  Result<BenchRun> raw = RunBench(*result.raw_plan, progress, StopRequested);
  if (!raw.ok()) return raw.error();
  result.raw = std::move(*raw);
  return result;
}

}  // namespace

ExitCode Bench(const BenchCommand& command) {
  const Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return WrongUsage("farside bench", plan.error().message());
  NoteStopRequests();
  const Result<BenchResult> result = RunBoth(command, *plan);
  if (StopRequested() && !result.ok()) {
    CouldNotRun("farside bench", result.error().message());
    return kInterrupted;
  }
  if (!result.ok()) return CouldNotRun("farside bench", result.error().message());
  Print(command.json ? ToJson(*plan, *result) : BenchText(*plan, *result, Paint::ForStdout()));
  return result->Errors() == 0 ? kSuccess : kDoesNotHold;
}

}  // namespace farside::tools
