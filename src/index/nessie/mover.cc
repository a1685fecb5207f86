#include "index/nessie/mover.h"

#include <span>

#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::Order;
using fabric::Read;

namespace {

std::span<std::byte> BytesOf(Word& word) { return std::as_writable_bytes(std::span(&word, 1)); }

}  // namespace

Task<bool> Mover::Copy(Access at, Look& look, Candidate from, const Item& item, Word expected,
                       uint64_t expected_bytes, bool& cleared) {
  cleared = false;
  const Trail::Step source = look.of(from).effective_step();
  const size_t dest_step = look.of(Other(from)).effective();
  const uint64_t dest = look.of(Other(from)).step(dest_step).slot;
  ItemDraft copy;
  if (!copy.Reserve(pool_.allocator(at.node()), ItemBytes(item.key.size(), item.value.size())))
    co_await copy.FetchRoom(at.op);
  copy.Fill(cleaner_.self(at.part), item.moves + 1, source.word, item.key, item.value, item.hash);
  const Word claim = copy.WordAs(Kind::kClaim, source.word.tag());

  const bool claimed = co_await Claim(at, look, from, copy, claim, expected);
  if (!claimed) {
    copy.Unpublish();
    co_return false;
  }
  cleared = true;
  if (expected.is(Kind::kLive)) cleaner_.Retire(at, expected, expected_bytes);
  if (Mutant(kSourceClearedFirst)) co_await cleaner_.ClearCopy(at, source.slot, source.word, item.bytes);
  // INVARIANT nessie/1.
  if (!IsUndisturbed(look, from, source.word, dest_step) && !Mutant(kSourceNotReadAgain)) {
    if (!Mutant(kClaimKept)) co_await cleaner_.RemoveClaim(at, dest, claim);
    co_return false;
  }
  const uint64_t old =
      co_await at.op.InOrder(Cas(at.part.SlotAt(dest), claim.word(), claim.As(Kind::kLive).word()));
  co_return old == claim.word();
}

// The claim, and behind it the look: the source, and what both slots may be split into.
Task<bool> Mover::Claim(const Access& at, Look& look, Candidate from, ItemDraft& copy, Word claim,
                        Word expected) {
  Trail& source = look.of(from);
  Trail& dest = look.of(Other(from));
  const size_t above_dest = dest.effective();
  const uint64_t slot = dest.effective_step().slot;
  fabric::SmallBatch<2 + 2 * kMostTrailOfChange> batch(at.op, Order::kInOrder);
  batch.Add(copy.Write());
  const size_t swap = batch.Add(Cas(at.part.SlotAt(slot), expected.word(), claim.word()));
  for (size_t i = 0; i < source.read(); ++i)
    batch.Add(Read(at.part.SlotAt(source.step(i).slot), BytesOf(source.step(i).word)));
  for (size_t i = 0; i < above_dest; ++i)
    batch.Add(Read(at.part.SlotAt(dest.step(i).slot), BytesOf(dest.step(i).word)));
  copy.Publish();
  co_await batch;
  co_return batch.Old(swap) == expected.word();
}

// The source stands in the slot that counts, and no client has put a child of either slot to use, or is about
// to. What was read below these slots does not matter.
bool Mover::IsUndisturbed(const Look& look, Candidate from, Word source, size_t dest_step) {
  const Trail& trail = look.of(from);
  if (trail.effective_step().word != source) return false;
  for (size_t i = 0; i < trail.effective(); ++i) {
    if (trail.step(i).word.is(Kind::kSplitting)) return false;
  }
  const Trail& dest = look.of(Other(from));
  for (size_t i = 0; i < dest_step; ++i) {
    const Word word = dest.step(i).word;
    if (word.is_effective() || word.is(Kind::kSplitting)) return false;
  }
  return true;
}

}  // namespace farside::index::nessie
