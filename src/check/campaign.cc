#include "check/campaign.h"

#include <fmt/format.h>

#include <charconv>

namespace farside::check {

using fabric::sim::Chaos;
using fabric::sim::Fault;
using fabric::sim::FaultKind;
using fabric::sim::FaultKindFromName;
using fabric::sim::kAllFaultKinds;
using fabric::sim::SimOptions;
using fabric::sim::Trace;

namespace {

// Sweeps repeat a run for every verb of it, so their scripts are short: two clients that meet on a key or
// two, and now and then a third. In two of three seeds they also go offline and come back, so that there are
// faults at the verbs by which they do.
WorkloadShape SweepShape(uint64_t seed, bool evacuates) {
  return {.clients = seed % 4 == 0 ? 3 : 2,
          .operations = 2,
          .keys = seed % 3 == 0 ? 2 : 1,
          .operations_until_idle = static_cast<int>(1 + seed % 3),
          .evacuates = evacuates};
}

bool ParseNumber(std::string_view text, uint64_t& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

}  // namespace

void CampaignReport::Add(const RunName& name, const RunReport& run) {
  ++histories;
  operations += run.operations;
  verbs += run.verbs;
  power_cuts += run.power_cuts;
  deaths_offline += run.deaths_offline;
  evacuated += run.evacuated;
  if (name.fault.has_value() && run.fault_fired) ++crash_points;
  if (run.ok()) return;
  ++(run.undecided() ? undecided : violations);
  std::optional<FailedRun>& first = run.undecided() ? first_undecided : first_violation;
  if (!first.has_value()) first = FailedRun{name, run.problem};
}

std::string RunName::ToString() const {
  if (fault.has_value()) return fmt::format("{}:{}:{}", seed, fault->verb, Name(fault->kind));
  return fmt::format("{}{}", seed, faults ? ":faults" : "");
}

Result<RunName> RunName::Parse(std::string_view text) {
  const Error malformed(ErrorCode::kInvalidArgument,
                        "expected a run such as 17, 17:faults or 17:12:crash-after (seed, verb, fault)");
  RunName run;
  const size_t first = text.find(':');
  if (!ParseNumber(text.substr(0, first), run.seed)) return malformed;
  if (first == std::string_view::npos) return run;
  run.faults = text.substr(first + 1) == "faults";
  if (run.faults) return run;
  const size_t second = text.find(':', first + 1);
  if (second == std::string_view::npos) return malformed;
  Fault fault;
  if (!ParseNumber(text.substr(first + 1, second - first - 1), fault.verb)) return malformed;
  const std::optional<FaultKind> kind = FaultKindFromName(text.substr(second + 1));
  if (!kind.has_value()) return malformed;
  fault.kind = *kind;
  run.fault = fault;
  return run;
}

RunReport Replay(const Subjects& subjects, const CampaignOptions& options, const RunName& run, Trace* trace) {
  SimOptions sim;
  sim.seed = run.seed;
  sim.trace = trace;
  sim.digest = options.digest;
  sim.fault = run.fault;
  sim.chaos = Chaos::ForSeed(run.seed, run.faults);
  const WorkloadShape shape =
      run.fault.has_value() ? SweepShape(run.seed, options.shape.evacuates) : options.shape;
  index::Engine& engine = subjects.For(run.seed);
  if (run.faults && engine.traits().durable) sim.chaos.power_cut = Chaos::PowerCutsForSeed(run.seed);
  const WorkloadFor table{.scans = engine.traits().ordered, .fixed_size = engine.traits().fixed_size};
  return Run(engine, MakeWorkload(run.seed, shape, table), std::move(sim));
}

namespace {

// A power cut at every step of the handlers of the short script in turn, until there is no such step.
void SweepPowerCuts(const Subjects& subjects, const CampaignOptions& options, uint64_t seed,
                    const std::function<bool()>& enough, CampaignReport& report) {
  bool fired = options.crash && options.sweep && subjects.For(seed).traits().durable;
  for (uint64_t step = 0; fired && !enough(); ++step) {
    const RunName point{.seed = seed, .faults = false, .fault = Fault{step, FaultKind::kPowerCut}};
    const RunReport run = Replay(subjects, options, point);
    fired = run.fault_fired;
    if (run.fault_fired || !run.ok()) report.Add(point, run);
  }
}

}  // namespace

CampaignReport RunCampaign(const Subjects& subjects, const CampaignOptions& options,
                           const Progress& progress) {
  CampaignReport report;
  const auto enough = [&] { return options.stop_at_first && report.violations > 0; };
  for (uint64_t i = 0; i < options.seeds && !enough(); ++i) {
    const uint64_t seed = options.first_seed + i;
    for (bool faults : {false, true}) {
      if ((faults && !options.crash) || enough()) continue;
      const RunName name{.seed = seed, .faults = faults, .fault = std::nullopt};
      report.Add(name, Replay(subjects, options, name));
    }

    // Every verb of the short script in turn, until there is no such verb.
    bool fired = options.crash && options.sweep;
    for (uint64_t verb = 0; fired && !enough(); ++verb) {
      fired = false;
      for (FaultKind kind : kAllFaultKinds) {
        const RunName point{.seed = seed, .faults = false, .fault = Fault{verb, kind}};
        const RunReport run = Replay(subjects, options, point);
        fired |= run.script_verbs > verb;
        // Not every fault can happen at every verb; the run was one without it then.
        if (run.fault_fired || !run.ok()) report.Add(point, run);
        if (enough()) break;
      }
    }
    SweepPowerCuts(subjects, options, seed, enough, report);
    ++report.seeds;
    if (progress) progress(report);
  }
  return report;
}

}  // namespace farside::check
