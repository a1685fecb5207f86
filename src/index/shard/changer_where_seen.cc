// Changing a key where this client has seen it: in an earlier operation (shard/11), or in this one, when its
// CAS found that another client had been faster.
#include <optional>
#include <utility>

#include "index/shard/bucket_finder.h"
#include "index/shard/changer.h"
#include "index/shard/find_key.h"
#include "index/shard/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;

namespace {

// Whether a change of a key that is present does the same whatever its value is.
bool IsBlind(ChangeKind kind) { return IsOverwrite(kind) || kind == ChangeKind::kDelete; }

}  // namespace

Task<Attempt> Changer::TryWhereSeen(ChangeContext& context) {
  const KeyAccess& at = context.at;
  if (at.part.IsBehind()) co_await at.part.CatchUp(at.op);
  std::optional<Attempt> changed;
  if (at.directory().announced && !Mutant(kRememberedWhileAnnounced)) {
    context.rival.reset();
  } else if (context.rival.has_value()) {
    changed = co_await TryRival(context);
  } else {
    changed = co_await TryRemembered(context);
  }
  if (changed.has_value()) co_return *changed;
  const Attempt tried = co_await TryChange(context);
  co_return tried;
}

Task<std::optional<Attempt>> Changer::TryRemembered(ChangeContext& context) {
  const KeyAccess& at = context.at;
  const std::optional<Location> known = locations_.Find(at);
  if (!known.has_value()) co_return std::nullopt;
  if (IsBlind(context.change.kind) && LocationCache::MayChangeUnseen(at, *known, *context.pin)) {
    const std::optional<Attempt> changed = co_await ChangeUnseen(context, *known);
    co_return changed;
  }
  if (!locations_.FindForLook(at, *context.pin, at.op.client().orders_reads())) co_return std::nullopt;
  BlockBuffer block;
  const std::optional<Found> found = co_await FindAgain(at, *known, block);  // trip 1
  if (!found.has_value()) {
    locations_.Forget(at);
    co_return std::nullopt;
  }
  const Attempt changed =
      co_await ChangeFound(context, nullptr, found, block, Locking::kIfCareful);  // trip 2
  co_return changed;
}

// INVARIANT shard/11: if the CAS succeeds, the entry names the block that it named when it was seen, which is
// the key's; so the key was present, and this was its entry.
Task<std::optional<Attempt>> Changer::ChangeUnseen(ChangeContext& context, Location known) {
  const KeyAccess& at = context.at;
  const Slot& slot = known.slot;
  const Result<Decision> decision = DecideAndDraft(context, Found{.slot = slot, .value = {}});
  if (!decision.ok()) co_return decision.error();
  const bool removes = decision->removes;
  if (!removes && !context.draft.owned()) {
    co_await context.draft.FetchRoom(at.op);
    if (!LocationCache::MayChangeUnseen(at, known, *context.pin)) co_return std::nullopt;
  }
  // Nothing is awaited between that look at the directory and this trip.
  const Entry desired = Successor(context, slot, removes);
  const Written written =
      co_await SlotWriter::CasSlot(at.op, slot, desired, removes ? nullptr : &context.draft);  // trip 1
  if (!written.done) {
    locations_.Forget(at);
    NoteRival(context, slot, written.found, /*seen=*/Mutant(kYieldsOnMemory));
    context.result = {.was_present = false, .applied = false};
    co_return removes&& Mutant(kRememberedIsAll) ? Attempt::kDone : Attempt::kRetry;
  }
  if (!Mutant(kRememberedNotRetired)) RetireReplaced(context, slot, slot.entry.bytes());
  if (removes) at.part.CountRecords(-1);
  Remember(context, slot, desired);
  co_return Attempt::kDone;
}

void Changer::NoteRival(ChangeContext& context, Slot slot, Entry found, bool seen) {
  if (!MayBeOf(found, slot.entry.tag())) return;
  // A flag may change for itself.
  const bool replaced = found.offset() != slot.entry.offset() || Mutant(kYieldsToAFlag);
  slot.entry = found;
  context.rival = Rival{.slot = slot, .has_replaced_what_was_seen = seen && replaced};
}

// INVARIANT shard/12: the key's entry that this operation has seen was replaced since, and the block that
// stands there now was put over a present key by a change that did not look at its value: so this change may
// have happened just before that one. Those that it carries were in flight then, too.
bool Changer::MayYield(const ChangeContext& context, const Rival& rival, const pool::BlockView& block) {
  if (!IsOverwrite(context.change.kind) || !rival.has_replaced_what_was_seen) return false;
  return block.marked || Mutant(kYieldsToAny);
}

// The slot held the entry when the CAS was executed, so its block stays as it is until this pin is gone; and
// no client splits the unit before that (shard/5). So what is found is as good as what a view shows.
Task<std::optional<Attempt>> Changer::TryRival(ChangeContext& context) {
  const KeyAccess& at = context.at;
  const Rival rival = *std::exchange(context.rival, std::nullopt);
  const Slot& slot = rival.slot;
  if (slot.version != at.directory().version) co_return std::nullopt;
  BlockBuffer block;
  co_await ReadBlock(at.op, FarAddr(at.part.node(), slot.entry.offset()), slot.entry.bytes(),
                     block);  // trip 1
  const Result<pool::BlockView> view = pool::DecodeBlock(block.bytes());
  if (!view.ok()) co_return view.error();
  if (!IsOf(*view, at.key)) co_return std::nullopt;
  if (MayYield(context, rival, *view)) {
    context.result = {.was_present = true, .applied = true};
    if (locations_.enabled()) locations_.Remember(at, slot, *context.pin);
    co_return Attempt::kDone;
  }
  const Found found{.slot = slot, .value = view->value};
  const Attempt changed =
      co_await ChangeFound(context, nullptr, found, block, Locking::kIfCareful);  // trip 2
  co_return changed;
}

}  // namespace farside::index::shard
