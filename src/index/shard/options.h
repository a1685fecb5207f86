// The options of a shard table.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"
#include "index/shard/layout.h"

namespace farside::index::shard {

struct Options {
  // ---- recorded with the table
  Shape shape;  // buckets=1 slots=64 overflow_slots=8

  // ---- of one client
  double max_load = 0.8;     // of levels 1 and 2, at which the table should have doubled (the paper's R)
  double head_start = 0.05;  // of max_load, by which a resize is announced early: its grace takes time
  // How rarely clients sync: every alpha * capacity * (max_load - load) / clients operations.
  double alpha = 0.1;
  uint64_t burst = 64;  // records that a client may insert while a resize is under way
  // Of the location cache; 0: none, nothing: as many as suit the fabric (location_cache.h).
  std::optional<uint64_t> cached_locations;
  // The first pause of a client that waits for a lock; later ones are longer (retry_policy.h).
  Nanos backoff = std::chrono::microseconds(2);

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  OptionMap Recorded() const;
};

}  // namespace farside::index::shard
