// Looking through the whole table: for the pool, for fsck, for cursors and for statistics.
//
// All of them go through the suffixes in the order of their reversed bits, so that the keys that a split
// moves to the sibling come behind those that stay: whatever is in the table throughout is met, also if
// segments are split meanwhile. A segment is read as it was at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/kit/partitions.h"
#include "index/sephash/context.h"
#include "index/sephash/directory.h"
#include "index/sephash/merger.h"
#include "index/sephash/resolver.h"
#include "index/sephash/segment_reader.h"
#include "pool/client.h"
#include "pool/memory/reach.h"

namespace farside::index::sephash {

class Walker {
 public:
  Walker(pool::PoolClient& pool, Partitions<Directory>& directories, SegmentReader& reader)
      : pool_(pool), directories_(directories), reader_(reader) {}

  // As Index promises.
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page);
  Task<TableStats> Stats(fabric::Op& op, const MergeCounts& own);
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach);
  Task<Done> Verify(fabric::Op& op);

 private:
  // A segment as it was at one moment, and what a merge would make of it.
  struct Whole {
    Segment* segment = nullptr;
    Look look;
    MainContent main;
    Merged merged;
  };
  struct Totals;

  // The segment that has the keys of this suffix.
  Task<Done> ReadWhole(Access at, uint64_t suffix, Whole& whole);
  Task<Done> WalkDirectory(Access at, pool::Reach& reach);
  // A spare MainSegment, and its pages.
  struct Spare {
    uint64_t offset = 0;
    std::vector<uint32_t> pages;
  };
  // Adds those that the root names and that are not there yet.
  Task<Done> FindSpares(Access at, std::vector<Spare>& spares);
  static void MarkPages(const Access& at, const std::vector<uint32_t>& pages, pool::Reach& reach);
  Task<Done> WalkSegment(Access at, const Whole& whole, pool::Reach& reach);
  // Of a directory with all of its segments, and of one segment without its records.
  Task<Done> AddStats(Access at, Totals& totals, TableStats& stats);
  void AddSegment(const Access& at, const Whole& whole, Totals& totals);
  Task<uint64_t> BytesOfBlock(Access at, Entry entry);
  Task<Done> AppendRecords(Access at, std::vector<Entry> entries, std::vector<Record>& page);
  uint64_t Allocated(fabric::NodeId node, uint64_t bytes);

  // ---- walker_verify.cc
  Task<Done> VerifyDirectory(Access at);
  Task<Done> VerifySegment(Access at, const Whole& whole);
  Task<Done> VerifyEntries(Access at, const Whole& whole);

  pool::PoolClient& pool_;
  Partitions<Directory>& directories_;
  SegmentReader& reader_;
};

// The first suffix behind those that end with `depth` bits of this one; nothing if there are no more.
std::optional<uint64_t> NextSuffix(uint64_t suffix, uint32_t depth);

}  // namespace farside::index::sephash
