// Closing rounds that are not full: a segment whose keys are all deleted gives back what it still holds.
//
// Deleted records are given back by the merges that follow, and rounds end when they are full. In a segment
// whose last key was deleted, no client may append any more: the round stays as it is, with its tombstones,
// and the blocks that they and the last merge have dropped stay too. So a client that has deleted what seems
// to be the last key of a segment fills the free slots with padding, somewhat later, and merges: twice, since
// what a merge drops is retired by the next one (sephash/3).
//
// The same helps a segment that must not retire anything before its parent, the segment that it was split
// from, is merged (sephash/3): if no key of the parent is changed any more, the parent's round is closed.
//
// Blocks that an evacuation wants to have back are named by slots and by lists of what was dropped, whether
// or not their records have moved: the rounds of their segments are closed too, as soon as there is memory.
// So are some rounds when a block finds no room: every segment holds back as many blocks as a CurSegment has
// entries, and the last merge has dropped as many.
//
// That is housekeeping: a merge is right at any time, and if the client dies or is wrong, nothing is lost.
#pragma once

#include <cstdint>
#include <deque>

#include "farside/task.h"
#include "index/sephash/context.h"
#include "index/sephash/look.h"
#include "index/sephash/merger.h"
#include "index/sephash/segment_reader.h"
#include "pool/client.h"

namespace farside::index::sephash {

class Closer {
 public:
  Closer(pool::PoolClient& pool, SegmentReader& reader, Merger& merger)
      : pool_(pool), reader_(reader), merger_(merger) {}

  // A key was deleted; the look has the tombstone, and names a MainSegment of so many entries.
  void NoteDelete(const Access& at, Segment& segment, const Look& look, uint32_t main_entries);

  // Whether a segment waits for an epoch that has come: so no segment is closed often, however often its keys
  // come and go.
  bool IsDue() const {
    const bool waits = !waiting_.empty() && waiting_.front().epochs != pool_.KnownEpochs();
    return waits || merger_.has_overdue_parent();
  }
  // Closes one segment. The operation holds a pin.
  Task<Done> CloseOne(fabric::Op& op, const pool::PoolClient::Pin& pin);

  // A block of this segment was touched (evac/1).
  void NoteTouched(const Access& at, Segment& segment);
  // There is no room for a block: some segments are noted as well, others every time.
  void NoteSome(const Access& at);
  bool has_touched() const { return !touched_.empty(); }
  // Closes one of the segments that were noted, so that nothing of the table names a block that no record
  // stands in. The operation holds a pin. kOutOfMemory: it stays noted.
  Task<Done> CloseTouched(fabric::Op& op, const pool::PoolClient::Pin& pin);

 private:
  struct Waiting {
    Directory* directory = nullptr;
    Segment* segment = nullptr;
    uint64_t epochs = 0;  // pool.KnownEpochs() when it was noted
  };

  // Which segments are closed: those without a key; those that hold more than their records; any.
  enum class Which : uint8_t { kEmpty, kTouched, kAny };
  // True: the round was closed.
  Task<bool> Close(Access at, Segment& segment, uint64_t birth, Which which);
  Task<Done> CloseTwice(Access at, Segment& segment, uint64_t birth);
  // If its slots keep the segment from retiring blocks.
  Task<Done> CloseParent(Access at, const Segment& segment, uint64_t birth);
  // Fills the free slots. False: another client has merged the round.
  Task<bool> Pad(Access at, const Segment& segment, Look& look, uint64_t merges);

  pool::PoolClient& pool_;
  SegmentReader& reader_;
  Merger& merger_;
  std::deque<Waiting> waiting_;
  std::deque<Waiting> touched_;
  uint64_t next_noted_ = 0;  // a hash
};

}  // namespace farside::index::sephash
