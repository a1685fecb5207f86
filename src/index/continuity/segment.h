// A READ of a pair, or of the half of it in which a key may stand, as it was at one moment (continuity/1).
//
//   InOrder: READ indicator, READ bytes, READ indicator            one trip
//
// INVARIANT continuity/6: an odd sequence may be what a power cut has left of a handler: then the bits under
// it count, since what survived is durable. It is so if the sequence was seen, then no handler was changing
// this pair (pool::kHandlerOffset), and then the sequence was still the same: a handler names the pair before
// it makes the sequence odd, and makes it another one before it names no pair any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/continuity/layout.h"
#include "index/continuity/slot.h"

namespace farside::index::continuity {

// Looks until a pair is seen at one moment. While a handler changes the pair again and again, or the node's
// processor stands still in the middle of a change, it ends with kContended after so many trips. Where READs
// have no order, each is a trip: 3 for the first look and 4 for each of the others. A lookup as a whole tries
// again for kMostLeases leases (kit/retry_policy.h), with a pause between two attempts.
inline constexpr int kMostLooks = 16;

// The bytes of a pair as they were at one moment.
struct PairImage {
  Indicator indicator;
  uint64_t group = 0;  // offset; 0: none
  std::array<Slot, kSlots> slots;
};

enum class Part : uint8_t { kEven, kOdd, kWhole };

// Reads the slots of a part of a pair, and the indicator. Of a pair that was moved, the indicator alone
// counts.
Task<Done> ReadPair(fabric::Op& op, fabric::FarAddr pair, Part part, PairImage& image);
// Reads the slots of its group. False: the pair has changed since `image` was read; read it again.
Task<bool> ReadGroup(fabric::Op& op, fabric::FarAddr pair, PairImage& image);

}  // namespace farside::index::continuity
