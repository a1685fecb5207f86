// The options of a nessie table.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"
#include "index/nessie/layout.h"

namespace farside::index::nessie {

inline constexpr uint64_t kMostChain = 64;
inline constexpr uint64_t kMostSweep = 8;

struct Options {
  // ---- recorded with the table
  Shape shape;  // slots=64

  // ---- of one client
  bool grow = true;          // no: a put that finds no place fails, however many slots are empty
  double max_load = 0.42;    // of the slots, at which the table should have doubled
  double head_start = 0.05;  // of max_load, by which growth is announced early: its grace takes time
  // How rarely clients sync: every alpha * slots * (max_load - load) / clients operations.
  double alpha = 0.1;
  uint64_t burst = 16;  // records that a client may insert while the table grows
  uint64_t chain = 32;  // the most migrations that a put makes in a row to get a slot
  // Slots that a put of a new key splits on average, while there are unsplit ones. A table that doubles at
  // max_load has 1 / max_load of them for each put.
  uint64_t sweep = 3;
  // The first pause of a client that waits; later ones are longer (retry_policy.h).
  Nanos backoff = std::chrono::microseconds(2);
  bool share_searches = false;  // of one key that are in flight (index/kit/search_ticket.h)

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  OptionMap Recorded() const;
};

}  // namespace farside::index::nessie
