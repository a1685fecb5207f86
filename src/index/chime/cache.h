// The inner nodes that a client remembers, within a bound of bytes. A cached node may be out of date: it
// leads to a leaf that has or had the key, and the fence of the leaf tells which.
//
// An open-addressing hash table with linear probing: every search looks here once for each level, and a slot
// costs one cache miss where an element of a list costs two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/chime/inner.h"

namespace farside::index::chime {

class NodeCache {
 public:
  explicit NodeCache(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null if the node is not cached. Valid until the next Put or Drop.
  const Inner* Find(NodePtr at) const { return Share(at).get(); }
  const std::shared_ptr<const Inner>& Share(NodePtr at) const {
    static const std::shared_ptr<const Inner> kNone;
    const size_t found = SlotOf(at);
    if (found == slots_.size()) return kNone;
    slots_[found]->set_used(true);
    return slots_[found];
  }
  // Replaces the cached node. Evicts nodes that were not used for some time until all that is left fits.
  void Put(std::shared_ptr<const Inner> node);
  void Drop(NodePtr at);
  void Clear();

  // Of the nodes, and of the hash table itself.
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  using Slot = std::shared_ptr<const Inner>;  // null: free
  // The control block of a shared pointer.
  static constexpr uint64_t kOverhead = 3 * sizeof(void*);
  static uint64_t CostOf(const Inner& node) { return node.bytes() + kOverhead; }

  // Where probing begins. There are 2^bits_ slots.
  size_t HomeOf(NodePtr at) const { return at.word() * 0x9e3779b97f4a7c15 >> (64 - bits_); }
  size_t Next(size_t slot) const { return slot + 1 < slots_.size() ? slot + 1 : 0; }
  // The slot of the node; the number of slots if there is none.
  size_t SlotOf(NodePtr at) const {
    if (slots_.empty()) return slots_.size();
    size_t slot = HomeOf(at);
    while (slots_[slot] != nullptr && slots_[slot]->at() != at) slot = Next(slot);
    return slots_[slot] != nullptr ? slot : slots_.size();
  }
  void Grow();
  void StoreSlot(Slot node);
  void Empty(size_t slot);
  void EvictOne();

  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  std::vector<Slot> slots_;  // at least a quarter of them is free
  uint32_t bits_ = 0;
  size_t size_ = 0;
  size_t hand_ = 0;  // of a clock over the slots
};

}  // namespace farside::index::chime
