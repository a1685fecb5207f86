// Changing a key: lock the bucket, write the block and the other image, turn the head.
#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "fabric/ends_client.h"
#include "index/reference/errors.h"
#include "index/reference/mutants.h"
#include "index/reference/table.h"
#include "pool/memory/block.h"

namespace farside::index::reference {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::Order;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

Error BucketIsFull() {
  return Error(
      ErrorCode::kOutOfMemory,
      fmt::format("the bucket of this key is full ({} entries); make the table with more buckets", kEntries));
}

}  // namespace

// Two trips to insert (lock and read, write and commit), a third to compare the key of an entry that may be
// it.
Task<Attempt> Table::TryChange(ChangeContext& context) {
  Bucket before;
  const bool writes_blindly = context.change.kind == ChangeKind::kTouch && Mutant(kTouchByWrite);
  if (Mutant(kReadBeforeLock) || writes_blindly) before = co_await ReadBucket(context.op, context.bucket);
  Bucket bucket = co_await Lock(context.op, context.bucket);  // trip 1
  if (Mutant(kReadBeforeLock)) bucket.images = before.images;
  if (Mutant(kReadBeforeLock)) bucket.head = before.head.WithOwner(bucket.head.owner());
  if (writes_blindly) {
    Image& image = bucket.images[bucket.head.image()];
    image = *CurrentImage(before);
    Seal(image, bucket.head.version());
  }

  context.result = {};
  const Result<Done> outcome = co_await ChangeLocked(context, bucket).Outcome();  // trips 2 and 3
  // A client that has ended cannot give its lock back, and need not.
  const bool is_locked = outcome.ok() ? !context.result.applied : !fabric::EndsClient(outcome.error());
  if (is_locked) co_await GiveBack(context.op, context.bucket, bucket);
  if (!outcome.ok()) co_return outcome.error();
  co_return Attempt::kDone;
}

// The lock is held, and still is if this decides that nothing is to be changed, or fails.
Task<Done> Table::ChangeLocked(ChangeContext& context, const Bucket& bucket) {
  const Image* current = CurrentImage(bucket);
  if (current == nullptr) co_return Damaged(context.bucket);
  Image image = *current;
  const std::optional<Match> match =
      co_await FindKey(context.op, context.node, image, context.hash, context.key);
  std::optional<std::string_view> found;
  FarAddr block;
  if (match.has_value()) found = match->record.value;
  if (match.has_value()) block = FarAddr(context.node, image.entries[match->entry].offset());
  const Result<Decision> decision = Decide(context.change, found, block);
  if (!decision.ok()) co_return decision.error();
  const Changed changed{
      .was_present = match.has_value(), .applied = decision->applied, .counter = decision->counter};
  pool::Allocator& allocator = pool().allocator(context.node);
  const bool touches = context.change.kind == ChangeKind::kTouch;
  if (!decision->applied) {
    const uint64_t bytes = pool::BlockBytes(context.key.size(), context.change.value.size());
    if (touches && Mutant(kTouchRetiresLosing))
      allocator.Retire(context.change.victim, bytes, context.pin->epoch(context.node));
    context.result = changed;
    co_return Done{};
  }

  const std::optional<size_t> target = match.has_value() ? std::optional(match->entry) : FindEmpty(image);
  if (!target.has_value()) co_return BucketIsFull();
  const Entry replaced = image.entries[*target];
  image.entries[*target] = Entry();
  if (!decision->removes) {
    const std::string_view value = decision->Value(context.change);
    const uint64_t bytes = pool::BlockBytes(context.key.size(), value.size());
    if (!context.draft.Reserve(allocator, bytes)) co_await context.draft.FetchRoom(context.op);
    context.draft.Fill(context.key, value, context.hash);
    image.entries[*target] = Entry(context.draft.at().offset, bytes, context.hash);
  }
  co_await Commit(context.op, context.bucket, bucket.head, image, context.draft);
  context.result = changed;
  // INVARIANT reference/5: the CAS of this client took the block out of the table.
  if (match.has_value()) {
    const FarAddr old_block(context.node, replaced.offset());
    if (touches && Mutant(kTouchFreesAtOnce)) {
      allocator.FreeUnpublished(old_block, match->block_bytes);
    } else {
      allocator.Retire(old_block, match->block_bytes, context.pin->epoch(context.node));
    }
  }
  co_return Done{};
}

// INVARIANTS reference/1, 3 and 5: WRITE, WRITE, CAS keep their order, so block and image are complete when
// the head turns to them. If this client dies before the CAS, the image does not count and the next owner
// overwrites it.
Task<Done> Table::Commit(Op& op, FarAddr at, Head held, Image image, Draft& draft) {
  Head committed = held.Committed();
  size_t target = committed.image();
  if (Mutant(kVersionNotRaised))
    committed = Head(Head::Version::Set(committed.word(), std::max(1u, held.version())));
  if (Mutant(kWriteCurrentImage)) {
    target = held.image();
    committed = Head(Head::Image::Set(committed.word(), target));
  }
  Seal(image, committed.version());
  // A change that stores nothing writes a block of no bytes.
  const fabric::WriteVerb block =
      draft.owned() ? draft.Write() : ForBlock(Unreachable(Write(FarAddr(at.node, 0), {})));
  if (draft.owned()) draft.Publish();
  const Order order = Mutant(kCommitTogetherWithWrite) ? Order::kTogether : Order::kInOrder;
  auto outcome = co_await fabric::TripAwaiter(op, order, block, WriteObject(ImageAt(at, target), image),
                                              Cas(at, held.word(), committed.word()))
                     .Outcome();
  if (!outcome.ok()) {
    if (Mutant(kUnknownReportedAsRefused)) co_return Error(ErrorCode::kUnavailable, "nothing was changed");
    co_return outcome.error();
  }
  if (std::get<2>(*outcome) != held.word()) {
    co_return Error(ErrorCode::kFenced,
                    "the lock was taken from this client, which was taken for dead; nothing was "
                    "changed; reconnect");
  }
  co_return Done{};
}

}  // namespace farside::index::reference

template class farside::index::KeyedIndex<farside::index::reference::Table>;
