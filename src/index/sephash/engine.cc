// What the sephash engine states about itself, and its entry in the list of engines.
#include "index/engine_entry.h"
#include "index/sephash/mutants.h"
#include "index/sephash/sephash.h"

namespace farside::index::sephash {

// Few keys: so rounds of two and three entries, and MainSegments that are split as soon as they have more.
// The first three keys of `farside check` end with the same bit: tables that are to split begin with two
// segments.
std::vector<OptionMap> SephashEngine::stress_options() const {
  return {
      // Merges and splits all the time; depth bits that last for one split.
      {{"entries", "2"}, {"main", "1"}, {"segments", "2"}, {"depth_bits", "1"}},
      // Merges, and searches by the filter and by remembered MainSegments.
      {{"entries", "3"}, {"main", "64"}, {"window", "1"}},
      // Splits with depth bits that last.
      {{"entries", "2"}, {"main", "1"}, {"segments", "2"}, {"depth_bits", "4"}},
      // The techniques switched off.
      {{"entries", "2"},
       {"main", "1"},
       {"segments", "2"},
       {"fptable", "none"},
       {"filter", "no"},
       {"zero_wait", "no"},
       {"split_by", "blocks"}},
      // Naive FPTables, rounds that last longer.
      {{"entries", "6"}, {"main", "1"}, {"fptable", "naive"}, {"window", "2"}},
      // CurSegments of two lines.
      {{"entries", "7"}, {"main", "64"}, {"window", "1"}},
  };
}

Result<std::shared_ptr<Engine>> MakeSephashEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<SephashEngine>(*parsed));
}

EngineEntry Register() {
  return {.name = "sephash", .rank = 30, .make = MakeSephashEngine, .mutants = kAllMutants};
}

}  // namespace farside::index::sephash
