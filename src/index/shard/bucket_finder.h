// Finds the entry of a key among the entries that were read of its bucket of level 1. The blocks of the
// candidates decide, and the caller READs them, so that no coroutine stands between:
//
//   BucketFinder finder(at, view.bucket, buffer);
//   while (finder.needs_block()) {
//     co_await at.op.InOrder(finder.BlockRead());
//     const Status taken = finder.TakeBlock();
//     if (!taken.ok()) co_return taken.error();
//   }
//   if (finder.found()) ...
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fabric/verb.h"
#include "farside/result.h"
#include "index/kit/block_buffer.h"
#include "index/shard/bucket.h"
#include "index/shard/context.h"
#include "index/shard/find_key.h"
#include "index/shard/view.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

// Whether a block that an entry with the key's tag names is the key's.
bool IsOf(const pool::BlockView& block, std::string_view key);

class BucketFinder {
 public:
  // All that is passed by reference must stay until the end of the search.
  BucketFinder(const KeyAccess& at, const Bucket& bucket, BlockBuffer& buffer)
      : BucketFinder(at, bucket.unit, bucket.version, bucket.entries(), buffer) {}
  // Inlined by force: g++ would not, and a call of it costs a Get 25 instructions.
  [[gnu::always_inline]] BucketFinder(const KeyAccess& at, uint64_t unit, uint32_t version,
                                      const Entry* entries, BlockBuffer& buffer)
      : at_(at),
        unit_(unit),
        version_(version),
        entries_(entries),
        buffer_(buffer),
        candidates_(SlotsWithTag(entries, at.shape(), at.tag(Candidate::kLevel1, version))) {
    TakeCandidate();
  }
  BucketFinder(const BucketFinder&) = delete;
  BucketFinder& operator=(const BucketFinder&) = delete;

  bool needs_block() const { return block_bytes_ > 0; }
  fabric::ReadIntoVerb BlockRead() {
    const fabric::FarAddr block_at(at_.part.node(), entries_[slot_].offset());
    return fabric::ForBlock(fabric::Read(block_at, buffer_.Resize(block_bytes_)));
  }
  Status TakeBlock();

  bool found() const { return found_; }
  // Of the entry that was found. The value is a view of the buffer.
  Slot slot() const { return SlotOf(at_.part, unit_, version_, entries_, slot_); }
  std::string_view value() const { return value_; }
  // The same as one; empty if nothing was found.
  std::optional<Found> result() const {
    if (!found_) return std::nullopt;
    return Found{.slot = slot(), .value = value_};
  }

 private:
  // The next entry that may be the key's.
  void TakeCandidate() {
    while (candidates_ != 0) {
      const auto slot = static_cast<size_t>(std::countr_zero(candidates_));
      candidates_ &= candidates_ - 1;
      const Entry entry = entries_[slot];
      if (!entry.has_block()) continue;
      slot_ = slot;
      reads_header_ = entry.bytes() == 0;
      block_bytes_ = reads_header_ ? pool::kLine : entry.bytes();
      return;
    }
  }

  const KeyAccess& at_;
  const uint64_t unit_;
  const uint32_t version_;
  const Entry* const entries_;
  BlockBuffer& buffer_;
  uint64_t candidates_;        // slots to look at, a bit for each
  size_t slot_ = 0;            // of the candidate
  uint64_t block_bytes_ = 0;   // to READ of the candidate's block; 0: nothing
  bool reads_header_ = false;  // of a block whose size its entry does not have
  bool found_ = false;
  std::string_view value_;
};

}  // namespace farside::index::shard
