#include "index/chime/entry_mover.h"

#include <array>

#include "index/chime/errors.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Order;
using fabric::Write;

// INVARIANTS chime/3 and 4: from the free slot backwards, each entry is written where it goes, over the copy
// of the one that has just gone on; the new entry comes last. `moves` is odd from before the first WRITE
// until after the last one.
Task<Step> EntryMover::MoveAndCommit(ChangeContext& change, LeafTurn& turn, const Leaf& image,
                                     std::vector<size_t> path, Entry entry) {
  const FarAddr at = table_.At(change.position.node);
  Header moving = image.header;
  moving.moves += Mutant(kMovesNotRaised) ? 0 : 1;
  Header moved = image.header;
  moved.moves += Mutant(kMovesNotRaised) ? 0 : 2;
  std::vector<std::array<std::byte, kEntryBytes>> entries(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    const Entry next = i == 0 ? entry : image.Get(table_.shape(), path[i - 1]);
    StoreEntry(table_.shape(), entries[i].data(), next);
  }
  fabric::Batch trip(change.op, Order::kInOrder);
  const bool with_block = change.draft.owned();
  if (with_block) trip.Add(change.draft.Write());
  trip.Add(Write(at + kUnlockedOffset, BytesBehindLock(moving)));
  for (size_t i = path.size(); i-- > 0;) {
    const size_t step = Mutant(kSourceFirst) ? path.size() - 1 - i : i;
    trip.Add(Write(at + SlotOffset(path[step]), entries[step]));
  }
  trip.Add(Write(at + kUnlockedOffset, BytesBehindLock(moved)));
  turn.AddEnd(trip);
  if (with_block) change.draft.Publish();
  co_await trip;
  if (turn.WasLost(trip)) co_return LockLost();
  co_return Step::kCommitted;
}

}  // namespace farside::index::chime
