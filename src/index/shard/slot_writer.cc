#include "index/shard/slot_writer.h"

#include <utility>
#include <vector>

#include "index/shard/mutants.h"

namespace farside::index::shard {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Read;

// Nothing is awaited between this look at the directory and the CAS; and the pin, which is older than what
// comes next, keeps every client from splitting the unit meanwhile (shard/5).
Task<Written> SlotWriter::Write(const Access& at, const Slot& slot, Entry desired, Draft* draft,
                                Locking locking) {
  const bool lock = locking == Locking::kTake || (locking == Locking::kIfCareful && at.directory().announced);
  if (!lock || Mutant(kNoCarefulMode)) return CasSlot(at.op, slot, desired, draft);
  return WriteLocked(at, slot, desired, draft);
}

// INVARIANT shard/6.
Task<Written> SlotWriter::WriteLocked(Access at, const Slot& slot, Entry desired, Draft* draft) {
  Line line;
  const FarAddr line_at(slot.at.node, slot.at.offset / pool::kLine * pool::kLine);
  const FarAddr head_at = slot.candidate == Candidate::kLevel1 ? line_at : at.part.OverflowAt(slot.unit);
  std::vector<fabric::ReadIntoVerb> reads;
  reads.push_back(Read(head_at, BytesOf(line)));
  co_await locks_.Lock(at, slot.unit, std::move(reads));
  if (line.version() != slot.version) {
    locks_.Unlock(at, slot.unit);
    co_return Written{};
  }
  const Result<Written> written = co_await CasSlot(at.op, slot, desired, draft).Outcome();
  locks_.Unlock(at, slot.unit);
  if (!written.ok()) co_return written.error();
  co_return Written{.done = written->done};
}

Task<Written> SlotWriter::CasSlot(fabric::Op& op, const Slot& slot, Entry desired, Draft* draft) {
  const uint64_t expect = slot.entry.word();
  const uint64_t word = Mutant(kFlagNotKept) ? desired.word() : desired.WithFlagOf(slot.entry).word();
  uint64_t old = 0;
  if (draft == nullptr) {
    old = co_await op.InOrder(Cas(slot.at, expect, word));
  } else {
    draft->Publish();
    // WRITE, CAS keep their order: the block is complete before the entry names it.
    auto [block, found] = co_await op.InOrder(draft->Write(), Cas(slot.at, expect, word));
    old = found;
    if (old != expect) draft->Unpublish();
  }
  co_return Written{.done = old == expect || Mutant(kFailedCasIsDone), .found = Entry(old)};
}

Task<Written> SlotWriter::WriteSlot(fabric::Op& op, const Slot& slot, Entry desired, Draft& draft) {
  draft.Publish();
  const uint64_t word = desired.WithFlagOf(slot.entry).word();
  co_await op.InOrder(draft.Write(), fabric::MaskedCas(slot.at, 0, 0, 0, word, ~uint64_t{0}));
  co_return Written{.done = true};
}

}  // namespace farside::index::shard
