#include "index/chime/changer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "index/chime/entry_finder.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Write;

namespace {

// Whether the change looks where the key was found last. An insert expects no key, and a delete has to see
// whether its entry has neighbours.
bool Speculates(ChangeKind kind) { return kind != ChangeKind::kInsert && kind != ChangeKind::kDelete; }

}  // namespace

Task<Attempt> Changer::TryChange(ChangeContext& change) {
  Op& op = change.op;
  if (change.attempt == 0) {
    if (!root_.IsFresh(*change.pin)) co_await root_.Refresh(op, *change.pin);
    LookUpHotspot(change);
  }
  if (change.position.node.null() && !locator_.FindCached(change.target.key, 0, change.position))
    change.position = co_await locator_.Find(op, change.target.key, 0);
  const NodePtr at = change.position.node;
  if (!table_.Has(at)) co_return Damaged(at, "is on no node of the table");
  // Before the leaf is locked: a client that waits for memory must not make others wait.
  if (!ReserveBlock(change)) co_await change.draft.FetchRoom(op);
  LeafUnderLock leaf(table_, change, !stale_counts_.Expects(), inserts_.Expects());
  Result<Step> step = Step::kAgain;
  {
    LeafTurn turn(turns_, locks_, op, leaf);
    if (!turn.is_first()) {
      co_await turn;
      if (!turn.has_lock() && HasMovedOn(change)) co_return Attempt::kRetry;
    }
    const bool has_reads = !turn.has_lock() || turn.has_reads();
    NodeLock held = turn.held();
    std::span<const fabric::ReadIntoVerb> reads = leaf.reads();
    if (change.change.kind == ChangeKind::kTouch && Mutant(kTouchByWrite))
      co_await NodeLocks::ReadAll(op, std::exchange(reads, {}));
    if (!turn.has_lock()) held = co_await locks_.Lock(op, at, reads, leaf.hint());  // trip 1
    turn.Begin(held);
    if (const std::optional<bool> stale = leaf.IsStale(held); stale.has_value()) stale_counts_.Note(*stale);
    const std::span<const fabric::ReadIntoVerb> missing = leaf.MissingReads(held, has_reads);
    if (!missing.empty()) co_await NodeLocks::ReadAll(op, missing);
    leaf.TakeReads();
    step = co_await ChangeLocked(change, leaf, turn).Outcome();  // trip 2
    if (!step.ok()) {
      // Without effect if the client is broken; but another memory node may be out of reach.
      turn.Fail();
      NoteFailed(change, step.error());
      co_return step.error();
    }
    if (*step == Step::kUnchanged && Mutant(kRefusedKeepsLock)) turn.Forget();
    turn.End();
    // Before the changes that wait for their turn go on: they know then which leaf has their key.
    if (*step == Step::kAgain) co_await change.deferred.InsertPivot(op);
  }
  // The key is deleted, whatever becomes of its leaf.
  if (*step == Step::kEmptied)
    co_await merger_.MergeEmptied(op, change.target.key, at, *change.pin).Outcome();
  if (*step == Step::kUnchanged || *step == Step::kCommitted || *step == Step::kEmptied)
    co_return Attempt::kDone;
  if (*step == Step::kDead) {
    change.position = co_await locator_.GoToHeir(op, change.position, leaf.header());
  } else if (*step == Step::kBeyond) {
    change.position = co_await locator_.GoRight(op, change.target.key, change.position, leaf.header());
  } else {
    if (*step == Step::kElsewhere) hotspots_.Forget(change.target.spot_id);
    change.spot.reset();
    change.position = Position();
    co_await change.deferred.FetchMemory(op);
  }
  co_return Attempt::kRetry;
}

bool Changer::HasMovedOn(ChangeContext& change) const {
  Position now;
  if (change.spot.has_value() || !locator_.FindCached(change.target.key, 0, now)) return false;
  if (now.node == change.position.node) return false;
  change.position = now;
  return true;
}

void Changer::LookUpHotspot(ChangeContext& change) {
  change.spot.reset();
  change.position = Position();
  if (!Speculates(change.change.kind)) return;
  change.spot = hotspots_.Find(change.target.spot_id);
  if (change.spot.has_value()) change.position.node = change.spot->leaf;
}

bool Changer::ReserveBlock(ChangeContext& change) const {
  const Change& asked = change.change;
  if (table_.shape().inline_keys || asked.kind == ChangeKind::kDelete) return true;
  const uint64_t value_bytes = asked.kind == ChangeKind::kIncrement ? 8 : asked.value.size();
  const uint64_t bytes = pool::BlockBytes(asked.key.size(), value_bytes);
  return change.draft.Reserve(table_.AllocatorOf(change.position.node.node()), bytes);
}

void Changer::NoteFailed(ChangeContext& change, const Error& error) const {
  Draft& draft = change.draft;
  if (draft.owned() || !draft.may_be_published() || Mutant(kFailedInsertKeeps)) return;
  if (error.code() == ErrorCode::kOutcomeUnknown) {
    table_.AllocatorOf(change.position.node.node()).NoteInDoubt();
  } else {
    draft.Unpublish();
  }
}

std::optional<Error> Changer::DamageOf(const ChangeContext& change, NodePtr at, const Header& header) const {
  if (NodeInfo(header.info) != NodeInfo::Of(0)) return Damaged(at, "is not a leaf");
  if (Contradicts(table_.shape(), header, change.target)) return Damaged(at, kOtherHalf);
  return std::nullopt;
}

Task<Step> Changer::ChangeLocked(ChangeContext& change, const LeafUnderLock& leaf, LeafTurn& turn) {
  const Neighbourhood& hood = leaf.hood();
  const Shape& shape = table_.shape();
  if (leaf.has_header()) {
    const std::optional<Error> damage = DamageOf(change, leaf.at(), leaf.header());
    if (damage.has_value()) co_return *damage;
    if (leaf.header().heir != 0 && !Mutant(kDeadIsChanged)) co_return Step::kDead;
    std::optional<bool> below = bounds_.IsBelowKnownFence(change.target.key, leaf.header());
    if (!below.has_value())
      below =
          co_await bounds_.IsBelowFence(change.op, change.target.key, leaf.header(), change.target.clears);
    if (!*below) co_return Step::kBeyond;
    locator_.RememberCount(change.position, leaf.header(), change.target.clears);
  }

  const size_t end = Mutant(kStopsAtVacancy) ? FirstFree(hood) : hood.size();
  EntryFinder finder(table_, change.target, hood, end);
  while (finder.needs_block()) {
    co_await change.op.InOrder(finder.BlockRead());
    const Status taken = finder.TakeBlock();
    if (!taken.ok()) co_return taken.error();
  }
  if (hood.is_guess() && !finder.found()) co_return Step::kElsewhere;

  std::optional<std::string_view> value;
  FarAddr block;
  if (finder.found()) value = finder.value();
  if (finder.found() && !shape.inline_keys) block = table_.At(BlockRef(finder.entry().value));
  const Result<Decision> decision = Decide(change.change, value, block);
  if (!decision.ok()) co_return decision.error();
  change.result = {.was_present = finder.found(), .applied = decision->applied, .counter = decision->counter};
  inserts_.Note(!finder.found());
  if (!decision->applied) {
    const uint64_t bytes = pool::BlockBytes(change.change.key.size(), change.change.value.size());
    if (change.change.kind == ChangeKind::kTouch && Mutant(kTouchRetiresLosing))
      table_.pool.allocator(change.change.victim.node)
          .Retire(change.change.victim, bytes, change.pin->epoch(change.change.victim.node));
    co_return Step::kUnchanged;
  }
  const Entry entry = EntryFor(change, *decision);
  const size_t free = finder.found() ? 0 : FirstFree(hood);
  if (free == hood.size()) {
    const Step made = co_await MakeRoom(change, leaf, turn, entry);
    co_return made;
  }
  const size_t slot = finder.found() ? finder.slot() : hood.SlotAt(free);
  // If the neighbourhood is empty without this key, the leaf may be: the commit looks, at no trip of its own.
  const bool alone = decision->removes && IsAlone(hood, slot);
  std::optional<Leaf> look;
  if (alone && shape.neighbourhood < shape.span) look.emplace();
  const Step committed = co_await Commit(change, turn, slot, entry, look.has_value() ? &*look : nullptr);
  const bool emptied = alone && (!look.has_value() || look->Count(shape) == 0);
  // An inserted entry stands in a leaf that is growing, and will often be moved: a search remembers it later.
  if (decision->removes) hotspots_.Forget(change.target.spot_id);
  if (!decision->removes && finder.found())
    hotspots_.Remember(change.target.spot_id, {.leaf = leaf.at(), .slot = slot}, change.target.clears);
  if (finder.found() && !shape.inline_keys)
    RetireBlock(change, BlockRef(finder.entry().value), finder.block_bytes());
  co_return emptied ? Step::kEmptied : committed;
}

Entry Changer::EntryFor(ChangeContext& change, const Decision& decision) const {
  if (decision.removes) return Entry();
  const std::string_view stored = decision.Value(change.change);
  const Target& target = change.target;
  Entry entry{.used = true, .key = target.key.prefix, .value = 0};
  if (table_.shape().inline_keys) {
    entry.value = LoadU64(AsBytes(stored).data());
    return entry;
  }
  Draft& draft = change.draft;
  draft.Fill(change.change.key, stored, target.hash);
  const size_t node = change.position.node.node();
  entry.value = BlockRef::To(node, draft.at().offset, draft.bytes(), TagOf(target.hash)).word();
  return entry;
}

bool Changer::IsAlone(const Neighbourhood& hood, size_t slot) {
  for (size_t i = 0; i < hood.size(); ++i) {
    if (hood.Get(i).used && hood.SlotAt(i) != slot) return false;
  }
  return !hood.is_guess();
}

// INVARIANT chime/1: WRITE, WRITE and the release keep their order: the block is complete before the entry
// names it, and the entry is written before another client can take the lock. An unused entry (the key is
// deleted) needs no block. A leaf that may be empty is merged next, so its lock is not handed over.
Task<Step> Changer::Commit(ChangeContext& change, LeafTurn& turn, size_t slot, Entry entry, Leaf* look) {
  const NodePtr at = change.position.node;
  std::array<std::byte, kEntryBytes> bytes;
  StoreEntry(table_.shape(), bytes.data(), entry);
  if (Mutant(kHandedOverWhenPosted) && !change.draft.owned() && turn.HandsOver()) {
    change.op.Detach(Order::kInOrder, Write(table_.At(at) + SlotOffset(slot), bytes));
    turn.End();
    co_return Step::kCommitted;
  }
  fabric::SmallBatch<5> trip(change.op, Order::kInOrder);
  const bool with_block = entry.used && change.draft.owned();
  if (with_block) trip.Add(change.draft.Write());
  trip.Add(Write(table_.At(at) + SlotOffset(slot), bytes));
  if (entry.used) {
    turn.AddEnd(trip);
  } else {
    turn.AddRelease(trip);
  }
  if (look != nullptr) trip.Add(Read(table_.At(at) + pool::kLine, look->lines(table_.shape())));
  if (with_block) change.draft.Publish();
  co_await trip;
  if (turn.WasLost(trip)) co_return LockLost();
  co_return Step::kCommitted;
}

void Changer::RetireBlock(const ChangeContext& change, BlockRef block, uint64_t bytes) const {
  const FarAddr at = table_.At(block);
  pool::Allocator& allocator = table_.pool.allocator(at.node);
  const bool touches = change.change.kind == ChangeKind::kTouch;
  if (Mutant(kReuseAtOnce) || (touches && Mutant(kTouchFreesAtOnce))) {
    allocator.FreeUnpublished(at, bytes);
  } else {
    allocator.Retire(at, bytes, change.pin->epoch(at.node));
  }
}

Task<Step> Changer::MakeRoom(ChangeContext& change, const LeafUnderLock& leaf, LeafTurn& turn, Entry entry) {
  const Shape& shape = table_.shape();
  Leaf image;
  image.header = leaf.header();
  if (!leaf.has_header()) {
    co_await change.op.InOrder(Read(table_.At(leaf.at()), image.header_bytes()),
                               Read(table_.At(leaf.at()) + pool::kLine, image.lines(shape)));
    const std::optional<Error> damage = DamageOf(change, leaf.at(), image.header);
    if (damage.has_value()) co_return *damage;
  } else if (leaf.lines().empty()) {
    co_await change.op.InOrder(Read(table_.At(leaf.at()) + pool::kLine, image.lines(shape)));
  } else {
    std::ranges::copy(leaf.lines(), image.lines(shape).begin());
  }
  std::optional<std::vector<size_t>> path = FindRoom(shape, image, change.target.home);
  if (path.has_value() && path->size() <= EntryMover::kMostMoves) {
    const Step moved = co_await mover_.MoveAndCommit(change, turn, image, std::move(*path), entry);
    co_return moved;
  }
  const Step split = co_await splitter_.Split(change, turn, image);
  co_return split;
}

}  // namespace farside::index::chime
