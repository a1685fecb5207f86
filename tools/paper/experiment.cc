#include "tools/paper/experiment.h"

#include <algorithm>

#include "store/engines.h"
#include "tools/paper/experiment_list.h"

namespace farside::tools::paper {

uint64_t Settings::Scaled(uint64_t usual, uint64_t at_full, uint64_t least) const {
  return std::max(full ? at_full : usual * percent / 100, least);
}

std::span<const Experiment> Experiments() {
  static const std::vector<Experiment> all = [] {
    const std::vector<EngineExperiments> found = ExperimentList();
    std::vector<Experiment> joined;
    for (const store::EngineEntry& engine : store::AllEngines()) {
      const auto own = std::ranges::find(found, engine.name, &EngineExperiments::engine);
      if (own != found.end()) joined.insert(joined.end(), own->experiments.begin(), own->experiments.end());
    }
    return joined;
  }();
  return all;
}

const Experiment* FindExperiment(std::string_view name) {
  const std::span<const Experiment> all = Experiments();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Experiment& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace farside::tools::paper
