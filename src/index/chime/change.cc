// Changing a key: one trip to lock its leaf and read where it may stand, one to write the entry and unlock.
#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "index/chime/chime.h"
#include "index/chime/deferred_work.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "index/kit/abandon_guard.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Write;

namespace {

constexpr int kMostAttempts = 1000;
// Of one trip: two headers, an entry for each step, a block and the unlock stay below the verbs that a trip may have.
constexpr size_t kMostMoves = 48;

// Whether to look for the key where it was found last, and nowhere else at first: a key that is inserted is nowhere, and whoever
// deletes one sees whether it has neighbours.
bool Speculates(ChangeKind kind) { return kind != ChangeKind::kInsert && kind != ChangeKind::kDelete; }
bool StoresItsValue(ChangeKind kind) { return kind != ChangeKind::kDelete && kind != ChangeKind::kIncrement; }

Error LockLost() {
  return Error(ErrorCode::kOutcomeUnknown,
               "the lock was taken from this client, which was taken for dead; reconnect");
}

}  // namespace

// Of the changes of one key that this client has in flight one goes at a time, and carries those behind it that say the same
// with another value (index/kit/key_queue.h). Who waits for its turn holds no pin; so it goes on only if no table was made
// or dropped meanwhile, as far as this client knows (catalog/5).
Task<Changed> Table::Modify(Op& op, Change change) {
  const std::optional<Error> refused = Refused(change.key);
  if (refused.has_value()) co_return *refused;
  if (shape().inline_keys && StoresItsValue(change.kind) && change.value.size() != 8) {
    co_return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the value has {} bytes; the table was made with keys=inline, so values have 8",
                    change.value.size()));
  }
  const Status fits = pool::CheckBlockSizes(change.key, change.value);
  if (!fits.ok()) co_return fits.error();
  const Target target(shape(), hotspots_, change.key);
  const uint64_t catalogs = pool_.known_catalog_changes();
  KeyQueue::Ticket ticket(key_queue_, op.client(), target.hash, change);
  const std::string_view own_value = change.value;
  std::string last_value;  // of those that it has_coalesced
  if (!ticket.is_first()) {
    {
      const pool::PoolClient::UnpinnedWait wait(pool_);
      co_await ticket;
    }
    if (ticket.outcome().has_value()) co_return *ticket.outcome();
    if (pool_.known_catalog_changes() != catalogs) co_return RetryPolicy::CatalogChanged();
    if (ticket.Coalesce(last_value)) change.value = last_value;
  }
  const AbandonGuard given_up(ticket);
  Result<Changed> changed = co_await ModifyQueued(op, change, target, catalogs).Outcome();
  if (!changed.ok() && changed.error().code() == ErrorCode::kOutOfMemory && ticket.has_coalesced()) {
    // There may be room for its own value.
    ticket.Release();
    change.value = own_value;
    if (pool_.known_catalog_changes() != catalogs) co_return RetryPolicy::CatalogChanged();
    changed = co_await ModifyQueued(op, change, target, catalogs).Outcome();
  }
  ticket.Complete(changed);
  co_return changed;
}

Task<Changed> Table::ModifyQueued(Op& op, const Change& change, const Target& target, uint64_t catalogs) {
  Result<Changed> changed = co_await ModifyPinned(op, change, target).Outcome();
  if (!changed.ok()) {
    const auto again = [&] { return ModifyPinned(op, change, target); };
    changed = co_await WithRetries<Changed>(op, RetryPolicySince(catalogs), changed.error(), again).Outcome();
  }
  if (!changed.ok()) co_return changed.error();
  co_return *changed;
}

// If it fails with kContended, nothing has come of it.
Task<Changed> Table::ModifyPinned(Op& op, const Change& change, const Target& target) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (!IsFresh(pin)) co_await Refresh(op, pin);
  std::optional<Spot> spot;
  if (Speculates(change.kind)) spot = hotspots_.Find(target.spot_id);
  const std::optional<PathNode> known =
      spot.has_value() ? PathNode{.node = spot->leaf, .parent = {}} : Known(target.key, 0);
  PathNode at_node;
  if (known.has_value()) {
    at_node = *known;
  } else {
    at_node = co_await Find(op, target.key, 0);
  }
  // Allocated before the leaf is locked: who waits for memory must not keep others waiting.
  Draft draft;
  DeferredWork deferred(*this);
  Changed changed;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const NodePtr leaf = at_node.node;
    if (!IsOnNodes(leaf.word(), nodes_)) co_return Damaged(leaf, "is on no node of the table");
    if (!shape().inline_keys && change.kind != ChangeKind::kDelete) {
      const uint64_t value_bytes = StoresItsValue(change.kind) ? change.value.size() : 8;
      const uint64_t bytes = pool::BlockBytes(change.key.size(), value_bytes);
      if (!draft.Reserve(pool_.allocator(nodes_[leaf.node()]), bytes)) co_await draft.FetchRoom(op);
    }
    Header header;
    Result<Step> step = Step::kAgain;
    {
      // At once, those of one client would only wait for each other's lock, trip by trip.
      KeyQueue::Ticket ticket(leaf_queue_, op.client(), leaf.word(), change);
      if (!ticket.is_first()) co_await ticket;
      // Where the key was found last, it is enough to look there: under the lock it stands at one place only (chime/3).
      Neighbourhood hood = spot.has_value() ? Neighbourhood::Guess(shape(), spot->slot, target.half())
                                            : Neighbourhood(shape(), target.home, target.half());
      std::vector<std::byte> whole;                                      // for comparison
      co_await LockAndRead(op, change.kind, leaf, header, hood, whole);  // trip 1
      step = co_await ModifyLocked(op, change, target, leaf, header, hood, draft, deferred, pin, changed)
                 .Outcome();  // trip 2
    }
    if (!step.ok()) {
      // Without effect if the client is broken; but it may be another node that is out of reach.
      Unlock(op, leaf);
      co_return step.error();
    }
    if (*step == Step::kUnchanged && Mutant(kRefusedKeepsLock)) co_return changed;
    if (*step == Step::kUnchanged || *step == Step::kBeyond || *step == Step::kDead ||
        *step == Step::kElsewhere)
      Unlock(op, leaf);
    // The key is deleted, whatever becomes of its leaf.
    if (*step == Step::kEmptied) co_await Absorb(op, target.key, leaf, pin).Outcome();
    if (*step == Step::kUnchanged || *step == Step::kCommitted || *step == Step::kEmptied) co_return changed;
    op.CountRetry();
    if (*step == Step::kDead) {
      at_node = co_await GoToHeir(op, at_node, header);
      continue;
    }
    if (*step == Step::kBeyond) {
      at_node = co_await GoRight(op, target.key, at_node, header);
      continue;
    }
    if (*step == Step::kElsewhere) {
      hotspots_.Forget(target.spot_id);
      spot.reset();
    }
    co_await deferred.Run(op);
    const std::optional<PathNode> now = Known(target.key, 0);
    if (now.has_value()) {
      at_node = *now;
    } else {
      at_node = co_await Find(op, target.key, 0);
    }
  }
  co_return Contended("the leaf of the key is split again and again");
}

Task<Done> Table::LockAndRead(Op& op, ChangeKind kind, NodePtr leaf, Header& header, Neighbourhood& hood,
                              std::vector<std::byte>& whole) {
  if (hood.is_guess()) {
    const auto read = Read(At(leaf) + SlotOffset(hood.home()), hood.tail());
    co_await Lock(op, leaf, std::span(&read, 1));
    co_return Done{};
  }
  const bool may_insert =
      kind == ChangeKind::kPut || kind == ChangeKind::kInsert || kind == ChangeKind::kIncrement;
  if ((may_insert ? options_.insert_read : options_.leaf_read) == LeafRead::kWhole) {
    whole.resize(shape().leaf_bytes());
    const auto read = Read(At(leaf), whole);
    co_await Lock(op, leaf, std::span(&read, 1));
    header = HeaderOf(whole);
    hood.set_leaf_lines(std::span(whole).subspan(pool::kLine));
    hood.CopyFrom(hood.leaf_lines());
    co_return Done{};
  }
  // The whole neighbourhood, always: behind the first free slot there may be a copy of the key.
  const std::array reads = {Read(At(leaf), std::as_writable_bytes(std::span(&header, 1))),
                            Read(At(leaf) + SlotOffset(hood.home()), hood.tail()),
                            Read(At(leaf) + SlotOffset(0), hood.wrapped())};
  co_await Lock(op, leaf, std::span(reads).first(hood.wrapped().empty() ? 2 : 3));
  co_return Done{};
}

// The lock is held, and `header` and `hood` are as they are under it; of a guess, there is no header. If it returns an error, it
// is still held.
Task<Table::Step> Table::ModifyLocked(Op& op, const Change& change, const Target& target, NodePtr leaf,
                                      const Header& header, const Neighbourhood& hood, Draft& draft,
                                      DeferredWork& deferred, const pool::PoolClient::Pin& pin,
                                      Changed& changed) {
  if (!hood.is_guess()) {
    if (NodeInfo(header.info) != NodeInfo::Of(0)) co_return Damaged(leaf, "is not a leaf");
    if (Contradicts(header, target)) co_return Damaged(leaf, kOtherHalf);
    if (header.heir != 0 && !Mutant(kDeadIsChanged)) co_return Step::kDead;
    const bool below = co_await IsBelowFence(op, target.key, header);
    if (!below) co_return Step::kBeyond;
  }

  std::optional<size_t> slot;
  std::optional<size_t> free;
  Entry found;
  BlockBuffer buffer;
  std::array<std::byte, 8> inline_value;
  std::optional<std::string_view> value;
  for (size_t i = 0; i < hood.size() && !value.has_value(); ++i) {
    const Entry entry = hood.Get(i);
    const bool is_free = !entry.used || (Mutant(kZeroKeyIsFree) && entry.key == 0);
    if (is_free && !free.has_value()) free = hood.SlotAt(i);
    if (is_free && Mutant(kStopsAtVacancy)) break;
    if (!MayBe(target, hood, entry)) continue;
    if (shape().inline_keys) {
      StoreU64(inline_value.data(), entry.value);
      value = AsText(inline_value);
    } else {
      co_await ReadBlock(op, BlockRef(entry.value), buffer);
      const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
      if (!view.ok()) co_return view.error();
      if (view->key != target.key.text && !Mutant(kPrefixIsKey)) continue;
      value = view->value;
    }
    slot = hood.SlotAt(i);
    found = entry;
  }

  if (hood.is_guess() && !slot.has_value()) co_return Step::kElsewhere;

  const Result<Decision> decision = Decide(change, value);
  if (!decision.ok()) co_return decision.error();
  changed = {.was_present = value.has_value(), .applied = decision->applied, .counter = decision->counter};
  if (!decision->applied) co_return Step::kUnchanged;
  Entry entry;
  if (!decision->removes) {
    const std::string_view stored = decision->Value(change);
    entry = {.used = true, .key = target.key.prefix, .value = 0};
    if (shape().inline_keys) {
      entry.value = LoadU64(AsBytes(stored).data());
    } else {
      draft.Fill(change.key, stored, target.hash);
      entry.value = BlockRef::To(leaf.node(), draft.at().offset, draft.bytes(), TagOf(target.hash)).word();
    }
  }
  if (!slot.has_value() && !free.has_value()) {
    const Step made = co_await MakeRoom(op, target, leaf, header, hood, entry, draft, deferred);
    co_return made;
  }
  const size_t where = slot.has_value() ? *slot : *free;
  // A leaf whose neighbourhood is empty without this key may be empty altogether: the commit looks, at no trip of its own.
  bool lonely = decision->removes && !hood.is_guess();
  for (size_t i = 0; i < shape().neighbourhood && lonely; ++i)
    lonely = !hood.Get(i).used || shape().SlotAt(target.home, i) == where;
  std::optional<Leaf> look;
  if (lonely && shape().neighbourhood < shape().span) look.emplace();
  const Step committed = co_await Commit(op, leaf, where, entry, draft, look.has_value() ? &*look : nullptr);
  const bool emptied = lonely && (!look.has_value() || look->Count(shape()) == 0);
  // What was inserted stands in a leaf that is growing, and will often have to go elsewhere: who looks for it remembers it.
  if (decision->removes) hotspots_.Forget(target.spot_id);
  if (!decision->removes && slot.has_value())
    hotspots_.Remember(target.spot_id, {.leaf = leaf, .slot = where}, target.clears);
  // This client has unlinked it.
  if (slot.has_value() && !shape().inline_keys) {
    const FarAddr replaced = AddressOf(found.value, nodes_);
    pool::Allocator& allocator = pool_.allocator(replaced.node);
    if (Mutant(kReuseAtOnce)) {
      allocator.FreeUnpublished(replaced, buffer.bytes().size());
    } else {
      allocator.Retire(replaced, buffer.bytes().size(), pin.epoch(replaced.node));
    }
  }
  co_return emptied ? Step::kEmptied : committed;
}

// INVARIANT chime/1: WRITE, WRITE, CAS keep their order: the block is complete before the entry names it, and the entry is
// there before somebody else holds the lock. An entry that is not used (a key is deleted) needs no block.
Task<Table::Step> Table::Commit(Op& op, NodePtr leaf, size_t slot, Entry entry, Draft& draft, Leaf* look) {
  std::array<std::byte, kEntryBytes> bytes;
  StoreEntry(shape(), bytes.data(), entry);
  fabric::SmallBatch<4> trip(op, Order::kInOrder);
  const bool with_block = entry.used && draft.owned();
  if (with_block) trip.Add(draft.Write());
  trip.Add(Write(At(leaf) + SlotOffset(slot), bytes));
  const uint64_t mine = LockedBySelf(leaf);
  const size_t unlock = trip.Add(Cas(At(leaf) + kLockOffset, mine, 0));
  if (look != nullptr) trip.Add(Read(At(leaf) + pool::kLine, look->lines(shape())));
  if (with_block) draft.Publish();
  co_await trip;
  if (trip.Old(unlock) != mine) co_return LockLost();
  co_return Step::kCommitted;
}

Task<Table::Step> Table::MakeRoom(Op& op, const Target& target, NodePtr leaf, const Header& header,
                                  const Neighbourhood& hood, Entry entry, Draft& draft,
                                  DeferredWork& deferred) {
  Leaf image;
  image.header = header;
  if (hood.leaf_lines().empty()) {
    co_await op.InOrder(Read(At(leaf) + pool::kLine, image.lines(shape())));
  } else {
    std::ranges::copy(hood.leaf_lines(), image.lines(shape()).begin());
  }
  std::optional<std::vector<size_t>> path = FindRoom(shape(), image, target.home);
  if (path.has_value() && path->size() <= kMostMoves) {
    const Step moved = co_await MoveAndCommit(op, leaf, image, std::move(*path), entry, draft);
    co_return moved;
  }
  const Step split = co_await SplitLeaf(op, target, leaf, image, deferred);
  co_return split;
}

// INVARIANTS chime/3 and 4: from the free slot backwards, each entry is written where it goes, over the copy of the one that
// has just gone on; the new one comes last. `moves` is odd from before the first WRITE until after the last one.
Task<Table::Step> Table::MoveAndCommit(Op& op, NodePtr leaf, const Leaf& image, std::vector<size_t> path,
                                       Entry entry, Draft& draft) {
  Header moving = image.header;
  moving.moves += Mutant(kMovesNotRaised) ? 0 : 1;
  Header moved = image.header;
  moved.moves += Mutant(kMovesNotRaised) ? 0 : 2;
  std::vector<std::array<std::byte, kEntryBytes>> entries(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    StoreEntry(shape(), entries[i].data(), i == 0 ? entry : image.Get(shape(), path[i - 1]));
  }
  const auto without_lock = [](const Header& header) {
    return std::as_bytes(std::span(&header, 1)).subspan(kUnlockedOffset);
  };
  fabric::Batch trip(op, Order::kInOrder);
  const bool with_block = draft.owned();
  if (with_block) trip.Add(draft.Write());
  trip.Add(Write(At(leaf) + kUnlockedOffset, without_lock(moving)));
  for (size_t i = path.size(); i-- > 0;) {
    const size_t step = Mutant(kSourceFirst) ? path.size() - 1 - i : i;
    trip.Add(Write(At(leaf) + SlotOffset(path[step]), entries[step]));
  }
  trip.Add(Write(At(leaf) + kUnlockedOffset, without_lock(moved)));
  const uint64_t mine = LockedBySelf(leaf);
  const size_t unlock = trip.Add(Cas(At(leaf) + kLockOffset, mine, 0));
  if (with_block) draft.Publish();
  co_await trip;
  if (trip.Old(unlock) != mine) co_return LockLost();
  co_return Step::kCommitted;
}

}  // namespace farside::index::chime

template class farside::index::ChangingIndex<farside::index::chime::Table>;
