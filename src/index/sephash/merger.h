// Merging a full CurSegment into a new MainSegment, and splitting a segment whose MainSegment became too
// large.
//
//   sephash/6  A merge is committed by one CAS on the meta word: the epoch, the depth and the MainSegment
//              change together. What it is made from can change no more: the round is full, and MainSegments
//              never change. So any client can merge, a client that dies while it merges blocks no other
//              client, and of several clients the first one wins.
//   sephash/7  A split commits both of its segments with that CAS: the new MainSegment names the sibling.
//   sephash/9  What a merge has replaced is retired by the client that has committed it, and by no other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "farside/task.h"
#include "index/kit/unpublished.h"
#include "index/sephash/context.h"
#include "index/sephash/look.h"
#include "index/sephash/main_segment.h"
#include "index/sephash/options.h"
#include "index/sephash/resolver.h"
#include "index/sephash/segment.h"
#include "index/sephash/segment_reader.h"
#include "pool/client.h"

namespace farside::index::sephash {

struct MergeCounts {
  uint64_t merges = 0;  // splits included
  uint64_t splits = 0;
  uint64_t lost = 0;  // another client was faster
};

class Merger {
 public:
  Merger(const Options& options, pool::PoolClient& pool, SegmentReader& reader)
      : options_(options), pool_(pool), reader_(reader) {}

  // The look shows that the segment is full. Ends well also if another client was faster. `birth`: the epoch
  // of the operation's pin. `frees`: the operation deletes, so it may take the spare memory of the table.
  Task<Done> Merge(Access at, Segment& segment, const Look& look, uint64_t birth, bool frees);

  const MergeCounts& counts() const { return counts_; }

 private:
  // A merge on its way.
  struct Plan {
    Access at;
    Segment& segment;
    const Look& look;
    const uint64_t birth;
    const bool frees;
    std::vector<DroppedBlock> retired = {};  // once it is committed
    uint64_t old_main_bytes = 0;

    uint32_t depth() const { return look.depth(); }
    uint64_t sibling_suffix() const { return segment.suffix | uint64_t{1} << depth(); }
  };

  Task<Done> CommitMerge(Plan& plan, MainContent next);
  // False: there is no memory for it, or the keys do not divide.
  Task<bool> TrySplit(Plan& plan, MainContent& next);
  Task<Done> CommitSplit(Plan& plan, MainContent low, MainContent high);
  // No slot of the segment that this one was split from names a block of this one any more.
  Task<Done> ForgetMoved(const Plan& plan);
  // The entries of `next` that go to the sibling, with the tags of the new depth. They stay there if they do
  // not divide: then there are none.
  Task<std::vector<Entry>> Divide(const Plan& plan, MainContent& next);
  void Retire(const Plan& plan);

  // ---- spare.cc
  // Room for a MainSegment of at least so many bytes.
  Task<Done> FetchRoom(const Plan& plan, uint64_t bytes, Unpublished& room);
  Task<bool> TakeSpare(const Plan& plan, uint64_t bytes, Unpublished& room);
  Task<Done> RefillSpare(Access at);

  const Options& options_;
  pool::PoolClient& pool_;
  SegmentReader& reader_;
  MergeCounts counts_;
  bool spare_missing_ = false;
};

}  // namespace farside::index::sephash
