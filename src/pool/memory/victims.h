// Which sparse chunks an evacuation empties. Plain functions, no far memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace farside::pool {

// An own chunk of records.
struct SparseChunk {
  uint32_t chunk = 0;
  uint32_t size_class = 0;
  uint32_t blocks = 0;
  uint32_t free = 0;        // can be handed out at once
  uint32_t live = 0;        // blocks that would have to be moved
  uint64_t live_bytes = 0;  // the same in bytes

  // In which quarter of its blocks the number of those in use lies.
  uint64_t Quarter() const { return (uint64_t{live} * 4 + blocks - 1) / std::max(blocks, 1u); }
  bool IsSparse() const { return Quarter() <= 3; }
};

struct EvacuationLimits {
  uint32_t run = 1;       // how many chunks in a row are wanted
  size_t chunks = 4;      // that are emptied; a run may take more
  size_t blocks = 1024;   // that are moved
  bool any_room = false;  // for tests: also chunks whose blocks do not fit into other own chunks
};

// Sparse chunks whose blocks fit into what is free in the others: indices of `own`.
std::vector<size_t> ChooseSparsest(std::span<const SparseChunk> own, const EvacuationLimits& limits);

// The chunks that stand between free ones in the row of `limits.run` chunks that takes the fewest bytes to
// empty, if they are sparse taken together; of several such rows, the highest, where extents are. `own` by
// their numbers; `is_free` has every chunk of the node. Empty: there is no such row.
std::vector<size_t> ChooseRun(std::span<const SparseChunk> own, const std::vector<bool>& is_free,
                              const EvacuationLimits& limits);

}  // namespace farside::pool
