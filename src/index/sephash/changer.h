// Changing a key: one trip to look at its segment, one to append an entry.
//
//   sephash/2  A change appends to the first free slot: the lowest one that is not of the round. All lower
//              slots were seen with entries of the round, and the CAS expects the very word that was seen. So
//              a CAS that succeeds proves that nothing was appended since the look.
//   sephash/6  The byte of the filter is set before the entry is there, in the MainSegment that the look
//              names.
//   sephash/10 A key is appended to a segment only if the look covers its hash: a split changes the epoch
//              together with the depth, so the CAS of a client that has not seen it fails.
#pragma once

#include <cstdint>
#include <optional>

#include "farside/task.h"
#include "index/kit/block_buffer.h"
#include "index/kit/context.h"
#include "index/sephash/closer.h"
#include "index/sephash/context.h"
#include "index/sephash/find_key.h"
#include "index/sephash/merger.h"
#include "index/sephash/options.h"
#include "index/sephash/segment_reader.h"
#include "pool/client.h"

namespace farside::index::sephash {

class Changer {
 public:
  Changer(const Options& options, pool::PoolClient& pool, SegmentReader& reader, Merger& merger,
          Closer& closer)
      : options_(options), pool_(pool), reader_(reader), merger_(merger), closer_(closer) {}

  // One attempt.
  Task<Attempt> TryChange(ChangeContext& context);

 private:
  // Of a touch: the table may name the block, so the round of its segment is to be closed.
  Task<Done> NoteTouched(ChangeContext& context, Segment& segment, const Look& look,
                         const std::optional<Found>& found);
  // What the change makes of the value that was found, and the draft of its block if it has one.
  Task<Decision> DecideAndDraft(ChangeContext& context, const std::optional<Found>& found);
  // Appends the draft's block, or a tombstone for the block that was found.
  Task<Attempt> Append(ChangeContext& context, Segment& segment, Look& look, Entry entry);
  // One trip. True: it is there. False: `look` has the entry that was there before.
  Task<bool> TrySlot(ChangeContext& context, Segment& segment, Look& look, uint32_t slot, Entry entry);
  // The round is full. Another client may be merging it; if it takes long, this one does.
  Task<Done> MakeRoom(ChangeContext& context, Segment& segment, const Look& look);
  Task<Done> Merge(ChangeContext& context, Segment& segment, const Look& look);

  const Options& options_;
  pool::PoolClient& pool_;
  SegmentReader& reader_;
  Merger& merger_;
  Closer& closer_;
};

}  // namespace farside::index::sephash
