// A campaign of checked runs: many seeds, and for each of them, if asked for, a fault at every verb.
//
// A run has a name, and the name replays it: everything else follows from the options, which are part of the
// replay command that a violation prints.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/run.h"
#include "check/workload.h"
#include "fabric/sim/fault.h"
#include "farside/result.h"
#include "index/index.h"

namespace farside::check {

struct CampaignOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 100;
  bool crash = false;  // also runs with faults, by chance
  // With `crash`: also one at every verb of a short script; for an engine that claims to survive power cuts,
  // also one at every step of the handlers that it calls.
  bool sweep = true;
  WorkloadShape shape;
  bool stop_at_first = false;                 // at the first violation
  fabric::sim::VerbDigest* digest = nullptr;  // also takes in every verb of every run
};

// Names one run of a campaign: "17" is the run without faults, "17:faults" the one with faults by chance,
// "17:12:crash-after" the short script whose client dies after verb 12, and "17:12:power-cut" the one whose
// node loses its power after step 12 of its handlers.
struct RunName {
  uint64_t seed = 0;
  bool faults = false;
  std::optional<fabric::sim::Fault> fault;

  std::string ToString() const;
  static Result<RunName> Parse(std::string_view text);
};

// A run that was not as it should be, and why in a line.
struct FailedRun {
  RunName run;
  std::string problem;
};

struct CampaignReport {
  bool ok() const { return violations == 0 && undecided == 0; }

  // Counts a run; all but `seeds`.
  void Add(const RunName& name, const RunReport& run);

  uint64_t seeds = 0;
  uint64_t histories = 0;
  uint64_t operations = 0;
  uint64_t verbs = 0;
  uint64_t crash_points = 0;
  uint64_t power_cuts = 0;      // by chance and at crash points
  uint64_t deaths_offline = 0;  // of clients on their way offline, or back
  uint64_t evacuated = 0;       // records that were moved by evacuations
  uint64_t violations = 0;
  uint64_t undecided = 0;  // runs in which nothing is known to be wrong, but the checker gave up
  std::optional<FailedRun> first_violation;
  std::optional<FailedRun> first_undecided;
};

// Called after every seed with the report so far.
using Progress = std::function<void(const CampaignReport&)>;

// What is checked: an engine, with one set of options or with several in turn, from seed to seed.
class Subjects {
 public:
  Subjects(index::Engine& engine)
      : engines_{&engine} {}  // NOLINT(google-explicit-constructor): the usual case
  explicit Subjects(std::vector<index::Engine*> engines) : engines_(std::move(engines)) {}
  index::Engine& For(uint64_t seed) const { return *engines_[seed % engines_.size()]; }

 private:
  std::vector<index::Engine*> engines_;  // at least one
};

CampaignReport RunCampaign(const Subjects& subjects, const CampaignOptions& options,
                           const Progress& progress = nullptr);

// Runs one of a campaign's runs again, with a trace if asked for.
RunReport Replay(const Subjects& subjects, const CampaignOptions& options, const RunName& run,
                 fabric::sim::Trace* trace = nullptr);

}  // namespace farside::check
