#include "index/chime/cache.h"

#include <utility>

#include "index/chime/mutants.h"

namespace farside::index::chime {

const Inner* NodeCache::Find(NodePtr at) {
  const auto known = known_.find(at.word());
  if (known == known_.end()) return nullptr;
  known->second.used = true;
  return known->second.node.get();
}

std::shared_ptr<const Inner> NodeCache::Share(NodePtr at) {
  const auto known = known_.find(at.word());
  if (known == known_.end()) return nullptr;
  known->second.used = true;
  return known->second.node;
}

void NodeCache::Put(std::shared_ptr<const Inner> node) {
  const NodePtr at = node->at();
  Drop(at);
  if (CostOf(*node) > most_bytes_ && !Mutant(kCacheUnbounded)) return;
  bytes_ += CostOf(*node);
  turns_.push_back(at.word());
  known_.emplace(at.word(), Slot{.node = std::move(node), .used = true, .turn = std::prev(turns_.end())});
  // A node that was used since it was last looked at has another turn. The new one is the last, and is kept.
  while (bytes_ > most_bytes_ && !Mutant(kCacheUnbounded)) {
    const uint64_t oldest = turns_.front();
    Slot& slot = known_.find(oldest)->second;
    if (slot.used) {
      slot.used = false;
      turns_.splice(turns_.end(), turns_, turns_.begin());
      continue;
    }
    Drop(NodePtr(oldest));
  }
}

void NodeCache::Drop(NodePtr at) {
  const auto known = known_.find(at.word());
  if (known == known_.end()) return;
  bytes_ -= CostOf(*known->second.node);
  turns_.erase(known->second.turn);
  known_.erase(known);
}

}  // namespace farside::index::chime
