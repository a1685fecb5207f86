// `farside_trace`: prints a digest of every verb that an engine's clients post in simulated runs, so that a
// refactoring is shown to change none of them. See docs/testing.md.
//
//   farside_trace                                  one line for each engine
//   farside_trace --engine chime --each-seed       where two builds differ first
//
// A seed of an engine stands for
//   its runs of `farside check --crash`, under the stress options that are due for that seed; the runs with a
//   fault at one verb only for some verbs, others for each seed
//   its runs with and without faults by chance, with default options
//   clients that search several keys at a time, with default options and with each set of stress options
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/bytes.h"
#include "base/hash.h"
#include "check/campaign.h"
#include "fabric/sim/fault.h"
#include "fabric/sim/verb_digest.h"
#include "store/engines.h"
#include "tests/trace/batch_run.h"

namespace farside::trace {
namespace {

using EnginePointer = std::shared_ptr<index::Engine>;
using fabric::sim::Fault;
using fabric::sim::FaultKind;
using fabric::sim::VerbDigest;

// What is traced of an engine: with its default options, and with each set of stress options.
struct TracedEngine {
  EnginePointer usual;
  std::vector<EnginePointer> stressed;
};

TracedEngine MakeTracedEngine(std::string_view name) {
  TracedEngine traced{.usual = *store::MakeEngine(name, {})};
  for (const index::OptionMap& options : traced.usual->stress_options())
    traced.stressed.push_back(*store::MakeEngine(name, options));
  return traced;
}

// A fault of every kind at every `stride`-th verb of a short script, from another verb on for each seed.
void SweepFaults(index::Engine& engine, const check::CampaignOptions& campaign, uint64_t stride) {
  const uint64_t seed = campaign.first_seed;
  bool is_verb_of_script = true;
  for (uint64_t verb = seed % stride; is_verb_of_script; verb += stride) {
    for (const FaultKind kind : fabric::sim::kAllFaultKinds) {
      const check::RunName run{.seed = seed, .fault = Fault{verb, kind}};
      is_verb_of_script = check::Replay(engine, campaign, run).script_verbs > verb;
    }
  }
}

VerbDigest DigestOfSeed(const TracedEngine& traced, uint64_t seed, uint64_t stride) {
  VerbDigest digest;
  index::Engine& stressed = *traced.stressed[seed % traced.stressed.size()];
  const check::CampaignOptions campaign{
      .first_seed = seed, .seeds = 1, .crash = true, .sweep = false, .digest = &digest};
  check::RunCampaign(stressed, campaign);
  SweepFaults(stressed, campaign, stride);
  check::RunCampaign(*traced.usual, campaign);
  RunBatches(*traced.usual, seed, digest);
  for (const EnginePointer& engine : traced.stressed) RunBatches(*engine, seed, digest);
  return digest;
}

void PrintLine(std::string_view engine, std::string_view seeds, uint64_t verbs, uint64_t digest) {
  fmt::print("{:<10} {:<10} {:>10} verbs  {:016x}\n", engine, seeds, verbs, digest);
  std::fflush(stdout);
}

void TraceEngine(std::string_view name, uint64_t first_seed, uint64_t seeds, uint64_t stride,
                 bool each_seed) {
  const TracedEngine traced = MakeTracedEngine(name);
  uint64_t verbs = 0;
  uint64_t digest = 0;
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    const VerbDigest of_seed = DigestOfSeed(traced, seed, stride);
    if (each_seed) PrintLine(name, fmt::format("seed {}", seed), of_seed.verbs(), of_seed.value());
    std::array<std::byte, sizeof(uint64_t)> bytes;
    StoreU64(bytes.data(), of_seed.value());
    digest = Hash64(bytes, digest);
    verbs += of_seed.verbs();
  }
  PrintLine(name, fmt::format("{} seeds", seeds), verbs, digest);
}

std::vector<std::string> AllEngines() {
  std::vector<std::string> names;
  for (const store::EngineEntry& engine : store::AllEngines()) names.emplace_back(engine.name);
  return names;
}

int Main(int argc, char** argv) {
  CLI::App app("Digests of all verbs that engines post in simulated runs");
  std::vector<std::string> engines = AllEngines();
  uint64_t seeds = 100;
  uint64_t first_seed = 1;
  uint64_t stride = 16;
  bool each_seed = false;
  app.add_option("--engine", engines, "Only these engines")->check(CLI::IsMember(AllEngines()));
  app.add_option("--seeds", seeds, "How many seeds of each engine")->capture_default_str();
  app.add_option("--first-seed", first_seed, "The first of them")->capture_default_str();
  app.add_option("--stride", stride, "How far apart the verbs with a fault are; 1: all of them")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--each-seed", each_seed, "Also print a line for each seed");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& engine : engines) TraceEngine(engine, first_seed, seeds, stride, each_seed);
  return 0;
}

}  // namespace
}  // namespace farside::trace

int main(int argc, char** argv) { return farside::trace::Main(argc, argv); }
