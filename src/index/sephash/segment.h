// What a client knows of a segment between operations. Its address, its suffix and its first depth never
// change; the rest may be out of date.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/address.h"
#include "index/sephash/fp_table.h"
#include "index/sephash/layout.h"

namespace farside::index::sephash {

// A MainSegment that a client has read, or made. INVARIANT sephash/5: an address alone is no name, since
// memory is reused; with the count of merges it is one.
struct KnownMain {
  fabric::FarAddr at;
  uint64_t merges = 0;
  FpTable table;
  std::vector<uint32_t> pages;  // numbers

  uint64_t bytes() const {
    return sizeof(KnownMain) + table.heap_bytes() + pages.capacity() * sizeof(uint32_t);
  }
};

struct Segment {
  Segment(fabric::FarAddr where, uint64_t its_suffix, uint32_t first_depth)
      : at(where), suffix(its_suffix), born(first_depth) {}

  const fabric::FarAddr at;  // of the CurSegment
  const uint64_t suffix;
  const uint32_t born;  // its depth when it was made

  // The slot behind the last one that was used, when it was last seen: how much of the segment is worth
  // reading (the paper's sliding window). Proves nothing.
  uint32_t free_slot = 0;

  bool merging = false;  // by an operation of this client
  bool closing = false;  // its last key seems to be deleted (closer.h)
  // Merges and splits that operations of this client have posted: fabric/21 says nothing about them.
  uint64_t commits = 0;

  // The latest one that is known. An operation that goes on with it after a trip keeps its own pointer.
  std::shared_ptr<const KnownMain> main;

  // Of the segment that this one was split from, and of the one that a split to this depth makes of it.
  uint64_t parent_suffix() const { return suffix & (LowBits(born) >> 1); }
  uint64_t SiblingSuffix(uint32_t depth) const { return suffix | uint64_t{1} << (depth - 1); }

  uint64_t bytes() const { return sizeof(Segment) + (main != nullptr ? main->bytes() : 0); }
};

}  // namespace farside::index::sephash
