#include <optional>

#include "index/shard/bucket_finder.h"
#include "index/shard/changer.h"
#include "index/shard/find_key.h"
#include "index/shard/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;

namespace {

// The slot that an insert without a lock fills.
std::optional<size_t> SlotToFill(const Bucket& bucket, const Shape& shape) {
  if (!Mutant(kPublishedRefill)) return FindUnused(bucket, shape);
  for (size_t slot = 0; slot < shape.slots; ++slot) {
    if (bucket.entry(slot).empty()) return slot;
  }
  return std::nullopt;
}

}  // namespace

Task<Attempt> Changer::TryChange(ChangeContext& context) {
  const KeyAccess& at = context.at;
  if (at.part.IsBehind()) co_await at.part.CatchUp(at.op);
  if (at.directory().announced && !Mutant(kNoCarefulMode)) {
    const std::optional<Attempt> locked = co_await TryChangeLocked(context);
    if (locked.has_value()) co_return *locked;
  }
  View view;
  const bool expects_unsplit = at.part.ExpectsUnsplit();
  if (expects_unsplit) {
    const std::optional<Attempt> split = co_await TryChangeWithSplit(context, view.bucket);
    if (split.has_value()) co_return *split;
  }
  if (view.bucket.version == 0) {
    co_await views_.ReadView(at, view);  // trip 1
    if (!expects_unsplit) at.part.NoteUnsplit(view.bucket.version != at.directory().version);
  }
  BlockBuffer block;
  BucketFinder finder(at, view.bucket, block);
  while (finder.needs_block()) {
    co_await at.op.InOrder(finder.BlockRead());
    const Status taken = finder.TakeBlock();
    if (!taken.ok()) co_return taken.error();
  }
  std::optional<Found> found = finder.result();
  if (!found.has_value() && view.bucket.overflow()) {
    co_await views_.EnsureOverflows(at, view);
    found = co_await FindInOverflows(at, view, block);
  }
  const Attempt changed = co_await ChangeFound(context, &view, found, block, Locking::kIfCareful);
  co_return changed;
}

Task<Attempt> Changer::ChangeFound(ChangeContext& context, View* view, const std::optional<Found>& found,
                                   const BlockBuffer& block, Locking locking, Split* split) {
  const KeyAccess& at = context.at;
  const Result<Decision> decision = DecideAndDraft(context, found);
  if (!decision.ok()) co_return decision.error();
  if (!decision->applied) co_return Attempt::kDone;
  const bool removes = decision->removes;
  if (!removes && !context.draft.owned()) co_await context.draft.FetchRoom(at.op);

  if (!found.has_value()) {
    Attempt inserted = Attempt::kRetry;
    if (split != nullptr) {
      inserted = co_await InsertWithSplit(context, *split);  // trip 2
    } else if (locking == Locking::kHeld) {
      inserted = co_await InsertUnderLock(context, *view);  // trip 2
    } else {
      inserted = co_await InsertAbsent(context, *view);  // trip 2
    }
    if (inserted == Attempt::kDone) at.part.CountRecords(1);
    co_return inserted;
  }
  if (split != nullptr) {
    co_await splitter_.SplitUnderLock(at, *split, nullptr);
    co_return Attempt::kRetry;
  }
  // While the lock is held, the directory may have gone on: the unit is still as it was.
  if (locking != Locking::kHeld && found->slot.version != at.directory().version) {
    const bool brought = co_await BringUpToDate(at, found->slot, removes);
    if (brought) co_return Attempt::kRetry;
    locking = Locking::kTake;
  }
  const Slot& slot = found->slot;
  const Entry desired = Successor(context, slot, removes);
  const Written written = co_await Write(context, slot, desired, removes, locking);  // trip 2
  if (!written.done) {
    const bool touches = context.change.kind == ChangeKind::kTouch;
    if (touches && Mutant(kTouchRetiresLosing)) RetireReplaced(context, slot, block.bytes().size());
    if (locking == Locking::kIfCareful) NoteRival(context, slot, written.found, /*seen=*/true);
    co_return Attempt::kRetry;
  }
  RetireReplaced(context, slot, block.bytes().size());
  if (removes) at.part.CountRecords(-1);
  Remember(context, slot, desired);
  co_return Attempt::kDone;
}

Result<Decision> Changer::DecideAndDraft(ChangeContext& context, const std::optional<Found>& found) {
  std::optional<std::string_view> value;
  FarAddr block;
  if (found.has_value()) value = found->value;
  if (found.has_value()) block = FarAddr(context.node, found->slot.entry.offset());
  const Change& change = context.change;
  Result<Decision> decision = Decide(change, value, block);
  if (!decision.ok()) return decision;
  context.result = {
      .was_present = value.has_value(), .applied = decision->applied, .counter = decision->counter};
  if (decision->applied && !decision->removes) {
    const std::string_view stored = decision->Value(change);
    context.draft.Reserve(pool_.allocator(context.node), pool::BlockBytes(change.key.size(), stored.size()));
    // INVARIANT shard/12: the mark says how this attempt goes about it, so it is made anew for each.
    const bool marked = found.has_value() && IsOverwrite(change.kind);
    context.draft.Fill(change.key, stored, context.hash, marked);
  }
  return decision;
}

// ---- replacing ---------------------------------------------------------------------------------------

Entry Changer::Successor(const ChangeContext& context, const Slot& slot, bool removes) {
  if (!removes) return EntryFor(context.draft, context.at.tag(slot.candidate, slot.version));
  // INVARIANT shard/1: a slot that was used does not become unused.
  const bool stays_used = slot.candidate == Candidate::kLevel1 && !Mutant(kPublishedRefill);
  return stays_used ? Entry::Hole() : Entry();
}

Task<Written> Changer::Write(ChangeContext& context, const Slot& slot, Entry desired, bool removes,
                             Locking locking) {
  if (context.change.kind == ChangeKind::kTouch && Mutant(kTouchByWrite))
    return SlotWriter::WriteSlot(context.at.op, slot, desired, context.draft);
  return writer_.Write(context.at, slot, desired, removes ? nullptr : &context.draft, locking);
}

void Changer::RetireReplaced(const ChangeContext& context, const Slot& slot, uint64_t block_bytes) {
  pool::Allocator& allocator = pool_.allocator(context.node);
  const FarAddr replaced(context.node, slot.entry.offset());
  const bool touches = context.change.kind == ChangeKind::kTouch;
  if (Mutant(kReuseAtOnce) || (touches && Mutant(kTouchFreesAtOnce))) {
    allocator.FreeUnpublished(replaced, block_bytes);
  } else {
    allocator.Retire(replaced, block_bytes, pool_.published_epoch(context.node));
  }
}

void Changer::Remember(const ChangeContext& context, Slot slot, Entry entry) {
  if (!locations_.enabled()) return;
  if (!entry.has_block()) return locations_.Forget(context.at);
  slot.entry = entry.WithFlagOf(slot.entry);
  locations_.Remember(context.at, slot, *context.pin);
}

Task<bool> Changer::BringUpToDate(const KeyAccess& at, const Slot& slot, bool removes) {
  const Result<Done> split =
      co_await splitter_.SplitFor(at, slot.candidate, at.number(slot.candidate)).Outcome();
  if (split.ok()) co_return true;
  // There may be no memory for the nodes of level 3. Deleting makes room, so it must not need any: under the
  // lock, no client splits the unit, and what it has not yet passed on can be changed where it is.
  if (split.error().code() != ErrorCode::kOutOfMemory || !removes) co_return split.error();
  co_return false;
}

// ---- inserting ---------------------------------------------------------------------------------------

Task<Attempt> Changer::InsertAbsent(ChangeContext& context, const View& view) {
  const KeyAccess& at = context.at;
  const Bucket& bucket = view.bucket;
  if (bucket.version != at.directory().version) {
    const bool inserted = co_await splitter_.SplitWith(at, bucket, context.draft);
    co_return inserted ? Attempt::kDone : Attempt::kRetry;
  }
  const std::optional<size_t> unused = SlotToFill(bucket, at.shape());
  if (!unused.has_value()) {
    const Attempt inserted = co_await overflows_.Insert(at, context.draft);
    co_return inserted;
  }
  // INVARIANT shard/1: if the slot is still unused, no client has inserted anything in this bucket since it
  // was read, and so none has had to go to another level.
  const Slot slot = SlotOf(at.part, bucket, *unused);
  const Entry desired = EntryFor(context.draft, at.tag(Candidate::kLevel1, bucket.version));
  const Written written = co_await writer_.Write(at, slot, desired, &context.draft, Locking::kIfCareful);
  if (!written.done) co_return Attempt::kRetry;
  Remember(context, slot, desired);
  co_return Attempt::kDone;
}

}  // namespace farside::index::shard
