// The inner nodes that a client remembers, within a bound of bytes. What it says may be out of date: it leads to a leaf that
// has the key or had it once, and the fences of the leaves tell.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "index/chime/inner.h"

namespace farside::index::chime {

class NodeCache {
 public:
  explicit NodeCache(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null if it is not known. Valid until the next Put or Drop.
  const Inner* Find(NodePtr at) const {
    const auto known = known_.find(at.word());
    if (known == known_.end()) return nullptr;
    known->second->set_used(true);
    return known->second.get();
  }
  std::shared_ptr<const Inner> Share(NodePtr at) const {
    const auto known = known_.find(at.word());
    if (known == known_.end()) return nullptr;
    known->second->set_used(true);
    return known->second;
  }
  // Replaces what was known. What was not used for some time goes, until all that is left fits.
  void Put(std::shared_ptr<const Inner> node);
  void Drop(NodePtr at);
  void Clear();

  // All of it: nodes, and the table that leads to them.
  uint64_t bytes() const { return bytes_; }
  uint64_t most_bytes() const { return most_bytes_; }
  size_t size() const { return known_.size(); }

 private:
  using Known = std::unordered_map<uint64_t, std::shared_ptr<const Inner>>;
  // An element of the hash table with its link, a bucket, and what a shared pointer counts with.
  static constexpr uint64_t kOverhead = sizeof(Known::value_type) + 2 * sizeof(void*) + 2 * sizeof(void*);
  static uint64_t CostOf(const Inner& node) { return node.bytes() + kOverhead; }
  void EvictOne();

  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  Known known_;
  size_t hand_ = 0;  // of a clock over the buckets
};

}  // namespace farside::index::chime
