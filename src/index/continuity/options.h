// Options of the continuity table.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "farside/result.h"
#include "index/continuity/layout.h"
#include "index/index.h"

namespace farside::index::continuity {

struct Options {
  uint64_t pairs = 64;  // on each node, of a new table
  // One pair in so many may have a group of further slots before the table grows; 0: none.
  uint32_t group_every = 10;
  // Slots that are used of each bucket, shared region and group; fewer than there are for tests.
  uint32_t bucket_slots = kBucketSlots;
  uint32_t shared_slots = kSharedSlots;
  uint32_t group_slots = kGroupSlots;
  // The first pause of a waiting client; later ones are longer (retry_policy.h).
  Nanos backoff = std::chrono::microseconds(2);
  bool share_searches = false;  // of one key that are in flight (index/kit/search_ticket.h)

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  // The options that change bytes.
  OptionMap Recorded() const;
  Shape shape() const { return Shape(pairs, bucket_slots, shared_slots, group_slots, group_every); }
};

}  // namespace farside::index::continuity
