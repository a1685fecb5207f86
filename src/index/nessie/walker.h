// Looking through the whole table: for the pool, for fsck, for cursors and for statistics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/partition.h"
#include "index/nessie/trail.h"
#include "pool/client.h"
#include "pool/memory/reach.h"

namespace farside::index::nessie {

class Walker {
 public:
  Walker(pool::PoolClient& pool, Partitions& partitions) : pool_(pool), partitions_(partitions) {}

  // As Index promises.
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page);
  Task<TableStats> Stats(fabric::Op& op);
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach);
  Task<Done> Verify(fabric::Op& op);

 private:
  // A slot with an item.
  struct Used {
    uint64_t slot = 0;
    Word word;
    ItemRead read;
    Item item;
  };
  static constexpr uint64_t kSlotsByATrip = 64;
  // Slots that stand side by side in one segment.
  struct Range {
    uint64_t first = 0;
    uint64_t slots = 0;
    std::array<Word, kSlotsByATrip> words;
    std::vector<std::unique_ptr<Used>> used;

    std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words).first(slots)); }
  };
  struct Counts {
    uint64_t records = 0;
    uint64_t unsplit = 0;
    uint64_t moved = 0;  // records that stand in their secondary slots
  };

  // Whether the slot is a home of the item's key.
  static bool IsHome(const Partition& part, const Used& used);
  // READs some slots, from `first` on and in one segment, and the items in them. Returns how many slots.
  Task<uint64_t> ReadRange(fabric::Op& op, Partition& part, uint64_t first, uint64_t slots, Range& range,
                           Counts* counts = nullptr);
  // The items of those slots of the range that had other words `before`.
  Task<Done> ReadItemsOf(fabric::Op& op, Partition& part, Range& range, const Range* before);
  Task<Done> MarkRange(fabric::Op& op, Partition& part, const Range& range, pool::Reach& reach);
  Task<Done> AppendRange(fabric::Op& op, Partition& part, const Range& range, std::vector<Record>& page);
  // Appends the key with the value that a search finds, if it does.
  Task<Done> AppendFound(fabric::Op& op, Partition& part, uint64_t hash, std::string key,
                         std::vector<Record>& page);
  static Task<std::string> KeyOf(fabric::Op& op, Partition& part, const Used& used);
  // What came to other slots of the range while they were sampled. Returns how many moves there were.
  Task<uint64_t> AppendChanged(fabric::Op& op, Partition& part, const Range& range,
                               std::vector<Record>& page);
  // Appends the keys that have moved behind the cursor, of `count` moves, with a cursor that has to start
  // anew if entries are lost.
  Task<Done> AppendMoved(fabric::Op& op, Partition& part, Cursor& cursor, uint64_t count,
                         std::vector<Record>& page);
  // The same when the cursor has read all slots.
  Task<Done> AppendLastMoved(fabric::Op& op, Partition& part, Cursor& cursor, std::vector<Record>& page);
  Task<Done> AppendHash(fabric::Op& op, Partition& part, uint64_t hash, std::vector<Record>& page);
  // Whether the live item in a slot is what counts for its key, and not the source of a copy.
  Task<bool> IsRecord(fabric::Op& op, Partition& part, const Used& used);
  Task<Done> AddStats(fabric::Op& op, Partition& part, TableStats& stats, Counts& counts);
  Task<Done> VerifyPartition(fabric::Op& op, Partition& part);
  Task<Done> VerifySlot(fabric::Op& op, Partition& part, const Used& used);
  Task<Done> VerifyCopies(fabric::Op& op, Partition& part, const Used& used, Word other);

  pool::PoolClient& pool_;
  Partitions& partitions_;
};

}  // namespace farside::index::nessie
