// Finding a key in what was read of its places: an entry with its tag whose block has the key.
#pragma once

#include <optional>
#include <string_view>

#include "farside/result.h"
#include "farside/task.h"
#include "index/kit/block_buffer.h"
#include "index/shard/context.h"
#include "index/shard/view.h"

namespace farside::index::shard {

// The slot of a bucket, with its entry.
inline Slot SlotOf(const Partition& part, const Bucket& bucket, size_t slot) {
  return {.candidate = Candidate::kLevel1,
          .unit = bucket.unit,
          .version = bucket.version,
          .at = part.BucketAt(bucket.unit) + slot * sizeof(Entry),
          .entry = bucket.entry(slot)};
}

// The key's slot and value, from a view with all levels. `buffer` gets the block that the value stands in.
Task<std::optional<Found>> FindKey(const KeyAccess& at, const View& view, BlockBuffer& buffer);
Task<std::optional<Found>> FindInBucket(const KeyAccess& at, const Bucket& bucket, BlockBuffer& buffer);
Task<std::optional<Found>> FindInOverflows(const KeyAccess& at, const View& view, BlockBuffer& buffer);

// The value in a block that was read, if the block is the key's.
Result<std::optional<std::string_view>> ValueIfKey(std::span<const std::byte> block, std::string_view key);

}  // namespace farside::index::shard
