// Which node of a table a key lives on: rendezvous hashing. Every client computes the same without asking,
// and adding a node moves only the keys that the new node wins.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "fabric/address.h"

namespace farside::pool {

// The index into `nodes` of the node with the highest weight for this key. The order of the nodes does not
// matter to which node wins.
inline size_t PickNode(uint64_t key_hash, std::span<const fabric::NodeId> nodes) {
  assert(!nodes.empty());
  size_t best = 0;
  uint64_t best_weight = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    uint64_t state = key_hash ^ ((Index(nodes[i]) + uint64_t{1}) * 0xd6e8feb86659fd93);
    const uint64_t weight = SplitMix64(state);
    if (i == 0 || weight > best_weight) {
      best = i;
      best_weight = weight;
    }
  }
  return best;
}

}  // namespace farside::pool
