#include "index/chime/cache.h"

#include <utility>

#include "index/chime/mutants.h"

namespace farside::index::chime {

void NodeCache::Put(std::shared_ptr<const Inner> node) {
  const NodePtr at = node->at();
  Drop(at);
  if (CostOf(*node) > most_bytes_ && !Mutant(kCacheUnbounded)) return;
  while (bytes_ + CostOf(*node) > most_bytes_ && !Mutant(kCacheUnbounded)) EvictOne();
  bytes_ += CostOf(*node);
  node->set_used(true);
  known_.emplace(at.word(), std::move(node));
}

// A node that was used since the hand came by the last time has another turn.
void NodeCache::EvictOne() {
  while (!known_.empty()) {
    hand_ = hand_ + 1 < known_.bucket_count() ? hand_ + 1 : 0;
    for (auto node = known_.begin(hand_); node != known_.end(hand_); ++node) {
      if (!node->second->used()) return Drop(NodePtr(node->first));
      node->second->set_used(false);
    }
  }
}

void NodeCache::Clear() {
  known_.clear();
  bytes_ = 0;
}

void NodeCache::Drop(NodePtr at) {
  const auto known = known_.find(at.word());
  if (known == known_.end()) return;
  bytes_ -= CostOf(*known->second);
  known_.erase(known);
}

}  // namespace farside::index::chime
