// Looking through the whole table: for the pool, for fsck, for cursors and for statistics.
//
// All of them go through the units in the order of their numbers, in one level after the other, until there
// are no more. Entries move to units with higher numbers only, never to another level: so whatever is in the
// table throughout is met, in its old place or in its new one, also if the table grows meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/shard/bucket.h"
#include "index/shard/context.h"
#include "index/shard/partitions.h"
#include "index/shard/unit_locks.h"
#include "index/shard/view_reader.h"
#include "pool/client.h"
#include "pool/memory/reach.h"

namespace farside::index::shard {

class Walker {
 public:
  Walker(pool::PoolClient& pool, Nanos backoff, Partitions& partitions, UnitLocks& locks, ViewReader& views)
      : pool_(pool), backoff_(backoff), partitions_(partitions), locks_(locks), views_(views) {}

  // As Index promises. `cache_bytes` is what the client's caches take.
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page);
  Task<TableStats> Stats(fabric::Op& op, uint64_t cache_bytes);
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach);
  Task<Done> Verify(fabric::Op& op);

 private:
  // A unit as it is: what was not split yet has version 0, and no entries.
  struct RawUnit {
    Bucket bucket;
    Overflow overflow;
  };
  struct LevelCounts {
    std::array<uint64_t, 3> records{};
  };
  Task<Done> ReadRaw(Access at, uint64_t unit, RawUnit& raw);
  Task<bool> IsHalfSplit(Access at, uint64_t unit, uint32_t version, const RawUnit& raw);
  static std::vector<Slot> SlotsOf(const Access& at, const RawUnit& raw, bool level1);
  // Of the block that an entry names; reads it if its size does not stand in the entry.
  static Task<uint64_t> BytesOfBlock(Access at, Entry entry);

  Task<Done> WalkPartition(Access at, pool::Reach& reach);
  Task<Done> WalkUnit(Access at, uint64_t unit, pool::Reach& reach);
  Task<Done> AppendUnit(Access at, uint64_t unit, bool level1, std::vector<Record>& page);
  Task<Done> AddStats(Access at, TableStats& stats, LevelCounts& levels);
  Task<Done> AddUnitStats(Access at, uint64_t unit, TableStats& stats, LevelCounts& levels);
  Task<Done> VerifyUnit(Access at, uint64_t unit);
  Task<Done> VerifySlot(Access at, Slot slot);

  pool::PoolClient& pool_;
  const Nanos backoff_;
  Partitions& partitions_;
  UnitLocks& locks_;
  ViewReader& views_;
};

}  // namespace farside::index::shard
