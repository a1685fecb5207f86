// What the nessie engine states about itself, and its entry in the list of engines.
#include "index/engine_entry.h"
#include "index/nessie/mutants.h"
#include "index/nessie/nessie.h"

namespace farside::index::nessie {

// Few keys: so four or eight slots, which a few keys fill.
std::vector<OptionMap> NessieEngine::stress_options() const {
  return {
      // Migrations, chains and growth when a key finds no place.
      {{"slots", "4"}, {"max_load", "1"}, {"burst", "0"}},
      // The same in a table that grows all the time, and is not swept.
      {{"slots", "4"}, {"max_load", "0.2"}, {"burst", "0"}, {"sweep", "0"}},
      // Growth because chains end after one migration, and slots that are swept together.
      {{"slots", "8"}, {"max_load", "0.3"}, {"burst", "0"}, {"chain", "1"}, {"sweep", "8"}},
      // Several versions at once.
      {{"slots", "8"}, {"max_load", "0.1"}, {"burst", "2"}, {"sweep", "1"}},
  };
}

Result<std::shared_ptr<Engine>> MakeNessieEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<NessieEngine>(*parsed));
}

EngineEntry Register() {
  return {.name = "nessie", .rank = 40, .make = MakeNessieEngine, .mutants = kAllMutants};
}

}  // namespace farside::index::nessie
