#include "tools/common/measure.h"

#include <algorithm>
#include <optional>

#include "pool/memory/carving.h"

namespace farside::tools {

void Measure::Mark(fabric::FarAddr block, uint64_t bytes) {
  if (other_ != nullptr) other_->Mark(block, bytes);
  Add({block, bytes, false});
}

void Measure::MarkBlock(fabric::FarAddr block, uint64_t bytes, uint64_t prefix) {
  if (other_ != nullptr) other_->MarkBlock(block, bytes, prefix);
  Add({block, bytes, true});
}

void Measure::CountRecords(uint64_t records) {
  if (other_ != nullptr) other_->CountRecords(records);
  records_ += records;
}

void Measure::Add(const Entry& entry) {
  entries_.push_back(entry);
  if (progress_) progress_(entries_.size());
}

TableSize Measure::Size(const std::vector<pool::Geometry>& geometries) {
  // A walk may come to a block twice; it counts once.
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.at < b.at; });
  const auto again = std::unique(entries_.begin(), entries_.end(),
                                 [](const Entry& a, const Entry& b) { return a.at == b.at; });
  entries_.erase(again, entries_.end());
  std::vector<pool::Carving> carvings;
  for (size_t node = 0; node < geometries.size(); ++node) {
    carvings.emplace_back(static_cast<fabric::NodeId>(node), geometries[node]);
  }
  TableSize size{.keys = records_};
  for (const Entry& entry : entries_) {
    const pool::Carving* const carving = fabric::ForNode(carvings, entry.at.node);
    if (carving == nullptr) continue;
    const std::optional<pool::BlockPosition> position = carving->Locate(entry.at, entry.bytes);
    if (!position.has_value()) continue;
    size.bytes += position->is_extent() ? position->block * carving->classes().chunk_bytes()
                                        : carving->classes().shape(position->size_class).block_bytes;
    size.keys += entry.is_block ? 1 : 0;
  }
  return size;
}

}  // namespace farside::tools
