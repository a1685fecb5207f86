// The options of a chime table.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "farside/result.h"
#include "index/chime/layout.h"
#include "index/index.h"

namespace farside::index::chime {

// What a search READs of a leaf.
enum class LeafRead : uint8_t {
  kNeighbourhood,
  kWhole,  // as B+ trees do whose leaves have no homes; for comparison
};

struct Options {
  // ---- recorded with the table
  Shape shape;  // keys=bytes span=64 neighbourhood=8 fanout=64

  // ---- of one client
  uint64_t cache_bytes = uint64_t{64} << 20;     // of inner nodes
  uint64_t hotspot_bytes = uint64_t{512} << 10;  // of where it found keys; 0: none
  LeafRead leaf_read = LeafRead::kNeighbourhood;
  Nanos backoff = std::chrono::microseconds(2);  // the first pause of a waiter; later ones are longer

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  OptionMap Recorded() const;
};

}  // namespace farside::index::chime
