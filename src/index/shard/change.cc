// Changing a key: one trip to read where it may stand, one to change it.
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/kit/abandon_guard.h"
#include "index/shard/mutants.h"
#include "index/shard/shard.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Read;

namespace {

// Attempts without a pause between them; each met a change by somebody else.
constexpr int kEagerAttempts = 8;

}  // namespace

Task<Changed> Table::Modify(Op& op, Change change) {
  const Status fits = pool::CheckBlockSizes(change.key, change.value);
  if (!fits.ok()) co_return fits.error();
  const KeyHash hash(Hash64(AsBytes(change.key)));
  Partition& part = PartitionOf(hash);
  part.CountOperation();
  const uint64_t catalogs = pool_.known_catalog_changes();
  KeyQueue::Ticket ticket(key_queue_, op.client(), hash.hash(), change);
  const std::string_view own_value = change.value;
  std::string last_value;  // of those that it has_coalesced
  std::optional<Nanos> began;
  if (!ticket.is_first()) {
    began = op.client().Now();
    {
      const pool::PoolClient::UnpinnedWait wait(pool_);
      co_await ticket;
    }
    if (ticket.outcome().has_value()) co_return *ticket.outcome();
    if (pool_.known_catalog_changes() != catalogs) co_return RetryPolicy::CatalogChanged();  // shard/10
    if (ticket.Coalesce(last_value)) change.value = last_value;
    if (Mutant(kCoalescedTooEarly)) ticket.Complete(Changed{.was_present = true, .applied = true});
  }
  Draft draft;
  const AbandonGuard given_up(ticket, draft);
  Changed changed;
  Result<Attempt> outcome = Attempt::kRetry;
  while (true) {
    outcome = co_await ModifyPinned(op, change, part, hash, draft, changed).Outcome();
    if (!outcome.ok()) {
      outcome =
          co_await ModifyWithRetries(op, change, part, hash, draft, changed, catalogs, began, outcome.error())
              .Outcome();
    }
    // There may be room for its own value.
    const bool alone =
        !ticket.has_coalesced() || outcome.ok() || outcome.error().code() != ErrorCode::kOutOfMemory;
    if (alone) break;
    ticket.Release();
    change.value = own_value;
    if (pool_.known_catalog_changes() != catalogs) co_return RetryPolicy::CatalogChanged();
  }
  if (!outcome.ok()) {
    ticket.Complete(outcome.error());
    co_return outcome.error();
  }
  ticket.Complete(changed);
  co_return changed;
}

// After an attempt that has failed.
Task<Table::Attempt> Table::ModifyWithRetries(Op& op, const Change& change, Partition& part,
                                              const KeyHash& hash, Draft& draft, Changed& changed,
                                              uint64_t catalogs, std::optional<Nanos> began, Error error) {
  for (RetryPolicy retries = RetryPolicySince(catalogs, part, began); retries.Allows(error);) {
    draft.Discard();
    co_await retries.Wait(op);
    if (!retries.MayPinAgain()) co_return RetryPolicy::CatalogChanged();
    const Result<Attempt> outcome = co_await ModifyPinned(op, change, part, hash, draft, changed).Outcome();
    if (outcome.ok()) co_return *outcome;
    error = outcome.error();
  }
  co_return error;
}

Task<Table::Attempt> Table::ModifyPinned(Op& op, const Change& change, Partition& part, const KeyHash& hash,
                                         Draft& draft, Changed& changed) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  for (int attempt = 0; attempt < kEagerAttempts; ++attempt) {
    if (part.IsBehind()) co_await part.CatchUp(op);
    const Attempt outcome = co_await TryModify(op, change, part, hash, draft, changed);
    if (outcome == Attempt::kDone) co_return outcome;
    op.CountRetry();
  }
  co_return Error(ErrorCode::kContended,
                  fmt::format("others changed the bucket in {} attempts; retry later", kEagerAttempts));
}

Task<Table::Attempt> Table::TryModify(Op& op, const Change& change, Partition& part, const KeyHash& hash,
                                      Draft& draft, Changed& changed) {
  if (part.directory().announced && !Mutant(kNoCarefulMode)) {
    const std::optional<Attempt> locked = co_await TryModifyLocked(op, change, part, hash, draft, changed);
    if (locked.has_value()) co_return *locked;
  }
  View view;
  const bool expects_unsplit = part.ExpectsUnsplit();
  if (expects_unsplit) {
    const std::optional<Attempt> split =
        co_await TryModifyWithSplit(op, change, part, hash, draft, changed, view.bucket);
    if (split.has_value()) co_return *split;
  }
  if (view.bucket.version == 0) {
    co_await ReadView(op, part, hash, view);  // trip 1
    if (!expects_unsplit) part.NoteUnsplit(view.bucket.version != part.directory().version);
  }
  BlockBuffer buffer;
  std::optional<Found> found = co_await FindInBucket(op, part, hash, view.bucket, change.key, buffer);
  if (!found.has_value() && view.bucket.overflow()) {
    co_await KnowOverflows(op, part, hash, view);
    found = co_await FindInOverflows(op, part, hash, view, change.key, buffer);
  }
  std::optional<std::string_view> value;
  if (found.has_value()) value = found->value;
  const Result<Decision> decision = DecideAndDraft(change, part, hash, value, draft, changed);
  if (!decision.ok()) co_return decision.error();
  if (!decision->applied) co_return Attempt::kDone;
  if (!decision->removes && !draft.owned()) co_await draft.FetchRoom(op);

  if (!found.has_value()) {
    const Attempt inserted = co_await InsertAbsent(op, part, hash, view, change.key, draft);  // trip 2
    if (inserted == Attempt::kDone) part.CountRecords(1);
    co_return inserted;
  }
  const Attempt replaced = co_await Replace(op, part, hash, found->slot, decision->removes, draft, buffer,
                                            /*locked=*/false);  // trip 2
  if (replaced == Attempt::kDone && decision->removes) part.CountRecords(-1);
  co_return replaced;
}

Result<Decision> Table::DecideAndDraft(const Change& change, const Partition& part, const KeyHash& hash,
                                       std::optional<std::string_view> value, Draft& draft,
                                       Changed& changed) {
  Result<Decision> decision = Decide(change, value);
  if (!decision.ok()) return decision;
  changed = {.was_present = value.has_value(), .applied = decision->applied, .counter = decision->counter};
  if (decision->applied && !decision->removes) {
    const std::string_view stored = decision->Value(change);
    draft.Reserve(pool_.allocator(part.node()), pool::BlockBytes(change.key.size(), stored.size()));
    draft.Fill(change.key, stored, hash.hash());
  }
  return decision;
}

Task<std::optional<Table::Attempt>> Table::TryModifyLocked(Op& op, const Change& change, Partition& part,
                                                           const KeyHash& hash, Draft& draft,
                                                           Changed& changed) {
  View view;
  co_await LockView(op, part, hash, view);  // trip 1
  const Result<std::optional<Attempt>> outcome =
      co_await ModifyUnderLock(op, change, part, hash, view, draft, changed).Outcome();
  UnlockView(op, part, view);
  if (!outcome.ok()) co_return outcome.error();
  if (*outcome == Attempt::kRetry) co_await HelpBusy(op, part, view);
  co_return *outcome;
}

Task<std::optional<Table::Attempt>> Table::ModifyUnderLock(Op& op, const Change& change, Partition& part,
                                                           const KeyHash& hash, View& view, Draft& draft,
                                                           Changed& changed) {
  if (!IsUpToDate(part, hash, view, view.bucket.overflow())) co_return std::nullopt;
  if (view.bucket.overflow()) co_await EndOverflows(op, part, hash, view);
  BlockBuffer buffer;
  const std::optional<Found> found = co_await FindKey(op, part, hash, view, change.key, buffer);
  if (found.has_value() && found->slot.candidate != Candidate::kLevel1)
    co_return std::nullopt;  // under another lock
  const std::optional<size_t> unused = FindUnused(view.bucket, shape());
  std::optional<std::string_view> value;
  if (found.has_value()) value = found->value;
  if (!found.has_value() && !unused.has_value() && !IsUpToDate(part, hash, view, /*with_overflow=*/true))
    co_return std::nullopt;
  const Result<Decision> decision = DecideAndDraft(change, part, hash, value, draft, changed);
  if (!decision.ok()) co_return decision.error();
  if (!decision->applied) co_return Attempt::kDone;
  if (!decision->removes && !draft.owned()) co_await draft.FetchRoom(op);
  // The directory may have gone on while a block was read: the unit is still locked, and as it was.
  if (found.has_value()) {
    const Attempt replaced = co_await Replace(op, part, hash, found->slot, decision->removes, draft, buffer,
                                              /*locked=*/true);  // trip 2
    if (replaced == Attempt::kDone && decision->removes) part.CountRecords(-1);
    co_return replaced;
  }
  Attempt inserted = Attempt::kRetry;
  if (unused.has_value()) {
    Slot slot{.candidate = Candidate::kLevel1, .unit = view.bucket.unit, .version = view.bucket.version};
    slot.at = part.BucketAt(view.bucket.unit) + *unused * sizeof(Entry);
    slot.entry = view.bucket.entry(*unused);
    const Entry desired = EntryFor(draft, TagOf(shape(), hash.number(Candidate::kLevel1), slot.version));
    const bool written = co_await CasSlot(op, slot, desired, &draft);  // trip 2
    if (written) inserted = Attempt::kDone;
  } else {
    if (!view.bucket.overflow()) co_await EndOverflows(op, part, hash, view);
    inserted = co_await PlaceUnderLock(op, part, hash, view, draft);
  }
  if (inserted == Attempt::kDone) part.CountRecords(1);
  co_return inserted;
}

Task<Table::Attempt> Table::Replace(Op& op, Partition& part, const KeyHash& hash, const Slot& slot,
                                    bool removes, Draft& draft, const BlockBuffer& buffer, bool locked) {
  bool in_place = false;
  if (slot.version != part.directory().version && !locked) {
    const Result<Done> split =
        co_await SplitFor(op, part, slot.candidate, hash.number(slot.candidate)).Outcome();
    // There may be no memory for the nodes of level 3. Deleting makes room, so it must not need any: under the lock, nobody
    // splits the unit, and what it has not yet passed on can be changed where it is.
    in_place = !split.ok() && split.error().code() == ErrorCode::kOutOfMemory && removes;
    if (!split.ok() && !in_place) co_return split.error();
    if (!in_place) co_return Attempt::kRetry;
  }
  Entry desired;
  if (!removes) {
    desired = EntryFor(draft, TagOf(shape(), hash.number(slot.candidate), slot.version));
  } else if (slot.candidate == Candidate::kLevel1 && !Mutant(kPublishedRefill)) {
    // INVARIANT shard/1: a slot that was used does not become unused.
    desired = Entry::Hole();
  }
  const uint64_t replaced_bytes = buffer.bytes().size();
  Locking locking = in_place ? Locking::kTake : Locking::kIfCareful;
  if (locked) locking = Locking::kHeld;
  const bool written = co_await WriteSlot(op, part, slot, desired, removes ? nullptr : &draft, locking);
  if (!written) co_return Attempt::kRetry;
  const FarAddr replaced(part.node(), slot.entry.offset());
  if (Mutant(kReuseAtOnce)) {
    pool_.allocator(part.node()).FreeUnpublished(replaced, replaced_bytes);
  } else {
    pool_.allocator(part.node()).Retire(replaced, replaced_bytes, pool_.published_epoch(part.node()));
  }
  co_return Attempt::kDone;
}

// The key is not in the view.
Task<Table::Attempt> Table::InsertAbsent(Op& op, Partition& part, const KeyHash& hash, const View& view,
                                         std::string_view key, Draft& draft) {
  const Bucket& bucket = view.bucket;
  if (bucket.version != part.directory().version) {
    const bool inserted = co_await SplitWith(op, part, hash, bucket, draft);
    co_return inserted ? Attempt::kDone : Attempt::kRetry;
  }
  std::optional<size_t> unused = FindUnused(bucket, shape());
  if (Mutant(kPublishedRefill)) {
    unused.reset();
    for (size_t slot = 0; slot < shape().slots && !unused.has_value(); ++slot) {
      if (bucket.entry(slot).empty()) unused = slot;
    }
  }
  if (!unused.has_value()) {
    const Attempt locked = co_await InsertLocked(op, part, hash, key, draft);
    co_return locked;
  }
  // INVARIANT shard/1: if the slot is still unused, nobody has inserted anything in this bucket since it was read, and so
  // nobody has had to go to another level.
  Slot slot{.candidate = Candidate::kLevel1, .unit = bucket.unit, .version = bucket.version};
  slot.at = part.BucketAt(bucket.unit) + *unused * sizeof(Entry);
  slot.entry = bucket.entry(*unused);
  const Entry desired = EntryFor(draft, TagOf(shape(), hash.number(Candidate::kLevel1), bucket.version));
  const bool written = co_await WriteSlot(op, part, slot, desired, &draft, Locking::kIfCareful);
  co_return written ? Attempt::kDone : Attempt::kRetry;
}

Task<bool> Table::WriteSlot(Op& op, Partition& part, const Slot& slot, Entry desired, Draft* draft,
                            Locking locking) {
  // Nothing is awaited between this look at the directory and the CAS; and the pin, which is older than what comes
  // next, keeps everybody from splitting the unit meanwhile (shard/5).
  const bool lock =
      locking == Locking::kTake || (locking == Locking::kIfCareful && part.directory().announced);
  if (!lock || Mutant(kNoCarefulMode)) return CasSlot(op, slot, desired, draft);
  return WriteSlotLocked(op, part, slot, desired, draft);
}

// INVARIANT shard/6.
Task<bool> Table::WriteSlotLocked(Op& op, Partition& part, const Slot& slot, Entry desired, Draft* draft) {
  Line line;
  const FarAddr line_at(slot.at.node, slot.at.offset / pool::kLine * pool::kLine);
  const FarAddr head_at = slot.candidate == Candidate::kLevel1 ? line_at : part.OverflowAt(slot.unit);
  std::vector<fabric::ReadIntoVerb> reads;
  reads.push_back(Read(head_at, std::as_writable_bytes(std::span(&line, 1))));
  co_await Lock(op, part, slot.unit, std::move(reads));
  if (line.version() != slot.version) {
    Unlock(op, part, slot.unit);
    co_return false;
  }
  const Result<bool> written = co_await CasSlot(op, slot, desired, draft).Outcome();
  Unlock(op, part, slot.unit);
  if (!written.ok()) co_return written.error();
  co_return *written;
}

Task<bool> Table::CasSlot(Op& op, const Slot& slot, Entry desired, Draft* draft) {
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
  co_return old == expect || Mutant(kFailedCasIsDone);
}

}  // namespace farside::index::shard

template class farside::index::ChangingIndex<farside::index::shard::Table>;
