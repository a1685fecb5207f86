// A CurSegment as one READ shows it.
//
// INVARIANT sephash/1: a look is the work of one READ, of at most 1 KiB within one page, and every entry of
// it has the epoch of its meta word or the one before. Of other clients, one commit at most falls into such a
// READ (fabric/21); an entry from beyond that commit has an epoch that is neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "index/sephash/layout.h"

namespace farside::index::sephash {

struct Look {
  // Not filled: the READ does that.
  Look() {}  // NOLINT(modernize-use-equals-default)

  MetaWord meta() const { return image.header.meta; }
  uint32_t epoch() const { return meta().epoch(); }
  uint32_t depth() const { return meta().depth(); }
  uint64_t suffix() const { return image.header.suffix & LowBits(depth()); }
  std::span<const Entry> entries() const { return std::span(image.entries).first(sampled); }

  bool Covers(uint64_t hash) const { return image.header.Covers(hash); }
  bool IsOfOneRound() const {
    const uint32_t now = epoch();
    const uint32_t before = EpochBefore(now);
    for (const Entry& entry : entries()) {
      if (entry.epoch() != now && entry.epoch() != before) return false;
    }
    return true;
  }
  // Entries of the round: the lowest slot that has none is the free one.
  uint32_t Used() const {
    uint32_t slot = 0;
    while (slot < sampled && image.entries[slot].epoch() == epoch()) ++slot;
    return slot;
  }

  union {
    SegmentImage image;
  };
  uint32_t sampled = 0;  // entries that were read
};

}  // namespace farside::index::sephash
