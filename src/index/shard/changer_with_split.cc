// Changing a key in the time after a resize, in which most units are to be split: the trip that reads takes
// the lock too, of the unit that the key's is split from. So an insert that has to split takes two trips,
// like any other.
#include <optional>
#include <utility>
#include <vector>

#include "index/shard/changer.h"
#include "index/shard/find_key.h"
#include "index/shard/mutants.h"

namespace farside::index::shard {

using fabric::Read;
using fabric::ReadIntoVerb;

Task<std::optional<Attempt>> Changer::TryChangeWithSplit(ChangeContext& context, Bucket& met) {
  const KeyAccess& at = context.at;
  const uint32_t version = at.directory().version - 1;
  Split split(at.shape(), at.unit(Candidate::kLevel1, version), version);
  UnitLines read;
  std::vector<ReadIntoVerb> reads;
  reads.push_back(Read(at.part.BucketAt(split.unit), BytesOf(std::span(read).first(at.shape().lines() + 1))));
  View view;
  Choices choices(at, version, view);
  const bool expects_overflow = at.part.ExpectsOverflow() && !Mutant(kLevel2NotReadBySplit);
  if (expects_overflow) choices.AddReads(reads);
  co_await locks_.Lock(at, split.unit, std::move(reads));  // trip 1
  split.TakeOld(read);
  const bool behind = split.IsOfVersion() && at.directory().version == version + 1;
  at.part.NoteUnsplit(behind);
  if (!behind) {
    locks_.Unlock(at, split.unit);
    // It was split already. If the key has stayed, this is its bucket, and need not be read again.
    const bool stayed = at.unit(Candidate::kLevel1, version + 1) == split.unit;
    const bool current = VersionOf(split.old_lines()) == version + 1 &&
                         at.directory().version == version + 1 && !at.directory().announced;
    if (current && (stayed || Mutant(kBucketOfParent))) {
      met = split.old_bucket;
      met.version = version + 1;
    }
    co_return std::nullopt;
  }
  at.part.NoteOverflow(split.old_bucket.overflow());
  view.bucket = split.old_bucket;
  if (expects_overflow) choices.Take();
  const Result<std::optional<Attempt>> outcome = co_await ChangeWithSplit(context, view, split).Outcome();
  if (!outcome.ok()) splitter_.FreeUnwritten(at, split);
  if (!split.writing) locks_.Unlock(at, split.unit);
  // There may be no memory for the nodes of level 3. What needs none, as deleting, can be done without a
  // split: see BringUpToDate.
  if (!outcome.ok() && outcome.error().code() == ErrorCode::kOutOfMemory && !split.writing)
    co_return std::nullopt;
  co_return outcome;
}

// Under the lock, which the split releases.
Task<std::optional<Attempt>> Changer::ChangeWithSplit(ChangeContext& context, View& view, Split& split) {
  const KeyAccess& at = context.at;
  if (view.bucket.overflow() && !Mutant(kLevel2NotReadBySplit)) {
    const bool known = co_await EnsureChoices(context, view, split.version);
    if (!known) co_return std::nullopt;
  }
  BlockBuffer block;
  const std::optional<Found> found = co_await FindKey(at, view, block);
  const Attempt changed = co_await ChangeFound(context, &view, found, block, Locking::kHeld, &split);
  co_return changed;
}

Task<Attempt> Changer::InsertWithSplit(ChangeContext& context, Split& split) {
  FoldedInsert insert{context.at, context.draft, /*absent=*/true};
  const bool published = co_await splitter_.SplitUnderLock(context.at, split, &insert);
  co_return published ? Attempt::kDone : Attempt::kRetry;
}

// Levels 2 and 3, for a bucket that has the overflow bit. False: another client is splitting a line of them.
Task<bool> Changer::EnsureChoices(ChangeContext& context, View& view, uint32_t version) {
  const KeyAccess& at = context.at;
  if (view.first.version == 0) {
    Choices choices(at, version, view);
    co_await choices.Fetch();
  }
  for (const Candidate candidate : kChoices) {
    if (!Decides(at, candidate, view.choice(candidate))) co_return false;
  }
  co_await ViewReader::ReadNodesOf(at, view);
  co_return true;
}

}  // namespace farside::index::shard
