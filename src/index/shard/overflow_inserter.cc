#include "index/shard/overflow_inserter.h"

#include <optional>

#include "index/shard/find_key.h"
#include "index/shard/mutants.h"

namespace farside::index::shard {

using fabric::Cas;
using fabric::FarAddr;
using fabric::MaskedCas;
using fabric::Read;
using fabric::Unreachable;
using fabric::WriteObject;

namespace {

// The first empty slot of a line of level 2, or of the nodes behind it.
std::optional<Slot> EmptySlotOf(const KeyAccess& at, const Overflow& overflow, Candidate candidate) {
  Slot slot{.candidate = candidate, .unit = overflow.unit, .version = overflow.version};
  const std::optional<size_t> empty = FindEmpty(overflow, at.shape());
  if (empty.has_value()) {
    slot.at = at.part.OverflowAt(overflow.unit) + *empty * sizeof(Entry);
    slot.entry = overflow.line.entries[*empty];
    return slot;
  }
  for (const Node& node : overflow.nodes) {
    for (size_t i = 0; i < kNodeEntries; ++i) {
      if (!node.line.entries[i].empty()) continue;
      slot.at = node.at + i * sizeof(Entry);
      slot.entry = node.line.entries[i];
      return slot;
    }
  }
  return std::nullopt;
}

}  // namespace

Task<Attempt> OverflowInserter::Insert(const KeyAccess& at, Draft& draft) {
  View view;
  co_await views_.LockView(at, view);
  const Result<Attempt> outcome = co_await CheckAndInsert(at, view, draft).Outcome();
  views_.UnlockView(at, view);
  if (!outcome.ok()) co_return outcome.error();
  if (*outcome == Attempt::kRetry) co_await BringOverflowsUpToDate(at, view);
  co_return *outcome;
}

// One lock at a time: a client that holds a lock waits for no other.
Task<Done> OverflowInserter::BringOverflowsUpToDate(const KeyAccess& at, const View& view) {
  for (const Candidate candidate : kChoices) {
    if (view.choice_new(candidate).version() != 0) co_await at.part.Refresh(at.op);
    if (view.choice(candidate).version != at.directory().version)
      co_await splitter_.SplitFor(at, candidate, at.number(candidate));
  }
  co_await HelpBusy(at, view);
  co_return Done{};
}

Task<Done> OverflowInserter::HelpBusy(const KeyAccess& at, const View& view) {
  if (view.busy.has_value() && !Mutant(kSecondLockNotHelped))
    co_await locks_.AwaitSplit(at, *view.busy, /*is_new=*/false);
  co_return Done{};
}

Task<Attempt> OverflowInserter::CheckAndInsert(const KeyAccess& at, View& view, Draft& draft) {
  if (!ViewReader::IsUpToDate(at, view, /*with_overflow=*/true)) co_return Attempt::kRetry;
  co_await ViewReader::ReadNodesOf(at, view);
  BlockBuffer buffer;
  const std::optional<Found> found = co_await FindKey(at, view, buffer);
  if (found.has_value() || FindUnused(view.bucket, at.shape()).has_value()) co_return Attempt::kRetry;
  const Attempt outcome = co_await InsertUnderLock(at, view, draft);
  co_return outcome;
}

Task<Attempt> OverflowInserter::InsertUnderLock(const KeyAccess& at, View& view, Draft& draft) {
  const std::optional<size_t> hole = FindHole(view.bucket, at.shape());
  if (hole.has_value()) {
    const Slot slot = SlotOf(at.part, view.bucket, *hole);
    const Entry entry = EntryFor(draft, at.tag(Candidate::kLevel1, view.bucket.version));
    const Written written = co_await SlotWriter::CasSlot(at.op, slot, entry, &draft);
    co_return written.done ? Attempt::kDone : Attempt::kRetry;
  }
  // The emptier of the two lines, as iceberg hashing has it.
  const bool second =
      view.has_second && CountEmpty(view.second, at.shape()) > CountEmpty(view.first, at.shape());
  const Candidate candidate = second ? Candidate::kSecondChoice : Candidate::kFirstChoice;
  // INVARIANT shard/4: the bit first.
  const bool announces = !view.bucket.overflow();
  if (announces && !Mutant(kOverflowSetLate)) co_await SetOverflow(at, view.bucket);
  const Attempt outcome = co_await InsertIntoChoice(at, view, candidate, draft);
  if (announces && Mutant(kOverflowSetLate) && outcome == Attempt::kDone)
    co_await SetOverflow(at, view.bucket);
  co_return outcome;
}

Task<Done> OverflowInserter::SetOverflow(const KeyAccess& at, const Bucket& bucket) {
  const FarAddr bit_at = at.part.BucketAt(bucket.unit) + kOverflowSlot * sizeof(Entry);
  const uint64_t hint = bucket.entry(kOverflowSlot).word();
  co_await at.op.InOrder(
      MaskedCas(bit_at, hint, hint & Entry::Flag::kMask, 0, Entry::Flag::kMask, Entry::Flag::kMask));
  co_return Done{};
}

Task<Attempt> OverflowInserter::InsertIntoChoice(const KeyAccess& at, View& view, Candidate candidate,
                                                 Draft& draft) {
  const Overflow& overflow = view.choice(candidate);
  // Nothing is awaited between this look at the directory and the CAS, if there is nothing to lock. The
  // resize may have gone on since the line was read: then another client may be splitting it.
  const bool may_be_split =
      at.directory().announced || (overflow.version != at.directory().version && !Mutant(kLineOfOldVersion));
  if (!may_be_split || at.part.LockAt(overflow.unit) == at.part.LockAt(view.bucket.unit)) {
    const Attempt outcome = co_await Fill(at, overflow, candidate, draft);
    co_return outcome;
  }
  // INVARIANT shard/6, without waiting: two clients that wait for each other's locks would wait for ever.
  if (Mutant(kSecondLockAwaited)) co_await locks_.Lock(at, overflow.unit, {});
  bool taken = Mutant(kSecondLockAwaited);
  if (!taken) taken = co_await locks_.TryLock(at, overflow.unit);
  if (!taken) {
    view.busy = overflow.unit;
    co_return Attempt::kRetry;
  }
  Line line;
  co_await at.op.InOrder(Read(at.part.OverflowAt(overflow.unit), BytesOf(line)));
  Result<Attempt> outcome = Attempt::kRetry;
  if (line.version() == overflow.version) outcome = co_await Fill(at, overflow, candidate, draft).Outcome();
  locks_.Unlock(at, overflow.unit);
  co_return outcome;
}

Task<Attempt> OverflowInserter::Fill(const KeyAccess& at, const Overflow& overflow, Candidate candidate,
                                     Draft& draft) {
  const Entry entry = EntryFor(draft, at.tag(candidate, overflow.version));
  const std::optional<Slot> slot = EmptySlotOf(at, overflow, candidate);
  if (!slot.has_value()) {
    const Attempt appended = co_await AppendNode(at, overflow, entry, draft);
    co_return appended;
  }
  const Written written = co_await SlotWriter::CasSlot(at.op, *slot, entry, &draft);
  co_return written.done ? Attempt::kDone : Attempt::kRetry;
}

// A new node at the end of the chain. If an entry stands where the link of the line belongs, it moves to the
// node: one CAS takes it from here to there.
Task<Attempt> OverflowInserter::AppendNode(const KeyAccess& at, const Overflow& overflow, Entry entry,
                                           Draft& draft) {
  const bool first = overflow.nodes.empty();
  const Line& last = first ? overflow.line : overflow.nodes.back().line;
  const FarAddr last_at = first ? at.part.OverflowAt(overflow.unit) : overflow.nodes.back().at;
  const FarAddr link_at = last_at + kLinkSlot * sizeof(Entry);
  const Entry replaced = last.entries[kLinkSlot];

  pool::Allocator& allocator = pool_.allocator(at.part.node());
  const FarAddr node_at = co_await allocator.Allocate(at.op, sizeof(Line));
  Line node;
  size_t filled = 0;
  if (replaced.has_block() && !Mutant(kLinkDropsEntry)) node.entries[filled++] = replaced;
  node.entries[filled] = entry;
  draft.Publish();
  // WRITE, WRITE, CAS keep their order.
  auto [block, written, old] =
      co_await at.op.InOrder(draft.Write(), Unreachable(WriteObject(node_at, node)),
                             Cas(link_at, replaced.word(), Entry::Link(node_at.offset).word()));
  if (old == replaced.word()) co_return Attempt::kDone;
  draft.Unpublish();
  allocator.FreeUnpublished(node_at, sizeof(Line));
  co_return Attempt::kRetry;
}

}  // namespace farside::index::shard
