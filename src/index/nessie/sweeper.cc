#include "index/nessie/sweeper.h"

#include <algorithm>
#include <bit>

namespace farside::index::nessie {

Task<Done> Sweeper::Sweep(Access at) {
  if (slots_per_insert_ == 0) co_return Done{};
  const uint64_t together =
      std::min<uint64_t>({std::bit_floor(slots_per_insert_), kMostSplitTogether, at.shape().slots(1)});
  for (uint64_t done = 0; done < slots_per_insert_ && HasWork(at.part); done += together)
    co_await splitter_.SplitRange(at, at.part.TakeUnswept(together), together);
  co_return Done{};
}

}  // namespace farside::index::nessie
