// What a merge makes of a round and of a MainSegment: of each key, the latest entry, unless that is a
// tombstone.
//
// Two entries with different tags are of different keys, and two entries that name the same block are of the
// same key. Only where neither decides, blocks are read: of the few entries that share a tag.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "farside/task.h"
#include "index/sephash/context.h"
#include "index/sephash/layout.h"
#include "index/sephash/look.h"

namespace farside::index::sephash {

struct Merged {
  std::vector<Entry> entries;  // sorted, of epoch 0
  // Blocks of no entry any more. INVARIANT sephash/3: those that entries of the round name stay until the
  // next merge, when no slot names them; the others were in the MainSegment only.
  std::vector<DroppedBlock> dropped;
  std::vector<DroppedBlock> replaced;
};

// The look may have free slots. The blocks are those of the table; the caller's pin keeps them. Renews the
// tags of up to so many entries that are of the group before.
Task<Merged> Resolve(Access at, const Look& look, std::span<const Entry> main, size_t renewals = 0);

}  // namespace farside::index::sephash
