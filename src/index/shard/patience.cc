#include "index/shard/patience.h"

#include "index/shard/mutants.h"

namespace farside::index::shard {

bool Patience::MayPinAgain() const {
  return pool_.known_catalog_changes() == catalogs_ || Mutant(kPinsPastADrop);
}

}  // namespace farside::index::shard
