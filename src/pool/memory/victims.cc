#include "pool/memory/victims.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "pool/memory/victim_row.h"

namespace farside::pool {
namespace {

// The largest part of a row of chunks that may be in use.
constexpr double kMostFilled = 0.75;

// Free blocks of each class, and what choosing a chunk takes of them: its own ones, and one for every block
// that is moved.
class Room {
 public:
  explicit Room(std::span<const SparseChunk> own) {
    for (const SparseChunk& chunk : own) {
      if (chunk.size_class >= free_.size()) free_.resize(chunk.size_class + 1);
      free_[chunk.size_class] += chunk.free;
    }
  }
  // False: its blocks do not fit into the others, nor into what may be claimed: so many chunks. They are then
  // noted in `claims`.
  bool Take(const SparseChunk& chunk, size_t claimable = 0, std::vector<uint32_t>* claims = nullptr) {
    uint64_t& left = free_[chunk.size_class];
    const uint64_t taken = uint64_t{chunk.free} + chunk.live;
    while (taken > left) {
      if (claims == nullptr || claims->size() == claimable || chunk.blocks == 0) return false;
      claims->push_back(chunk.size_class);
      left += chunk.blocks;
    }
    left -= taken;
    return true;
  }

 private:
  std::vector<uint64_t> free_;  // by class
};

struct Row {
  bool possible = false;
  size_t first = 0;
  uint64_t bytes = 0;
  std::vector<size_t> chosen = {};
  std::vector<uint32_t> claims = {};  // classes
};

// The row that begins with `first`. `place` has the index of every own chunk in `own`. `claimable`: how many
// free chunks there are, those of the row included.
Row RowAt(size_t first, std::span<const SparseChunk> own, const std::vector<bool>& is_free,
          const std::vector<size_t>& place, const EvacuationLimits& limits, Room room, size_t claimable) {
  Row row{.first = first};
  const auto begin = is_free.begin() + static_cast<std::ptrdiff_t>(first);
  const auto in_row = static_cast<size_t>(std::count(begin, begin + limits.run, true));
  const size_t elsewhere = claimable - std::min(claimable, in_row);
  size_t live = 0;
  double filled = 0;  // chunks
  for (size_t chunk = first; chunk < first + limits.run; ++chunk) {
    if (is_free[chunk]) continue;
    const size_t index = place[chunk];
    if (index == own.size() || !room.Take(own[index], elsewhere, &row.claims)) return row;
    live += own[index].live;
    filled += static_cast<double>(own[index].live) / std::max(own[index].blocks, 1u);
    row.bytes += own[index].live_bytes;
    row.chosen.push_back(index);
  }
  row.possible = live <= limits.blocks && filled <= kMostFilled * limits.run;
  return row;
}

Row BestRow(std::span<const SparseChunk> own, const std::vector<bool>& is_free,
            const EvacuationLimits& limits, size_t claimable) {
  std::vector<size_t> place(is_free.size(), own.size());
  for (size_t i = 0; i < own.size(); ++i) place[own[i].chunk] = i;
  const Room room(own);
  Row best{.bytes = std::numeric_limits<uint64_t>::max()};
  for (size_t first = 0; first + limits.run <= is_free.size(); ++first) {
    Row row = RowAt(first, own, is_free, place, limits, room, claimable);
    if (row.possible && row.bytes <= best.bytes) best = std::move(row);
  }
  return best;
}

}  // namespace

std::vector<size_t> ChooseSparsest(std::span<const SparseChunk> own, const EvacuationLimits& limits) {
  std::vector<size_t> order;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].IsSparse() && own[i].free < own[i].blocks) order.push_back(i);
  }
  // Of those that are at most half in use, and then of the others, the lowest first: what is freed there is
  // used for blocks again, and the sparse ones that are left stand in rows at the high end, where extents
  // are.
  std::stable_sort(order.begin(), order.end(), [own](size_t a, size_t b) {
    return std::pair(own[a].Quarter() > 2, own[a].chunk) < std::pair(own[b].Quarter() > 2, own[b].chunk);
  });
  Room room(own);
  std::vector<size_t> chosen;
  size_t blocks = 0;
  for (const size_t index : order) {
    if (chosen.size() == limits.chunks) break;
    if (blocks + own[index].live > limits.blocks) continue;
    if (!room.Take(own[index]) && !limits.any_room) continue;
    blocks += own[index].live;
    chosen.push_back(index);
  }
  return chosen;
}

std::vector<size_t> ChooseRun(std::span<const SparseChunk> own, const std::vector<bool>& is_free,
                              const EvacuationLimits& limits) {
  return BestRow(own, is_free, limits, /*claimable=*/0).chosen;
}

VictimRow ChooseRunAndClaims(std::span<const SparseChunk> own, const std::vector<bool>& is_free,
                             const EvacuationLimits& limits) {
  const auto free = static_cast<size_t>(std::count(is_free.begin(), is_free.end(), true));
  Row best = BestRow(own, is_free, limits, free);
  VictimRow victims{.chosen = std::move(best.chosen)};
  for (uint32_t chunk = 0; victims.claims.size() < best.claims.size(); ++chunk) {
    const bool in_row = chunk >= best.first && chunk < best.first + limits.run;
    if (is_free[chunk] && !in_row)
      victims.claims.push_back({.chunk = chunk, .size_class = best.claims[victims.claims.size()]});
  }
  return victims;
}

}  // namespace farside::pool
