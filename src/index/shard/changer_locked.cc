// Changing a key in careful mode, while a resize is announced (shard/6).
#include <optional>

#include "index/shard/changer.h"
#include "index/shard/find_key.h"
#include "index/shard/mutants.h"

namespace farside::index::shard {

Task<std::optional<Attempt>> Changer::TryChangeLocked(ChangeContext& context) {
  View view;
  co_await views_.LockView(context.at, view);  // trip 1
  const Result<std::optional<Attempt>> outcome = co_await ChangeUnderLock(context, view).Outcome();
  views_.UnlockView(context.at, view);
  if (!outcome.ok()) co_return outcome.error();
  if (*outcome == Attempt::kRetry) co_await overflows_.HelpBusy(context.at, view);
  co_return *outcome;
}

Task<std::optional<Attempt>> Changer::ChangeUnderLock(ChangeContext& context, View& view) {
  const KeyAccess& at = context.at;
  if (!ViewReader::IsUpToDate(at, view, view.bucket.overflow())) co_return std::nullopt;
  if (view.bucket.overflow()) co_await ViewReader::ReadNodesOf(at, view);
  BlockBuffer block;
  const std::optional<Found> found = co_await FindKey(at, view, block);
  if (found.has_value() && found->slot.candidate != Candidate::kLevel1)
    co_return std::nullopt;  // under another lock
  const bool has_room = found.has_value() || FindUnused(view.bucket, at.shape()).has_value();
  if (!has_room && !ViewReader::IsUpToDate(at, view, /*with_overflow=*/true)) co_return std::nullopt;
  const Attempt changed = co_await ChangeFound(context, &view, found, block, Locking::kHeld);
  co_return changed;
}

Task<Attempt> Changer::InsertUnderLock(ChangeContext& context, View& view) {
  const KeyAccess& at = context.at;
  const std::optional<size_t> unused = FindUnused(view.bucket, at.shape());
  if (unused.has_value()) {
    const Slot slot = SlotOf(at.part, view.bucket, *unused);
    const Entry desired = EntryFor(context.draft, at.tag(Candidate::kLevel1, slot.version));
    const Written written = co_await SlotWriter::CasSlot(at.op, slot, desired, &context.draft);
    co_return written.done ? Attempt::kDone : Attempt::kRetry;
  }
  if (!view.bucket.overflow()) co_await ViewReader::ReadNodesOf(at, view);
  const Attempt inserted = co_await overflows_.InsertUnderLock(at, view, context.draft);
  co_return inserted;
}

}  // namespace farside::index::shard
