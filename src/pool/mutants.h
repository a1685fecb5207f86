// The planted bugs of the pool; tests/mutants must catch each by name.
#pragma once

#include <array>

#include "base/mutant.h"

namespace farside::pool {

inline constexpr MutantName kSlotBeforeFence{"pool/no-fence-before-takeover"};
inline constexpr MutantName kReuseAtOnce{"pool/block-reused-at-once"};
inline constexpr MutantName kPublishTooEarly{"pool/epoch-published-too-early"};
inline constexpr MutantName kSkipAdoption{"pool/lost-adoption"};
inline constexpr MutantName kStampTooEarly{"pool/retired-block-stamped-too-early"};
inline constexpr MutantName kSettledTooEarly{"pool/settled-too-early"};
inline constexpr MutantName kHarvestTooMuch{"pool/harvest-frees-more-than-it-cleared"};
inline constexpr MutantName kExtentHeadFirst{"pool/extent-freed-head-first"};
inline constexpr MutantName kSweepAtOnce{"pool/sweep-without-waiting"};
inline constexpr MutantName kSweepUnderReaders{"pool/sweep-under-own-readers"};
inline constexpr MutantName kLeaveUnswept{"pool/chunk-left-with-leaks"};
inline constexpr MutantName kTakeBlindly{"pool/ownerless-chunk-taken-blindly"};
inline constexpr MutantName kBuryTooEarly{"pool/buried-without-a-second-look"};
inline constexpr MutantName kCatalogWithoutLock{"pool/catalog-race"};

}  // namespace farside::pool
