// Rows of chunks that can be emptied only if free chunks are claimed for the copies. Plain functions, no far
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pool/memory/victims.h"

namespace farside::pool {

struct VictimRow {
  std::vector<size_t> chosen = {};  // as ChooseRun
  // Free chunks, not of the row, that have to be claimed first.
  struct Claim {
    uint32_t chunk = 0;
    uint32_t size_class = 0;
  };
  std::vector<Claim> claims = {};
};

// As ChooseRun. Where chunks of several sizes are mixed thoroughly, every row has some that are full: free
// chunks elsewhere are taken for what does not fit into own ones.
VictimRow ChooseRunAndClaims(std::span<const SparseChunk> own, const std::vector<bool>& is_free,
                             const EvacuationLimits& limits);

}  // namespace farside::pool
