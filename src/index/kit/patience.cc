#include "index/kit/patience.h"

namespace farside::index {

bool Patience::MayPinAgain() const {
  return pool_.known_catalog_changes() == catalogs_ || Mutant(pins_past_a_drop_);
}

}  // namespace farside::index
