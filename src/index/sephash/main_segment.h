// MainSegments as bytes in local memory: made before they are written, checked after they were read. Plain
// functions, no far memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fabric/address.h"
#include "farside/result.h"
#include "index/sephash/fp_table.h"
#include "index/sephash/layout.h"

namespace farside::index::sephash {

// Which MainSegment it is, and the segments that it names: as in MainHeader.
struct MainNames {
  uint64_t merges = 0;
  uint64_t segment = 0;
  uint64_t sibling = 0;
  uint64_t parent = 0;
  uint32_t parent_meta = 0;
};

// What the head of a MainSegment says.
struct MainHead : MainNames {
  uint64_t words_checksum = 0;
  uint32_t entries = 0;
  uint32_t dropped = 0;
  std::vector<uint32_t> pages;  // numbers
  Starts starts{};
  std::array<FilterLine, kFilterLines> filter{};

  uint64_t words() const { return uint64_t{entries} + dropped; }
};
inline bool IsSet(const FilterLine& line, uint8_t fp) { return line.bytes[fp % FilterLine::kBytes] != 0; }

// What all of it says.
struct MainContent : MainNames {
  std::vector<Entry> entries;  // sorted, of epoch 0
  std::vector<DroppedBlock> dropped;
  std::vector<uint32_t> pages;  // numbers, of one that was read

  uint64_t words() const { return entries.size() + dropped.size(); }
};

// A MainSegment to be written: the bytes of its head, and of its pages one behind the other.
struct MainImage {
  std::vector<std::byte> head;
  std::vector<std::byte> pages;
};

// `pages` are as many as the content needs, or more. The filter is empty.
MainImage EncodeMain(const Shape& shape, const MainContent& content, std::span<const uint32_t> pages);

// kCorrupt if the bytes are no whole MainSegment of this CurSegment; none: of any. They come from far memory:
// anything is possible.
Result<MainHead> DecodeHead(const Shape& shape, std::span<const std::byte> bytes, fabric::FarAddr at,
                            std::optional<uint64_t> segment);
Result<MainContent> DecodeMain(const MainHead& head, std::span<const std::byte> pages, fabric::FarAddr at);

Starts StartsOf(std::span<const Entry> entries);

}  // namespace farside::index::sephash
