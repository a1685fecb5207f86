// Inserting a key where its bucket of level 1 has no unused slot: into a hole of the bucket, into level 2, or into level 3.
// Rare, so it may cost a lock (shard/1).
#include "index/shard/mutants.h"
#include "index/shard/shard.h"

namespace farside::index::shard {

using fabric::Cas;
using fabric::FarAddr;
using fabric::MaskedCas;
using fabric::Op;
using fabric::Read;
using fabric::ReadIntoVerb;
using fabric::Unreachable;
using fabric::WriteObject;

// Takes the lock of the key's unit and reads all of its places behind it, in one trip.
Task<Done> Table::LockView(Op& op, Partition& part, const KeyHash& hash, View& view) {
  const uint32_t version = part.directory().version;
  view.bucket.unit = UnitOf(shape(), hash.number(Candidate::kLevel1), version);
  view.first.unit = UnitOf(shape(), hash.number(Candidate::kFirstChoice), version);
  view.second.unit = UnitOf(shape(), hash.number(Candidate::kSecondChoice), version);
  const auto bytes = [](std::span<Line> lines) { return std::as_writable_bytes(lines); };
  std::vector<ReadIntoVerb> reads;
  reads.push_back(
      Read(part.BucketAt(view.bucket.unit), bytes(std::span(view.bucket.lines).first(shape().lines()))));
  reads.push_back(Read(part.OverflowAt(view.first.unit), bytes(std::span(&view.first.line, 1))));
  reads.push_back(Read(part.OverflowAt(view.second.unit), bytes(std::span(&view.second.line, 1))));
  // INVARIANT shard/7: while a resize is announced, a new unit that has a version decides. The lock keeps the bucket from
  // being split, but not the lines of level 2.
  const std::optional<uint64_t> first = NewUnitOf(part, hash.number(Candidate::kFirstChoice));
  const std::optional<uint64_t> second = NewUnitOf(part, hash.number(Candidate::kSecondChoice));
  view.first_new = view.second_new = Line();
  if (first.has_value()) reads.push_back(Read(part.OverflowAt(*first), bytes(std::span(&view.first_new, 1))));
  if (second.has_value())
    reads.push_back(Read(part.OverflowAt(*second), bytes(std::span(&view.second_new, 1))));
  if (Mutant(kOverflowWithoutLock)) {
    for (const ReadIntoVerb& read : reads) co_await op.InOrder(read);
  } else {
    co_await Lock(op, part, view.bucket.unit, std::move(reads));
  }
  view.bucket.version = view.bucket.lines[0].version();
  view.first.version = view.first.line.version();
  view.second.version = view.second.line.version();
  co_return Done{};
}

void Table::UnlockView(Op& op, Partition& part, const View& view) {
  if (!Mutant(kOverflowWithoutLock)) Unlock(op, part, view.bucket.unit);
}

// Whether the view, read under the lock, is all that there is to know about a key. Another operation of this client may have
// learned of a resize since the lock was asked for: then these are not the units of the key any more.
bool Table::IsUpToDate(const Partition& part, const KeyHash& hash, const View& view,
                       bool with_overflow) const {
  const uint32_t version = part.directory().version;
  const auto is_unit = [&](Candidate candidate, uint64_t unit) {
    return UnitOf(shape(), hash.number(candidate), version) == unit || Mutant(kUnitOfOldVersion);
  };
  if (VersionOf(std::span(view.bucket.lines).first(shape().lines())) != version) return false;
  if (!is_unit(Candidate::kLevel1, view.bucket.unit)) return false;
  if (!with_overflow) return true;
  return view.first.version == version && view.second.version == version && view.first_new.version() == 0 &&
         view.second_new.version() == 0 && is_unit(Candidate::kFirstChoice, view.first.unit) &&
         is_unit(Candidate::kSecondChoice, view.second.unit);
}

// Everything is read again, under the lock.
Task<Table::Attempt> Table::InsertLocked(Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                                         Draft& draft) {
  View view;
  co_await LockView(op, part, hash, view);
  const Result<Attempt> outcome = co_await InsertUnderLock(op, part, hash, view, key, draft).Outcome();
  UnlockView(op, part, view);
  if (!outcome.ok()) co_return outcome.error();
  if (*outcome == Attempt::kRetry) co_await BringOverflowsUpToDate(op, part, hash, view);
  co_return *outcome;
}

// One lock at a time: nobody who holds one waits for another.
Task<Done> Table::BringOverflowsUpToDate(Op& op, Partition& part, const KeyHash& hash, const View& view) {
  for (const Candidate candidate : {Candidate::kFirstChoice, Candidate::kSecondChoice}) {
    const Overflow& overflow = candidate == Candidate::kFirstChoice ? view.first : view.second;
    const Line& moved = candidate == Candidate::kFirstChoice ? view.first_new : view.second_new;
    if (moved.version() != 0) co_await part.Refresh(op);
    if (overflow.version != part.directory().version)
      co_await SplitFor(op, part, candidate, hash.number(candidate));
  }
  co_await HelpBusy(op, part, view);
  co_return Done{};
}

Task<Done> Table::HelpBusy(Op& op, Partition& part, const View& view) {
  if (view.busy.has_value() && !Mutant(kSecondLockNotHelped))
    co_await Help(op, part, *view.busy, /*is_new=*/false);
  co_return Done{};
}

Task<Table::Attempt> Table::InsertUnderLock(Op& op, Partition& part, const KeyHash& hash, View& view,
                                            std::string_view key, Draft& draft) {
  if (!IsUpToDate(part, hash, view, /*with_overflow=*/true)) co_return Attempt::kRetry;
  co_await EndOverflows(op, part, hash, view);
  BlockBuffer buffer;
  const std::optional<Found> found = co_await FindKey(op, part, hash, view, key, buffer);
  if (found.has_value() || FindUnused(view.bucket, shape()).has_value()) co_return Attempt::kRetry;
  const Attempt outcome = co_await PlaceUnderLock(op, part, hash, view, draft);
  co_return outcome;
}

// The key is nowhere, the bucket has no unused slot, and the lock is held.
Task<Table::Attempt> Table::PlaceUnderLock(Op& op, Partition& part, const KeyHash& hash, View& view,
                                           Draft& draft) {
  const std::optional<size_t> hole = FindHole(view.bucket, shape());
  if (hole.has_value()) {
    Slot slot{.candidate = Candidate::kLevel1, .unit = view.bucket.unit, .version = view.bucket.version};
    slot.at = part.BucketAt(view.bucket.unit) + *hole * sizeof(Entry);
    slot.entry = view.bucket.entry(*hole);
    const Entry entry = EntryFor(draft, TagOf(shape(), hash.number(Candidate::kLevel1), view.bucket.version));
    const bool written = co_await CasSlot(op, slot, entry, &draft);
    co_return written ? Attempt::kDone : Attempt::kRetry;
  }

  // The emptier of the two lines, as iceberg hashing has it.
  const bool second = view.has_second && CountEmpty(view.second, shape()) > CountEmpty(view.first, shape());
  const Candidate candidate = second ? Candidate::kSecondChoice : Candidate::kFirstChoice;
  const Overflow& overflow = second ? view.second : view.first;
  // INVARIANT shard/4: the bit first.
  const bool announces = !view.bucket.overflow();
  if (announces && !Mutant(kOverflowSetLate)) co_await SetOverflow(op, part, view.bucket);
  const Attempt outcome =
      co_await InsertIntoOverflow(op, part, hash, overflow, candidate, view.bucket.unit, draft, view.busy);
  if (announces && Mutant(kOverflowSetLate) && outcome == Attempt::kDone)
    co_await SetOverflow(op, part, view.bucket);
  co_return outcome;
}

Task<Done> Table::SetOverflow(Op& op, Partition& part, const Bucket& bucket) {
  const FarAddr at = part.BucketAt(bucket.unit) + kOverflowSlot * sizeof(Entry);
  const uint64_t hint = bucket.entry(kOverflowSlot).word();
  co_await op.InOrder(
      MaskedCas(at, hint, hint & Entry::Flag::kMask, 0, Entry::Flag::kMask, Entry::Flag::kMask));
  co_return Done{};
}

// `locked` is the unit whose lock is held.
Task<Table::Attempt> Table::InsertIntoOverflow(Op& op, Partition& part, const KeyHash& hash,
                                               const Overflow& overflow, Candidate candidate, uint64_t locked,
                                               Draft& draft, std::optional<uint64_t>& busy) {
  // Nothing is awaited between this look at the directory and the CAS, if there is nothing to lock. The resize may have gone
  // on since the line was read: then somebody may be splitting it.
  const bool may_be_split = part.directory().announced ||
                            (overflow.version != part.directory().version && !Mutant(kLineOfOldVersion));
  if (!may_be_split || part.LockAt(overflow.unit) == part.LockAt(locked)) {
    const Attempt outcome = co_await FillOverflow(op, part, hash, overflow, candidate, draft);
    co_return outcome;
  }
  // INVARIANT shard/6, without waiting: two who wait for each other's locks would wait for ever.
  if (Mutant(kSecondLockAwaited)) co_await Lock(op, part, overflow.unit, {});
  bool taken = Mutant(kSecondLockAwaited);
  if (!taken) taken = co_await TryLock(op, part, overflow.unit);
  if (!taken) {
    busy = overflow.unit;
    co_return Attempt::kRetry;
  }
  Line line;
  co_await op.InOrder(Read(part.OverflowAt(overflow.unit), std::as_writable_bytes(std::span(&line, 1))));
  Result<Attempt> outcome = Attempt::kRetry;
  if (line.version() == overflow.version)
    outcome = co_await FillOverflow(op, part, hash, overflow, candidate, draft).Outcome();
  Unlock(op, part, overflow.unit);
  if (!outcome.ok()) co_return outcome.error();
  co_return *outcome;
}

Task<Table::Attempt> Table::FillOverflow(Op& op, Partition& part, const KeyHash& hash,
                                         const Overflow& overflow, Candidate candidate, Draft& draft) {
  const Entry entry = EntryFor(draft, TagOf(shape(), hash.number(candidate), overflow.version));
  Slot slot{.candidate = candidate, .unit = overflow.unit, .version = overflow.version};
  std::optional<size_t> empty = FindEmpty(overflow, shape());
  if (empty.has_value()) {
    slot.at = part.OverflowAt(overflow.unit) + *empty * sizeof(Entry);
    slot.entry = overflow.line.entries[*empty];
  }
  for (const Node& node : overflow.nodes) {
    for (size_t i = 0; i < kNodeEntries && !empty.has_value(); ++i) {
      if (!node.line.entries[i].empty()) continue;
      empty = i;
      slot.at = node.at + i * sizeof(Entry);
      slot.entry = node.line.entries[i];
    }
  }
  if (!empty.has_value()) {
    const Attempt appended = co_await AppendNode(op, part, overflow, entry, draft);
    co_return appended;
  }
  const bool written = co_await CasSlot(op, slot, entry, &draft);
  co_return written ? Attempt::kDone : Attempt::kRetry;
}

// A new node at the end of the chain. If an entry stands where the link of the line belongs, it moves to the node: one
// CAS takes it from here to there.
Task<Table::Attempt> Table::AppendNode(Op& op, Partition& part, const Overflow& overflow, Entry entry,
                                       Draft& draft) {
  const bool first = overflow.nodes.empty();
  const Line& last = first ? overflow.line : overflow.nodes.back().line;
  const FarAddr last_at = first ? part.OverflowAt(overflow.unit) : overflow.nodes.back().at;
  const FarAddr link_at = last_at + kLinkSlot * sizeof(Entry);
  const Entry replaced = last.entries[kLinkSlot];

  pool::Allocator& allocator = pool_.allocator(part.node());
  const FarAddr node_at = co_await allocator.Allocate(op, sizeof(Line));
  Line node;
  size_t filled = 0;
  if (replaced.has_block() && !Mutant(kLinkDropsEntry)) node.entries[filled++] = replaced;
  node.entries[filled] = entry;
  draft.Publish();
  // WRITE, WRITE, CAS keep their order.
  auto [block, written, old] =
      co_await op.InOrder(draft.Write(), Unreachable(WriteObject(node_at, node)),
                          Cas(link_at, replaced.word(), Entry::Link(node_at.offset).word()));
  if (old == replaced.word()) co_return Attempt::kDone;
  draft.Unpublish();
  allocator.FreeUnpublished(node_at, sizeof(Line));
  co_return Attempt::kRetry;
}

}  // namespace farside::index::shard
