#include "index/chime/cache.h"

#include <utility>

#include "index/chime/mutants.h"

namespace farside::index::chime {
namespace {

constexpr uint32_t kFewestBits = 4;

}  // namespace

void NodeCache::Put(std::shared_ptr<const Inner> node) {
  const NodePtr at = node->at();
  const uint64_t cost = CostOf(*node);
  const bool bounded = !Mutant(kCacheUnbounded);
  Drop(at);
  if (bounded && cost > most_bytes_) return;
  if (4 * (size_ + 1) > 3 * slots_.size()) Grow();
  while (bounded && bytes_ + cost > most_bytes_ && size_ > 0) EvictOne();
  if (bounded && bytes_ + cost > most_bytes_) return;
  bytes_ += cost;
  node->set_used(true);
  StoreSlot(std::move(node));
  ++size_;
}

void NodeCache::Grow() {
  std::vector<Slot> old = std::exchange(slots_, {});
  bits_ = old.empty() ? kFewestBits : bits_ + 1;
  slots_.resize(size_t{1} << bits_);
  bytes_ += (slots_.size() - old.size()) * sizeof(Slot);
  hand_ = 0;
  for (Slot& slot : old) {
    if (slot != nullptr) StoreSlot(std::move(slot));
  }
}

void NodeCache::StoreSlot(Slot node) {
  size_t slot = HomeOf(node->at());
  while (slots_[slot] != nullptr) slot = Next(slot);
  slots_[slot] = std::move(node);
}

// A node that was used since the hand last passed it stays for another round.
void NodeCache::EvictOne() {
  while (size_ > 0) {
    hand_ = Next(hand_);
    if (slots_[hand_] == nullptr) continue;
    if (!slots_[hand_]->used()) return Empty(hand_);
    slots_[hand_]->set_used(false);
  }
}

void NodeCache::Clear() {
  slots_ = {};
  bits_ = 0;
  size_ = 0;
  bytes_ = 0;
}

void NodeCache::Drop(NodePtr at) {
  const size_t found = SlotOf(at);
  if (found < slots_.size()) Empty(found);
}

// A node that probing would not reach any more, because the gap is between its home and its slot, moves into
// the gap; its slot is the next gap.
void NodeCache::Empty(size_t slot) {
  bytes_ -= CostOf(*slots_[slot]);
  --size_;
  const size_t mask = slots_.size() - 1;
  size_t gap = slot;
  for (size_t next = Next(gap); slots_[next] != nullptr; next = Next(next)) {
    const size_t from_home = (next - HomeOf(slots_[next]->at())) & mask;
    if (from_home < ((next - gap) & mask)) continue;
    slots_[gap] = std::move(slots_[next]);
    gap = next;
  }
  slots_[gap].reset();
}

}  // namespace farside::index::chime
