#include "index/kit/retry_policy.h"

namespace farside::index {

bool RetryPolicy::MayPinAgain() const {
  return pool_.known_catalog_changes() == catalogs_ || Mutant(pins_past_a_drop_);
}

}  // namespace farside::index
