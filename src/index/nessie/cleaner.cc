#include "index/nessie/cleaner.h"

#include "fabric/op.h"
#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Read;

Word Cleaner::NewToken(const Partition& part, Kind kind) {
  if (Mutant(kEmptyIsZero) && kind == Kind::kEmpty) return Word::FirstEmpty();
  return Word::Token(kind, self(part), pool_.NextToken());
}

void Cleaner::Retire(const Access& at, Word word, uint64_t bytes) {
  if (at.part.IsSpare(word.offset())) return spares_.Unlinked(at.part, word.offset());
  pool::Allocator& allocator = pool_.allocator(at.node());
  const FarAddr block(at.node(), word.offset());
  const uint64_t size = word.bytes() != 0 ? word.bytes() : bytes;
  if (Mutant(kReusedAtOnce)) return allocator.FreeUnpublished(block, size);
  allocator.Retire(block, size, at.birth);
}

Task<bool> Cleaner::IsGone(Access at, pool::Owner writer, Word pending) {
  if (writer == self(at.part)) co_return !running_.Has(at.part, pending);
  if (Mutant(kTakenBackUnfenced)) co_return true;
  const pool::Standing standing = co_await pool_.member(at.node()).StandingOf(at.op, writer);
  co_return standing == pool::Standing::kGone;
}

Task<Swapped> Cleaner::Swap(Access at, uint64_t slot, Word from, Word to) {
  const uint64_t old = co_await at.op.InOrder(Cas(at.part.SlotAt(slot), from.word(), to.word()));
  const bool done = old == from.word();
  co_return Swapped{.done = done, .now = done ? to : Word(old)};
}

// INVARIANT nessie/10.
Task<Swapped> Cleaner::Unlink(Access at, uint64_t slot, Word item, Word to, uint64_t bytes) {
  const Swapped swapped = co_await Swap(at, slot, item, to);
  if (swapped.done || Mutant(kLoserRetires)) Retire(at, item, bytes);
  co_return swapped;
}

// A dead writer's entry is never finished: beside a value that the key has in its other slot by now, that
// would make a second one. Of an operation of this client that was destroyed, a verb may still be on its way:
// so its item is not used again while this client lives. A spare line is, after a grace period, which waits
// for that verb too.
Task<Swapped> Cleaner::RollBack(Access at, uint64_t slot, Word pending, const Item& item) {
  const bool had_value = item.replaced.is(Kind::kLive);
  Word back = had_value ? item.replaced : NewToken(at.part, Kind::kEmpty);
  if (Mutant(kDeadEntryFinished) || Mutant(kLiveEntryFinished)) {
    back = pending.As(Kind::kLive);
    const Swapped swapped = co_await Swap(at, slot, pending, back);
    if (swapped.done && had_value) Retire(at, item.replaced, item.bytes);
    co_return swapped;
  }
  Swapped swapped;
  if (item.owner == self(at.part)) {
    swapped = co_await Swap(at, slot, pending, back);
    if (swapped.done && at.part.IsSpare(pending.offset())) spares_.Unlinked(at.part, pending.offset());
  } else {
    swapped = co_await Unlink(at, slot, pending, back, item.bytes);
  }
  co_return swapped;
}

// CAS, READ keep their order. Once the CAS has unlinked the item, it stays what it is until this client
// retires it: so if no item is there, the word was damaged, and what it names is not the table's to give
// back.
Task<Swapped> Cleaner::RemoveClaim(Access at, uint64_t slot, Word claim) {
  const Word to = NewToken(at.part, Kind::kEmpty);
  if (claim.bytes() == 0) {
    const uint64_t bytes = co_await BytesOfItem(at.op, at.node(), claim);
    const Swapped swapped = co_await Unlink(at, slot, claim, to, bytes);
    co_return swapped;
  }
  ItemRead read(claim);
  auto [old, item] = co_await at.op.InOrder(
      Cas(at.part.SlotAt(slot), claim.word(), to.word()),
      ForBlock(Read(FarAddr(at.node(), claim.offset()), read.buffer.Resize(claim.bytes()))));
  const bool done = old == claim.word();
  if (done) {
    const Result<Item> unlinked = read.Decode();
    if (!unlinked.ok()) co_return unlinked.error();
  }
  if (done || Mutant(kLoserRetires)) Retire(at, claim, claim.bytes());
  co_return Swapped{.done = done, .now = done ? to : Word(old)};
}

Task<Swapped> Cleaner::ClearSource(Access at, uint64_t slot, Word live, uint64_t bytes) {
  return Unlink(at, slot, live, NewToken(at.part, Kind::kEmpty), bytes);
}

Task<Swapped> Cleaner::Unmark(Access at, uint64_t slot, Word splitting) {
  return Swap(at, slot, splitting, Word());
}

}  // namespace farside::index::nessie
