// What the shard engine states about itself, and its entry in the list of engines.
#include "index/engine_entry.h"
#include "index/shard/mutants.h"
#include "index/shard/shard.h"

namespace farside::index::shard {

// Few keys: so buckets of one or two slots, and loads at which two keys are enough to resize. Some with the
// location cache and some without.
std::vector<OptionMap> ShardEngine::stress_options() const {
  return {
      // Resizes, keys in level 1.
      {{"slots", "8"}, {"overflow_slots", "2"}, {"max_load", "0.05"}, {"burst", "0"}},
      // The location cache, few resizes.
      {{"slots", "16"}, {"overflow_slots", "1"}, {"max_load", "0.9"}, {"burst", "0"}, {"cache", "16"}},
      // All three levels.
      {{"slots", "1"}, {"overflow_slots", "1"}, {"max_load", "0.9"}, {"burst", "0"}},
      // Holes, level 2, some resizes, the location cache.
      {{"slots", "2"}, {"overflow_slots", "8"}, {"max_load", "0.1"}, {"burst", "0"}, {"cache", "16"}},
      // Resizes one behind the other, and several versions at once.
      {{"slots", "1"}, {"overflow_slots", "1"}, {"max_load", "0.02"}, {"burst", "1"}},
  };
}

Result<std::shared_ptr<Engine>> MakeShardEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ShardEngine>(*parsed));
}

EngineEntry Register() {
  return {.name = "shard", .rank = 10, .make = MakeShardEngine, .mutants = kAllMutants};
}

}  // namespace farside::index::shard
