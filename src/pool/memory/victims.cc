#include "pool/memory/victims.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace farside::pool {
namespace {

// Free blocks of each class, and what choosing a chunk takes of them: its own ones, and one for every block
// that is moved.
class Room {
 public:
  explicit Room(std::span<const SparseChunk> own) {
    for (const SparseChunk& chunk : own) free_[chunk.size_class] += chunk.free;
  }
  // False: its blocks do not fit into the others.
  bool Take(const SparseChunk& chunk) {
    uint64_t& left = free_[chunk.size_class];
    const uint64_t taken = uint64_t{chunk.free} + chunk.live;
    if (taken > left) return false;
    left -= taken;
    return true;
  }

 private:
  std::map<uint32_t, uint64_t> free_;
};

struct Row {
  bool possible = false;
  uint64_t bytes = 0;
  std::vector<size_t> chosen = {};
};

// The row that begins with `first`. `place` has the index of every own chunk in `own`.
Row RowAt(size_t first, std::span<const SparseChunk> own, const std::vector<bool>& is_free,
          const std::vector<size_t>& place, const EvacuationLimits& limits) {
  Row row;
  Room room(own);
  SparseChunk sum;  // of all chunks in the row that are not free
  for (size_t chunk = first; chunk < first + limits.run; ++chunk) {
    if (is_free[chunk]) continue;
    const size_t index = place[chunk];
    if (index == own.size() || !room.Take(own[index])) return row;
    sum.blocks += own[index].blocks;
    sum.live += own[index].live;
    row.bytes += own[index].live_bytes;
    row.chosen.push_back(index);
  }
  row.possible = sum.live <= limits.blocks && sum.IsSparse();
  return row;
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
  std::vector<size_t> place(is_free.size(), own.size());
  for (size_t i = 0; i < own.size(); ++i) place[own[i].chunk] = i;
  Row best{.bytes = std::numeric_limits<uint64_t>::max()};
  for (size_t first = 0; first + limits.run <= is_free.size(); ++first) {
    Row row = RowAt(first, own, is_free, place, limits);
    if (row.possible && row.bytes <= best.bytes) best = std::move(row);
  }
  return best.chosen;
}

}  // namespace farside::pool
