#include "index/nessie/sweeper.h"

#include <algorithm>

namespace farside::index::nessie {

using fabric::Cas;
using fabric::ForMaintenance;

namespace {

// So many that the word in the root is no bottleneck, so few that clients end at about the same time.
constexpr uint64_t kSlotsOfRange = 128;
constexpr int kMostAttempts = 3;

static_assert(kMostSweep <= kMostSplitTogether, "a put sweeps once");
uint64_t SlotsTogether(const Shape& shape) { return std::min<uint64_t>(kMostSplitTogether, shape.slots(1)); }

}  // namespace

bool Sweeper::IsDue(Partition& part) {
  if (slots_per_insert_ == 0 || part.IsSwept()) return false;
  Partition::Sweep& sweep = part.sweep();
  sweep.owed += slots_per_insert_;
  if (sweep.owed < SlotsTogether(part.shape())) return false;
  sweep.owed %= SlotsTogether(part.shape());
  return true;
}

Task<Done> Sweeper::Sweep(Access at) {
  Partition::Sweep& sweep = at.part.sweep();
  if (sweep.next == sweep.end) {
    const bool taken = co_await TakeRange(at);
    if (!taken) co_return Done{};
  }
  // Other operations of this client go on behind it.
  const uint64_t first = sweep.next;
  const uint64_t together = SlotsTogether(at.shape());
  sweep.next = std::min(first + together, sweep.end);
  co_await splitter_.SplitRange(at, first, together);
  co_return Done{};
}

// False: other clients were faster; or there is nothing left.
Task<bool> Sweeper::TakeRange(const Access& at) {
  Partition::Sweep& sweep = at.part.sweep();
  const uint64_t first = at.shape().slots(1);
  const uint64_t all = at.shape().slots(at.part.directory().version) - first;
  for (int attempt = 0; attempt < kMostAttempts && sweep.taken < all; ++attempt) {
    const uint64_t from = sweep.taken;
    const uint64_t to = std::min(all, from + kSlotsOfRange);
    const uint64_t old = co_await at.op.InOrder(ForMaintenance(Cas(at.part.SweptAt(), from, to)));
    // No client writes such a number: the word is damaged, and splitting is left to the puts that need it.
    if (old % SlotsTogether(at.shape()) != 0) co_return false;
    sweep.taken = std::max(sweep.taken, old == from ? to : old);
    // Another operation of this client may have taken a range too: then this one is left to the puts that
    // need it.
    if (sweep.next != sweep.end) co_return true;
    if (old != from) continue;
    sweep.next = first + from;
    sweep.end = first + to;
    co_return true;
  }
  co_return false;
}

}  // namespace farside::index::nessie
