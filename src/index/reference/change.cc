// Changing a key: lock the bucket, write the block and the other image, turn the head.
#include <algorithm>

#include <fmt/format.h>

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

// Two trips to insert (lock and read, write and commit), a third to compare the key of an entry that may be it.
Task<Changed> Table::Modify(Op& op, Change change) {
  const Status fits = pool::CheckBlockSizes(change.key, change.value);
  if (!fits.ok()) co_return fits.error();
  const pool::PoolClient::Pin pin = pool_.Begin();
  const KeyHome home = HomeOf(change.key);
  Bucket before;
  if (Mutant(kReadBeforeLock)) before = co_await ReadBucket(op, home.bucket);
  Bucket bucket = co_await Lock(op, home.bucket);  // trip 1
  if (Mutant(kReadBeforeLock)) bucket.images = before.images;
  if (Mutant(kReadBeforeLock)) bucket.head = before.head.WithOwner(bucket.head.owner());

  Result<Changed> changed = co_await ModifyLocked(op, change, home, bucket, pin.epoch(home.bucket.node))
                                .Outcome();  // trips 2 and 3
  const bool committed = changed.ok() && changed->applied;
  const bool connected = changed.ok() || (changed.error().code() != ErrorCode::kOutcomeUnknown &&
                                          changed.error().code() != ErrorCode::kFenced &&
                                          changed.error().code() != ErrorCode::kUnavailable);
  if (!committed && connected) co_await GiveBack(op, home.bucket, bucket);
  co_return changed;
}

// The lock is held, and still is if this returns that nothing was applied, or an error.
Task<Changed> Table::ModifyLocked(Op& op, const Change& change, KeyHome home, const Bucket& bucket,
                                  uint64_t birth) {
  const Image* current = CurrentImage(bucket);
  if (current == nullptr) co_return Damaged(home.bucket);
  Image image = *current;
  const std::optional<Match> match = co_await FindKey(op, image, home, change.key);
  std::optional<std::string_view> found;
  if (match.has_value()) found = match->record.value;
  const Result<Decision> decision = Decide(change, found);
  if (!decision.ok()) co_return decision.error();
  Changed changed{
      .was_present = match.has_value(), .applied = decision->applied, .counter = decision->counter};
  if (!decision->applied) co_return changed;

  pool::Allocator& allocator = pool_.allocator(home.bucket.node);
  const std::optional<size_t> target = match.has_value() ? std::optional(match->entry) : FindEmpty(image);
  if (!target.has_value()) {
    co_return Error(
        ErrorCode::kOutOfMemory,
        fmt::format("the bucket of this key is full ({} entries); make the table with more buckets",
                    kEntries));
  }
  const Entry replaced = image.entries[*target];
  FarAddr block_at(home.bucket.node, 0);
  std::vector<std::byte> block;
  image.entries[*target] = Entry();
  if (!decision->removes) {
    const std::string_view value = decision->Value(change);
    block.resize(pool::BlockBytes(change.key.size(), value.size()));
    block_at = co_await allocator.Allocate(op, block.size());
    pool::EncodeBlock(block, change.key, value, home.hash);
    image.entries[*target] = Entry(block_at.offset, block.size(), home.hash);
  }
  co_await Commit(op, home.bucket, bucket.head, image, block_at, std::move(block));
  // INVARIANT reference/5: the CAS of this client took the block out of the table.
  if (match.has_value())
    allocator.Retire(FarAddr(home.bucket.node, replaced.offset()), match->block_bytes, birth);
  co_return changed;
}

// INVARIANTS reference/1, 3 and 5: WRITE, WRITE, CAS keep their order, so block and image are complete when the head
// turns to them. If this client dies before the CAS, the image does not count and the next owner overwrites it.
Task<Done> Table::Commit(Op& op, FarAddr at, Head held, Image image, FarAddr block_at,
                         std::vector<std::byte> block) {
  Head committed = held.Committed();
  size_t target = committed.image();
  if (Mutant(kVersionNotRaised))
    committed = Head(Head::Version::Set(committed.word(), std::max(1u, held.version())));
  if (Mutant(kWriteCurrentImage)) {
    target = held.image();
    committed = Head(Head::Image::Set(committed.word(), target));
  }
  Seal(image, committed.version());
  const Order order = Mutant(kCommitTogetherWithWrite) ? Order::kTogether : Order::kInOrder;
  auto outcome = co_await fabric::TripAwaiter(op, order, ForBlock(Unreachable(Write(block_at, block))),
                                              WriteObject(ImageAt(at, target), image),
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

template class farside::index::ChangingIndex<farside::index::reference::Table>;
