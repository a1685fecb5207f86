// The options of a chime table.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "farside/result.h"
#include "index/chime/layout.h"
#include "index/index.h"

namespace farside::index::chime {

// The next three choose between a technique of the paper and what other trees do instead, for comparisons.
//
// What is READ of a leaf.
enum class LeafRead : uint8_t {
  kNeighbourhood,
  kWhole,  // as in B+ trees, whose leaves have no homes
};
// When the header of a leaf is READ, with its fence.
enum class FenceRead : uint8_t {
  kAbsent,  // by searches that have not found their key, and by changes
  kAlways,  // as in trees that validate cached nodes by fence keys
};
// Whether the trip that takes a lock READs what it is taken for.
enum class LockRead : uint8_t { kTogether, kApart };

struct Options {
  // ---- recorded with the table
  Shape shape;  // keys=bytes span=64 neighbourhood=8 fanout=64

  // ---- of one client
  uint64_t cache_bytes = uint64_t{64} << 20;        // of inner nodes
  uint64_t hotspot_bytes = uint64_t{512} << 10;     // of where it found keys; 0: none
  LeafRead leaf_read = LeafRead::kNeighbourhood;    // of searches, and of changes of keys that are there
  LeafRead insert_read = LeafRead::kNeighbourhood;  // of changes that may insert
  FenceRead fence_read = FenceRead::kAbsent;
  LockRead lock_read = LockRead::kTogether;
  Nanos backoff = std::chrono::microseconds(2);  // the first pause of a waiter; later ones are longer
  bool share_searches = false;                   // of one key that are in flight (index/kit/search_ticket.h)

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  OptionMap Recorded() const;
};

}  // namespace farside::index::chime
