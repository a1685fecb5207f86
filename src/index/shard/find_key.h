// Finding a key in what was read of its places: an entry with its tag whose block has the key.
#pragma once

#include <optional>
#include <string_view>

#include "farside/result.h"
#include "farside/task.h"
#include "index/kit/block_buffer.h"
#include "index/shard/context.h"
#include "index/shard/location_cache.h"
#include "index/shard/view.h"

namespace farside::index::shard {

// A slot of level 1 with its entry, of the entries that were read of a bucket.
inline Slot SlotOf(const Partition& part, uint64_t unit, uint32_t version, const Entry* entries,
                   size_t slot) {
  return {.candidate = Candidate::kLevel1,
          .unit = unit,
          .version = version,
          .at = part.BucketAt(unit) + slot * sizeof(Entry),
          .entry = entries[slot]};
}
inline Slot SlotOf(const Partition& part, const Bucket& bucket, size_t slot) {
  return SlotOf(part, bucket.unit, bucket.version, bucket.entries(), slot);
}

// Whether the entry may be that of a key with this tag, and says how large its block is.
inline bool MayBeOf(Entry entry, uint64_t tag) {
  return entry.has_block() && entry.bytes() != 0 && entry.tag() == tag;
}

// The key's slot and value, from a view with all levels. `buffer` gets the block that the value stands in.
Task<std::optional<Found>> FindKey(const KeyAccess& at, const View& view, BlockBuffer& buffer);
Task<std::optional<Found>> FindInBucket(const KeyAccess& at, const Bucket& bucket, BlockBuffer& buffer);
Task<std::optional<Found>> FindInOverflows(const KeyAccess& at, const View& view, BlockBuffer& buffer);
// The key where it was seen (shard/9). One trip for the line of the slot and the block of the entry; one more
// if the slot has another entry of the key's by now. Nothing: the key is not there any more, and may be
// elsewhere.
Task<std::optional<Found>> FindAgain(const KeyAccess& at, Location known, BlockBuffer& buffer);

}  // namespace farside::index::shard
