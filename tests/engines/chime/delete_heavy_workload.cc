#include "tests/engines/chime/delete_heavy_workload.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace farside::index::chime {

namespace {

// Keys that differ in their last bytes: so pivots and fences are longer than 8 bytes, unless keys have 8.
check::Workload MakeDeleteHeavyWorkload(uint64_t seed, const DeleteHeavyOptions& options,
                                        const Engine& engine) {
  using check::Kind;
  Random random(seed ^ 0xebb);
  check::Workload workload;
  const std::optional<size_t> size = engine.traits().fixed_size;
  const bool long_keys = !size.has_value() && random.Chance(1, 2);
  for (int k = 0; k < options.keys; ++k)
    workload.keys.push_back(check::Fitted(fmt::format("{}k{}", long_keys ? "strawberry " : "", k), size));
  constexpr Kind kMix[] = {Kind::kPut,    Kind::kPut,    Kind::kPut,    Kind::kDelete,
                           Kind::kDelete, Kind::kDelete, Kind::kDelete, Kind::kGet,
                           Kind::kGet,    Kind::kScan,   Kind::kLast,   Kind::kInsert};
  for (int client = 0; client < options.clients; ++client) {
    check::Script script;
    for (int i = 0; i < options.operations; ++i) {
      check::ScriptedCall call;
      call.kind = kMix[random.Below(std::size(kMix))];
      call.key = workload.keys[random.Below(workload.keys.size())];
      call.value = check::Fitted(fmt::format("v{}.{}", client, i), size);
      if (call.kind == Kind::kScan) call.limit = 1 + random.Below(workload.keys.size() + 1);
      // From the beginning, in half of them.
      if ((call.kind == Kind::kScan || call.kind == Kind::kLast) && random.Chance(1, 2)) call.key = "";
      script.push_back(std::move(call));
    }
    workload.scripts.push_back(std::move(script));
  }
  workload.nodes = random.Chance(1, 3) ? 2 : 1;
  workload.lanes = random.Chance(1, 4) ? 3 : 1;
  return workload;
}

std::vector<std::shared_ptr<Engine>> DeleteHeavyEngines() {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const char* keys : {"inline", "bytes"}) {
    for (const OptionMap& shape : {OptionMap{{"span", "1"}, {"fanout", "8"}},
                                   OptionMap{{"span", "2"}, {"neighbourhood", "1"}, {"fanout", "4"}},
                                   OptionMap{{"span", "1"}, {"fanout", "3"}},
                                   OptionMap{{"span", "2"}, {"fanout", "8"}, {"cache", "0"}}}) {
      OptionMap options = shape;
      options["keys"] = keys;
      engines.push_back(*MakeChimeEngine(options));
    }
  }
  return engines;
}

}  // namespace

std::string RunDeleteHeavyWorkload(uint64_t first_seed, uint64_t seeds, bool faults,
                                   const DeleteHeavyOptions& options) {
  const std::vector<std::shared_ptr<Engine>> engines = DeleteHeavyEngines();
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    Engine& engine = *engines[seed % engines.size()];
    fabric::sim::SimOptions sim;
    sim.seed = seed;
    sim.chaos = fabric::sim::Chaos::ForSeed(seed, faults);
    const check::RunReport report =
        check::Run(engine, MakeDeleteHeavyWorkload(seed, options, engine), std::move(sim));
    if (!report.ok() && !report.undecided())
      return fmt::format("delete-heavy run of seed {}{}: {}", seed, faults ? " with faults" : "",
                         report.problem);
  }
  return "";
}

std::string PlayEbbAtEveryVerb(uint64_t first_seed, uint64_t seeds, uint64_t& places) {
  const std::vector<std::shared_ptr<Engine>> engines = DeleteHeavyEngines();
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    Engine& engine = *engines[seed % engines.size()];
    // Two keys come, and one that is not the first goes; another client looks on, and puts it back.
    const std::optional<size_t> size = engine.traits().fixed_size;
    const check::Workload random =
        MakeDeleteHeavyWorkload(seed, {.clients = 2, .operations = 3, .keys = 3}, engine);
    check::Workload workload = random;
    check::Script& first = workload.scripts[0];
    const std::string value = check::Fitted("early", size);
    first.insert(first.begin(), {{.kind = check::Kind::kPut, .key = workload.keys[0], .value = value},
                                 {.kind = check::Kind::kPut, .key = workload.keys[2], .value = value},
                                 {.kind = check::Kind::kPut, .key = workload.keys[1], .value = value},
                                 {.kind = check::Kind::kDelete, .key = workload.keys[2]}});
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      more = false;
      for (const fabric::sim::FaultKind kind : fabric::sim::kAllFaultKinds) {
        fabric::sim::SimOptions sim;
        sim.seed = seed;
        sim.chaos = fabric::sim::Chaos::ForSeed(seed, false);
        sim.fault = fabric::sim::Fault{verb, kind};
        const check::RunReport report = check::Run(engine, workload, std::move(sim));
        more |= report.script_verbs > verb;
        places += report.fault_fired ? 1 : 0;
        if (!report.ok() && !report.undecided())
          return fmt::format("delete-heavy run of seed {}, {} at verb {}: {}", seed, Name(kind), verb,
                             report.problem);
      }
    }
  }
  return "";
}

}  // namespace farside::index::chime
