#include "index/continuity/segment.h"

#include <cstring>

#include "index/continuity/errors.h"
#include "index/continuity/mutants.h"

namespace farside::index::continuity {

using fabric::FarAddr;
using fabric::Op;
using fabric::Read;

namespace {

using Bytes = std::array<std::byte, kPairBytes>;

struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;
};
constexpr Range RangeOf(Part part) {
  switch (part) {
    case Part::kEven: return {0, kSegmentBytes};
    case Part::kOdd: return {kIndicatorAt, kSegmentBytes};
    case Part::kWhole: break;
  }
  return {0, kPairBytes};
}

// One look: the indicator before the bytes, and the one behind them.
struct Look {
  Indicator before;
  Indicator after;
  uint64_t handler = 0;  // what a handler was changing before that, if this was asked for
};

// The verbs of a look, in this order. One trip where READs are ordered; otherwise one for each.
Task<Look> LookAt(Op& op, FarAddr pair, std::span<std::byte> into, uint64_t from, bool ask_for_handler) {
  const FarAddr indicator = pair + kIndicatorAt;
  const FarAddr handler(pair.node, pool::kHandlerOffset);
  Look look;
  if (!op.client().orders_reads()) {
    if (ask_for_handler) look.handler = co_await op.InOrder(Read<uint64_t>(handler));
    look.before = Indicator(co_await op.InOrder(Read<uint64_t>(indicator)));
    co_await op.InOrder(Read(pair + from, into));
    look.after = Indicator(co_await op.InOrder(Read<uint64_t>(indicator)));
  } else if (ask_for_handler) {
    auto [changing, before, done, after] =
        co_await op.InOrder(Read<uint64_t>(handler), Read<uint64_t>(indicator), Read(pair + from, into),
                            Read<uint64_t>(indicator));
    look = {Indicator(before), Indicator(after), changing};
  } else {
    auto [before, done, after] =
        co_await op.InOrder(Read<uint64_t>(indicator), Read(pair + from, into), Read<uint64_t>(indicator));
    look = {Indicator(before), Indicator(after)};
  }
  if (Mutant(kOneLook)) look.after = look.before;
  co_return look;
}

void Take(const Bytes& bytes, Part part, PairImage& image) {
  const Range range = RangeOf(part);
  for (uint32_t slot = 0; slot < kFirstGroup; ++slot) {
    const uint64_t at = SlotInPair(slot);
    if (at < range.offset || at + kSlotBytes > range.offset + range.size) continue;
    std::memcpy(image.slots[slot].words.data(), bytes.data() + at, kSlotBytes);
  }
  std::memcpy(&image.group, bytes.data() + kIndicatorAt + kGroupOffset, sizeof image.group);
}

}  // namespace

Task<Done> ReadPair(Op& op, FarAddr pair, Part part, PairImage& image) {
  const Range range = RangeOf(part);
  Bytes bytes;
  const std::span<std::byte> into = std::span(bytes).subspan(range.offset, range.size);
  std::optional<Indicator> odd;  // as the last look has seen it
  for (int i = 0; i < kMostLooks; ++i) {
    const Look look = co_await LookAt(op, pair, into, range.offset, odd.has_value());
    const bool still = look.before == look.after;
    const bool left_odd =
        odd == look.before && look.handler != pair.offset + kIndicatorAt && !Mutant(kOddLeftForEver);
    if (still && (!look.after.odd() || left_odd || look.after.moved() || Mutant(kOddTaken))) {
      image.indicator = look.after;
      Take(bytes, part, image);
      co_return Done{};
    }
    odd.reset();
    if (look.after.odd()) odd = look.after;
    op.CountRetry();
  }
  co_return Contended();
}

Task<bool> ReadGroup(Op& op, FarAddr pair, PairImage& image) {
  const FarAddr indicator = pair + kIndicatorAt;
  const FarAddr group(pair.node, image.group);
  const std::span<std::byte> into =
      std::as_writable_bytes(std::span(image.slots).subspan(kFirstGroup, kGroupSlots));
  uint64_t after = 0;
  if (op.client().orders_reads()) {
    auto [done, word] = co_await op.InOrder(Read(group, into), Read<uint64_t>(indicator));
    after = word;
  } else {
    co_await op.InOrder(Read(group, into));
    after = co_await op.InOrder(Read<uint64_t>(indicator));
  }
  if (Mutant(kGroupUnchecked)) co_return true;
  co_return Indicator(after) == image.indicator;
}

}  // namespace farside::index::continuity
