// Options of the sephash table.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"
#include "index/sephash/fp_table.h"
#include "index/sephash/layout.h"

namespace farside::index::sephash {

enum class SplitBy : uint8_t { kEntries, kBlocks };

struct Options {
  Shape shape;

  // ---- techniques of the paper, for the client that gives them; they change no bytes
  FpTableKind fp_table = FpTableKind::kPoints;
  bool filter = true;     // searches ask the filter before they read a CurSegment
  uint32_t window = 16;   // free slots that a put hopes to find where it found the last one; 0: reads all
  bool zero_wait = true;  // no trip for a WRITE that needs no answer
  SplitBy split_by = SplitBy::kEntries;  // where a split finds the bits that it looks at
  // How long a client that finds a CurSegment full waits for another one to merge it.
  Nanos backoff = std::chrono::microseconds(4);
  bool share_searches = false;  // of one key that are in flight (index/kit/search_ticket.h)

  // Unknown keys and bad values are errors.
  static Result<Options> Parse(const OptionMap& options);
  // The options that change bytes.
  OptionMap Recorded() const;
};

}  // namespace farside::index::sephash
