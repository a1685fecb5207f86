// Options of the reference table.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"

namespace farside::index::reference {

struct Options {
  uint64_t buckets = 4;  // on each node
  // The first pause of a waiting client; later ones are longer (retry_policy.h).
  Nanos backoff = std::chrono::microseconds(2);
  bool share_searches = false;  // of one key that are in flight (index/kit/search_ticket.h)

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  // The options that change bytes.
  OptionMap Recorded() const;
};

}  // namespace farside::index::reference
