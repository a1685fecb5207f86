// The planted bugs of the pool; tests/mutants must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::pool {

inline constexpr MutantName kSlotBeforeFence{"pool/no-fence-before-takeover"};
inline constexpr MutantName kReuseAtOnce{"pool/block-reused-at-once"};
inline constexpr MutantName kPublishTooEarly{"pool/epoch-published-too-early"};
inline constexpr MutantName kSkipAdoption{"pool/lost-adoption"};
inline constexpr MutantName kCatalogWithoutLock{"pool/catalog-race"};

}  // namespace farside::pool
