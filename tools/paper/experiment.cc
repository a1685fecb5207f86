#include "tools/paper/experiment.h"

#include <algorithm>

#include "tools/paper/chime.h"
#include "tools/paper/shard.h"

namespace farside::tools::paper {

uint64_t Settings::Scaled(uint64_t usual, uint64_t at_full, uint64_t least) const {
  return std::max(full ? at_full : usual * percent / 100, least);
}

// An engine with a paper is one more list here.
std::span<const Experiment> Experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> joined;
    for (const std::span<const Experiment> some : {ShardExperiments(), ChimeExperiments()})
      joined.insert(joined.end(), some.begin(), some.end());
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
