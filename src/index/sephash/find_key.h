// Finding a key among the entries that were read: blocks are read one after the other, nearly always one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "farside/task.h"
#include "index/kit/block_buffer.h"
#include "index/sephash/context.h"
#include "index/sephash/look.h"
#include "index/sephash/segment_reader.h"

namespace farside::index::sephash {

struct Found {
  Entry entry;             // the latest one of the key
  uint64_t bytes = 0;      // of its block
  std::string_view value;  // in the buffer; of a tombstone, the value that was deleted

  bool present() const { return !entry.is_tombstone(); }
};

// The latest entry of the key in the round; it may be a tombstone.
Task<std::optional<Found>> FindInLook(KeyAccess at, const Look& look, BlockBuffer& block);

// Entries of a MainSegment that may be the key's, if its segment has this depth.
class Candidates {
 public:
  Candidates(const KeyAccess& at, uint32_t depth)
      : tag_(at.tag(depth)), before_(TagBefore(tag_, at.hash, at.shape(), depth)) {}
  bool Has(Entry entry) const { return entry.tag() == tag_ || entry.tag() == before_; }

 private:
  const Tag tag_;
  const Tag before_;  // of entries whose tags are not renewed yet
};

// The entry of the key in the MainSegment that a look of this depth names.
Task<std::optional<Found>> FindInMain(KeyAccess at, uint32_t depth, const MainRange& main,
                                      BlockBuffer& block);
Task<std::optional<Found>> FindInView(KeyAccess at, const View& view, BlockBuffer& block);

}  // namespace farside::index::sephash
