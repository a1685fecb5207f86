#include "index/nessie/mover.h"

#include <optional>
#include <span>

#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::Order;
using fabric::Read;

Task<bool> Mover::Copy(Access at, Look& look, Candidate from, const Item& item, Word expected,
                       uint64_t expected_bytes, bool& cleared) {
  cleared = false;
  const Trail::Step source = look.of(from).effective_step();
  const uint64_t dest = look.of(Other(from)).effective_step().slot;
  const bool is_entered = dest < source.slot && !Mutant(kMoveNotEntered);
  ItemDraft copy;
  if (!copy.Reserve(pool_.allocator(at.node()), ItemBytes(item.key.size(), item.value.size())))
    co_await copy.FetchRoom(at.op);
  copy.Fill(cleaner_.self(at.part), item.moves + 1, source.word, item.key, item.value, item.hash);
  Word claim = copy.WordAs(Kind::kClaim, source.word.tag());
  if (Mutant(kItemChangesSlots)) claim = source.word.As(Kind::kClaim);

  uint64_t move = 0;
  const bool claimed = co_await Claim(at, look, from, copy, claim, expected, move);
  if (!claimed) {
    copy.Unpublish();
    if (is_entered) EnterNoMove(at, move);
    co_return false;
  }
  cleared = true;
  if (Mutant(kItemChangesSlots)) copy.Unpublish();
  if (expected.is(Kind::kLive)) cleaner_.Retire(at, expected, expected_bytes);
  if (Mutant(kSourceClearedFirst)) co_await cleaner_.ClearSource(at, source.slot, source.word, item.bytes);
  // INVARIANT nessie/1.
  const bool undisturbed = co_await IsUndisturbed(at, look, from, source.word);
  if (!undisturbed && !Mutant(kSourceNotReadAgain)) {
    if (is_entered) EnterNoMove(at, move);
    if (!Mutant(kClaimKept)) co_await cleaner_.RemoveClaim(at, dest, claim);
    co_return false;
  }
  const fabric::AtomicVerb commit = Cas(at.part.SlotAt(dest), claim.word(), claim.As(Kind::kLive).word());
  if (Mutant(kSourceClearedWithCommit)) {
    const Word token = cleaner_.NewToken(at.part, Kind::kEmpty);
    auto [old, left] =
        co_await at.op.InOrder(commit, Cas(at.part.SlotAt(source.slot), source.word.word(), token.word()));
    if (left == source.word.word()) cleaner_.Retire(at, source.word, item.bytes);
    co_return old == claim.word();
  }
  if (!is_entered) {
    const uint64_t old = co_await at.op.InOrder(commit);
    co_return old == claim.word() || Mutant(kLostClaimIgnored);
  }
  // INVARIANT nessie/11: WRITE, CAS keep their order.
  const LogEntry entry{.number = move + 1, .hash = item.hash};
  auto [written, old] = co_await at.op.InOrder(fabric::WriteObject(at.part.LogAt(move), entry), commit);
  co_return old == claim.word() || Mutant(kLostClaimIgnored);
}

// A number was taken for nothing. Its entry is made all the same: cursors wait for it.
void Mover::EnterNoMove(const Access& at, uint64_t move) {
  const LogEntry entry{.number = move + 1, .hash = 0};
  at.op.Detach(Order::kInOrder, fabric::ForMaintenance(fabric::WriteObject(at.part.LogAt(move), entry)));
}

// The claim, and behind it the look: the source, and what both slots may be split into.
Task<bool> Mover::Claim(const Access& at, Look& look, Candidate from, ItemDraft& copy, Word claim,
                        Word expected, uint64_t& move) {
  Trail& source = look.of(from);
  Trail& dest = look.of(Other(from));
  const size_t above_dest = dest.effective();
  const uint64_t slot = dest.effective_step().slot;
  fabric::SmallBatch<3 + 2 * kMostTrailOfChange> batch(at.op, Order::kInOrder);
  batch.Add(copy.Write());
  const size_t swap = batch.Add(Cas(at.part.SlotAt(slot), expected.word(), claim.word()));
  for (size_t i = 0; i < source.read(); ++i)
    batch.Add(Read(at.part.SlotAt(source.step(i).slot), BytesOf(source.step(i).word)));
  for (size_t i = 0; i < above_dest; ++i)
    batch.Add(Read(at.part.SlotAt(dest.step(i).slot), BytesOf(dest.step(i).word)));
  // INVARIANT nessie/11: fenced, since an atomic may overtake another one. A cursor that begins with this
  // number finds the claim.
  std::optional<size_t> number;
  if (slot < source.effective_step().slot && !Mutant(kMoveNotEntered))
    number = batch.Add(fabric::Fenced(fabric::Faa(at.part.MovesAt(), 1)));
  copy.Publish();
  co_await batch;
  if (number.has_value()) move = batch.Old(*number);
  co_return batch.Old(swap) == expected.word();
}

// The source stands in the slot that counts, and no client is about to put a child of either slot to use. A
// mark there may be that of a dead client: it is removed, for the next migration.
Task<bool> Mover::IsUndisturbed(const Access& at, const Look& look, Candidate from, Word source) {
  bool undisturbed = look.of(from).effective_step().word == source;
  for (const Trail& trail : look.trails) {
    for (size_t i = 0; i + 1 < trail.read(); ++i) {
      const Trail::Step& step = trail.step(i);
      if (step.word.is(Kind::kUnsplit)) continue;
      if (step.word.is(Kind::kSplitting)) co_await cleaner_.Unmark(at, step.slot, step.word);
      undisturbed = false;
    }
  }
  co_return undisturbed;
}

}  // namespace farside::index::nessie
