// The inner nodes that a client remembers, within a bound of bytes. What it says may be out of date: it leads to a leaf that
// has the key or had it once, and the fences of the leaves tell.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "index/chime/inner.h"

namespace farside::index::chime {

class NodeCache {
 public:
  explicit NodeCache(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null if it is not known. Valid until the next Put or Drop.
  const Inner* Find(NodePtr at);
  std::shared_ptr<const Inner> Share(NodePtr at);
  // Replaces what was known. What was used least recently goes, until all that is left fits.
  void Put(std::shared_ptr<const Inner> node);
  void Drop(NodePtr at);

  // All of it: nodes, and the tables that lead to them.
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return known_.size(); }

 private:
  struct Slot {
    std::shared_ptr<const Inner> node;
    bool used = false;  // since it was last considered for eviction
    std::list<uint64_t>::iterator turn;
  };
  // The hash table's node and its share of buckets, the list's node, and the control block of the shared pointer.
  static constexpr uint64_t kOverhead = sizeof(Slot) + 2 * sizeof(uint64_t) + 2 * sizeof(void*) +
                                        sizeof(std::list<uint64_t>::iterator) + 2 * sizeof(void*) + 16;
  static uint64_t CostOf(const Inner& node) { return node.bytes() + kOverhead; }

  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  std::unordered_map<uint64_t, Slot> known_;
  std::list<uint64_t> turns_;  // a clock: who is first has waited longest
};

}  // namespace farside::index::chime
