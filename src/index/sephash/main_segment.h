// MainSegments as bytes in local memory: made before they are written, checked after they were read whole.
// Plain functions, no far memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/address.h"
#include "farside/result.h"
#include "index/sephash/fp_table.h"
#include "index/sephash/layout.h"

namespace farside::index::sephash {

// What a MainSegment says.
struct MainContent {
  uint64_t merges = 0;
  uint64_t segment = 0;
  uint64_t sibling = 0;
  std::vector<Entry> entries;  // sorted, of epoch 0
  std::vector<DroppedBlock> dropped;
  uint64_t allocated = 0;  // bytes, of one that was read

  uint64_t bytes() const { return MainBytes(entries.size(), dropped.size()); }
};

// Fills `out`, which has content.bytes() bytes or more; its filter is empty.
void EncodeMain(const MainContent& content, std::span<std::byte> out);
// kCorrupt if the bytes are no whole MainSegment of this CurSegment. They come from far memory: anything is
// possible.
Result<MainContent> DecodeMain(std::span<const std::byte> bytes, fabric::FarAddr at, uint64_t segment);

Starts StartsOf(std::span<const Entry> entries);
// The starts in the bytes of a MainSegment, which begin with its header. kCorrupt if they are none.
Result<Starts> DecodeStarts(std::span<const std::byte> bytes, fabric::FarAddr at);

}  // namespace farside::index::sephash
