// The memory of a node as handlers of this table see it. Offsets come from far memory or from requests, where
// anything is possible: one that leaves the region is noted, and has no other effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fabric/service.h"
#include "index/continuity/layout.h"
#include "index/continuity/slot.h"

namespace farside::index::continuity {

class CheckedMemory {
 public:
  explicit CheckedMemory(fabric::NodeMemory& memory) : memory_(memory) {}

  // Whether an access left the region, or was not aligned: what was loaded means nothing.
  bool strayed() const { return strayed_; }
  // Whether all of these bytes exist, and begin with an aligned word.
  bool Has(uint64_t offset, uint64_t size) const {
    return offset % sizeof(uint64_t) == 0 && offset <= memory_.bytes() && size <= memory_.bytes() - offset;
  }

  uint64_t Load(uint64_t offset) { return Check(offset, sizeof(uint64_t)) ? memory_.Load(offset) : 0; }
  void Store(uint64_t offset, uint64_t word) {
    if (Check(offset, sizeof(uint64_t))) memory_.Store(offset, word);
  }
  Slot LoadSlot(uint64_t offset) {
    Slot slot;
    for (size_t i = 0; i < slot.words.size(); ++i) slot.words[i] = Load(offset + i * sizeof(uint64_t));
    return slot;
  }
  void StoreSlot(uint64_t offset, const Slot& slot) {
    for (size_t i = 0; i < slot.words.size(); ++i) Store(offset + i * sizeof(uint64_t), slot.words[i]);
  }
  // Empty if they do not exist.
  std::string LoadBytes(uint64_t offset, uint64_t size);
  void StoreBytes(uint64_t offset, std::string_view bytes);

  void Flush(uint64_t offset, uint64_t size) {
    if (Check(offset, size)) memory_.Flush(offset, size);
  }
  void Drain() { memory_.Drain(); }

 private:
  bool Check(uint64_t offset, uint64_t size) {
    strayed_ |= !Has(offset, size);
    return Has(offset, size);
  }

  fabric::NodeMemory& memory_;
  bool strayed_ = false;
};

}  // namespace farside::index::continuity
