// How tables grow (index/kit/growing_partition.h), rule by rule: what went wrong, or nothing.
#pragma once

#include <cstdint>
#include <string>

namespace farside::index::growing {

// ---- resizes
std::string FullTableGrows();
std::string GrowthWaitsForOperationsInFlight();
std::string DirectoryIsReadWhileAResizeIsAnnounced(uint64_t seeds);
std::string PreparerDies();

// ---- operations that find no place
std::string RequestedGrowth_HappensWhateverTheLoad();
std::string RequestedGrowth_OutlivesASync();
std::string RequestedGrowth_EndsAtTheMostVersion();
std::string RequestedByTwo_TheTableGrowsOnce();
std::string RequestedWithoutMemory_IsCountedAndMayBeTriedAgain();
std::string RequestedByAReader_IsRefused();

}  // namespace farside::index::growing
