// The inner nodes that a client remembers, within a bound of bytes. What it says may be out of date: it leads to a leaf that
// has the key or had it once, and the fences of the leaves tell.
//
// A hash table of slots in a row, in which a node stands at its home or behind it, without a gap: every search for a key comes
// by here once for each level, and a slot costs one look at memory where an element of a list costs two.
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

  // Null if it is not known. Valid until the next Put or Drop.
  const Inner* Find(NodePtr at) const { return Share(at).get(); }
  const std::shared_ptr<const Inner>& Share(NodePtr at) const {
    static const std::shared_ptr<const Inner> kNone;
    const size_t found = SlotOf(at);
    if (found == slots_.size()) return kNone;
    slots_[found]->set_used(true);
    return slots_[found];
  }
  // Replaces what was known. What was not used for some time goes, until all that is left fits.
  void Put(std::shared_ptr<const Inner> node);
  void Drop(NodePtr at);
  void Clear();

  // All of it: nodes, and the table that leads to them.
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  using Slot = std::shared_ptr<const Inner>;  // null: nothing stands here
  // What a shared pointer counts with.
  static constexpr uint64_t kOverhead = 3 * sizeof(void*);
  static uint64_t CostOf(const Inner& node) { return node.bytes() + kOverhead; }

  // Where it should stand. There are 2^bits_ slots.
  size_t HomeOf(NodePtr at) const { return at.word() * 0x9e3779b97f4a7c15 >> (64 - bits_); }
  size_t Next(size_t slot) const { return slot + 1 < slots_.size() ? slot + 1 : 0; }
  // Where it stands; the number of slots if nowhere.
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
  std::vector<Slot> slots_;  // a quarter of them is free at least
  uint32_t bits_ = 0;
  size_t size_ = 0;
  size_t hand_ = 0;  // of a clock over the slots
};

}  // namespace farside::index::chime
