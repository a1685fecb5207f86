// Searching: one trip for the bucket of level 1, one for the block; two more trips for the few keys of levels 2 and 3.
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/shard/mutants.h"
#include "index/shard/shard.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

// The operation takes effect when the line with the entry is sampled, or (if it is absent) at some moment between the
// first and the last sample: a key that is not in the lines that were read was deleted or not yet inserted at one of them.
// The pin keeps what was found.
Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const KeyHash hash(Hash64(AsBytes(key)));
  Partition& part = PartitionOf(hash);
  part.CountOperation();
  const uint64_t catalogs = pool_.known_catalog_changes();
  std::optional<pool::PoolClient::Pin> pin(pool_.Begin());
  UnreadLines lines;
  bool found = false;
  bool overflow = false;
  bool decided = !part.IsBehind() && !part.directory().announced;
  if (decided) {
    const uint64_t number = hash.number(Candidate::kLevel1);
    if (locations_.enabled()) {
      bool there = false;
      const uint64_t epoch = pin->epoch(part.node());
      const std::optional<Location> known =
          KnownLocation(part, hash.hash(), epoch, op.client().orders_reads());
      if (known.has_value()) there = co_await SearchLocation(op, part, *known, epoch, key, value);
      if (there) {
        op.End(OpKind::kSearch, OpOutcome::kDone);
        co_return true;
      }
    }
    BlockBuffer buffer;
    const uint64_t unit = UnitOf(shape(), number, part.directory().version);
    const FarAddr bucket_at = part.BucketAt(unit);
    co_await op.InOrder(Read(bucket_at, std::span(lines.bytes).first(shape().bucket_bytes())));
    const std::span<const Line> read = lines.First(shape().lines());
    // Another operation of this client may have learned of a resize meanwhile: then this is not all that there is to read.
    decided = Classify(part, number, unit, read) == UnitStatus::kDecides && !part.directory().announced;
    overflow = read[0].overflow();
    if (decided) {
      const uint32_t version = read[0].version();
      const uint64_t tag = TagOf(shape(), number, version);
      const Entry* const entries = read[0].entries.data();
      for (auto slot = FindTag(entries, shape(), tag, 0); slot.has_value();
           slot = FindTag(entries, shape(), tag, *slot + 1)) {
        const Entry entry = entries[*slot];
        const uint64_t bytes = entry.bytes();
        const FarAddr block_at(part.node(), entry.offset());
        if (bytes != 0) {
          co_await op.InOrder(ForBlock(Read(block_at, buffer.Resize(bytes))));  // without a frame of its own
        } else {
          co_await ReadBlock(op, block_at, bytes, buffer);
        }
        const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
        if (!view.ok()) co_return view.error();
        if (view->key != key && !Mutant(kTagIsKey)) continue;
        value.assign(view->value);
        found = true;
        if (locations_.enabled()) {
          Slot at{.candidate = Candidate::kLevel1, .unit = unit, .version = version};
          at.at = bucket_at + *slot * sizeof(Entry);
          at.entry = entry;
          Remember(part, hash.hash(), at, pin->epoch(part.node()));
        }
        break;
      }
    }
  }
  // INVARIANT shard/4: without the bit, there is nothing of this bucket's keys in the other levels.
  if (decided && !found && overflow) {
    const Result<bool> searched =
        co_await SearchOverflow(op, part, hash, key, value, pin->epoch(part.node())).Outcome();
    decided = searched.ok() || searched.error().code() != ErrorCode::kContended;
    if (decided && !searched.ok()) co_return searched.error();
    if (decided) found = *searched;
  }
  if (!decided) {
    pin.reset();
    found = co_await SearchWithRetries(op, part, hash, key, value, catalogs);
  }
  op.End(OpKind::kSearch, found ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return found;
}

// shard/9
std::optional<Location> Table::KnownLocation(const Partition& part, uint64_t hash, uint64_t epoch,
                                             bool in_order) const {
  const bool of_any_epoch = in_order || Mutant(kCacheOfAnyEpoch);
  const Location* const known = locations_.Find(hash, part.directory().version, of_any_epoch ? 0 : epoch);
  if (known == nullptr) return std::nullopt;
  return *known;
}

// One trip: the line of the slot where the key was, and the block that was its. A coroutine of its own, so that searches
// without a cache have small frames.
Task<bool> Table::SearchLocation(Op& op, const Partition& part, Location known, uint64_t epoch,
                                 std::string_view key, std::string& value) {
  Line line;
  BlockBuffer buffer;
  const FarAddr line_at(part.node(), known.slot / pool::kLine * pool::kLine);
  const FarAddr block_at(part.node(), known.entry.offset());
  const auto read_line = Read(line_at, std::as_writable_bytes(std::span(&line, 1)));
  const auto read_block = ForBlock(Read(block_at, buffer.Resize(known.entry.bytes())));
  if (Mutant(kCacheBlockFirst)) {
    co_await op.InOrder(read_block, read_line);
  } else {
    co_await op.InOrder(read_line, read_block);
  }
  if (!IsStillThere(known, line)) co_return false;
  const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
  if (!view.ok()) co_return view.error();
  if (view->key != key) co_return false;  // it has the same hash
  value.assign(view->value);
  known.when = Location::When(known.version(), epoch);
  locations_.Remember(known);
  co_return true;
}

bool Table::IsStillThere(const Location& location, const Line& line) {
  if (Mutant(kCacheNotCompared)) return true;
  const Entry entry = line.entries[location.slot % pool::kLine / sizeof(Entry)].WithFlag(false);
  return line.version() == location.version() && entry == location.entry;
}

// Where a key is now. Nodes of level 3 come and go with splits, so what is in them is not remembered.
void Table::Remember(const Partition& part, uint64_t hash, const Slot& slot, uint64_t epoch) {
  if (!locations_.enabled() || slot.version != part.directory().version || part.directory().announced) return;
  const uint64_t line = slot.at.offset / pool::kLine * pool::kLine;
  if (slot.candidate != Candidate::kLevel1 && line != part.OverflowAt(slot.unit).offset) return;
  locations_.Remember({.hash = hash,
                       .entry = slot.entry.WithFlag(false),
                       .slot = slot.at.offset,
                       .when = Location::When(slot.version, epoch)});
}

void Table::Anticipate(std::string_view key) {
  if (locations_.enabled()) locations_.Prefetch(Hash64(AsBytes(key)));
}

Task<bool> Table::SearchWithRetries(Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                                    std::string& value, uint64_t catalogs) {
  const RetryPolicy retries = RetryPolicySince(catalogs, part);
  if (!retries.MayPinAgain()) co_return RetryPolicy::CatalogChanged();
  Result<bool> found = co_await SearchPinned(op, part, hash, key, value).Outcome();
  if (!found.ok()) {
    const auto again = [&] { return SearchPinned(op, part, hash, key, value); };
    found = co_await WithRetries<bool>(op, retries, found.error(), again).Outcome();
  }
  if (!found.ok()) co_return found.error();
  co_return *found;
}

Task<bool> Table::SearchPinned(Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                               std::string& value) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (part.IsBehind()) co_await part.CatchUp(op);
  View view;
  BlockBuffer buffer;
  co_await ReadBucket(op, part, hash.number(Candidate::kLevel1), view.bucket);
  std::optional<Found> found = co_await FindInBucket(op, part, hash, view.bucket, key, buffer);
  if (!found.has_value() && view.bucket.overflow()) {
    co_await ReadOverflows(op, part, hash, view);
    found = co_await FindInOverflows(op, part, hash, view, key, buffer);
  }
  if (found.has_value()) value.assign(found->value);
  // A reader need not split what it finds behind; but the next ones would all have to look above, for ever, if nobody
  // writes here. Whether it succeeds does not matter to this one.
  const bool behind =
      view.bucket.version < part.directory().version && !part.directory().announced && !pool_.read_only();
  if (behind &&
      view.bucket.unit != UnitOf(shape(), hash.number(Candidate::kLevel1), part.directory().version)) {
    co_await SplitFor(op, part, Candidate::kLevel1, hash.number(Candidate::kLevel1)).Outcome();
  }
  co_return found.has_value();
}

Task<bool> Table::SearchOverflow(Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                                 std::string& value, uint64_t epoch) {
  View view;
  co_await ReadOverflows(op, part, hash, view);
  BlockBuffer buffer;
  const std::optional<Found> found = co_await FindInOverflows(op, part, hash, view, key, buffer);
  if (found.has_value()) {
    value.assign(found->value);
    Remember(part, hash.hash(), found->slot, epoch);
  }
  co_return found.has_value();
}

// The key's slot and value, from a view with all levels.
Task<std::optional<Table::Found>> Table::FindKey(Op& op, Partition& part, const KeyHash& hash,
                                                 const View& view, std::string_view key,
                                                 BlockBuffer& buffer) {
  std::optional<Found> found = co_await FindInBucket(op, part, hash, view.bucket, key, buffer);
  if (!found.has_value() && view.bucket.overflow())
    found = co_await FindInOverflows(op, part, hash, view, key, buffer);
  co_return found;
}

Task<std::optional<Table::Found>> Table::FindInBucket(Op& op, Partition& part, const KeyHash& hash,
                                                      const Bucket& bucket, std::string_view key,
                                                      BlockBuffer& buffer) {
  const uint64_t tag = TagOf(shape(), hash.number(Candidate::kLevel1), bucket.version);
  for (auto slot = FindTag(bucket, shape(), tag, 0); slot.has_value();
       slot = FindTag(bucket, shape(), tag, *slot + 1)) {
    Slot at{.candidate = Candidate::kLevel1, .unit = bucket.unit, .version = bucket.version};
    at.at = part.BucketAt(bucket.unit) + *slot * sizeof(Entry);
    at.entry = bucket.entry(*slot);
    const FarAddr block_at(part.node(), at.entry.offset());
    const uint64_t bytes = at.entry.bytes();
    if (bytes != 0) {
      co_await op.InOrder(ForBlock(Read(block_at, buffer.Resize(bytes))));
    } else {
      co_await ReadBlock(op, block_at, bytes, buffer);
    }
    const Result<std::optional<std::string_view>> value = ValueIfKey(buffer, key);
    if (!value.ok()) co_return value.error();
    if (value->has_value()) co_return Found{.slot = at, .value = **value};
  }
  co_return std::nullopt;
}

Task<std::optional<Table::Found>> Table::FindInOverflows(Op& op, Partition& part, const KeyHash& hash,
                                                         const View& view, std::string_view key,
                                                         BlockBuffer& buffer) {
  for (const Candidate candidate : {Candidate::kFirstChoice, Candidate::kSecondChoice}) {
    if (candidate == Candidate::kSecondChoice && !view.has_second) continue;
    const Overflow& overflow = candidate == Candidate::kFirstChoice ? view.first : view.second;
    const uint64_t tag = TagOf(shape(), hash.number(candidate), overflow.version);
    Slot at{.candidate = candidate, .unit = overflow.unit, .version = overflow.version};
    for (size_t line = 0; line <= overflow.nodes.size(); ++line) {
      const bool is_node = line > 0;
      const Line& entries = is_node ? overflow.nodes[line - 1].line : overflow.line;
      const size_t slots = is_node ? kNodeEntries : overflow.slots(shape());
      for (size_t slot = 0; slot < slots; ++slot) {
        at.entry = entries.entries[slot];
        if (at.entry.tag() != tag || !at.entry.has_block()) continue;
        at.at =
            (is_node ? overflow.nodes[line - 1].at : part.OverflowAt(overflow.unit)) + slot * sizeof(Entry);
        co_await ReadBlock(op, FarAddr(part.node(), at.entry.offset()), at.entry.bytes(), buffer);
        const Result<std::optional<std::string_view>> value = ValueIfKey(buffer, key);
        if (!value.ok()) co_return value.error();
        if (value->has_value()) co_return Found{.slot = at, .value = **value};
      }
    }
  }
  co_return std::nullopt;
}

// The value in a block that was read, if the block is the key's.
Result<std::optional<std::string_view>> Table::ValueIfKey(const BlockBuffer& buffer, std::string_view key) {
  const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
  if (!view.ok()) return view.error();
  if (view->key != key && !Mutant(kTagIsKey)) return std::optional<std::string_view>();
  return std::optional<std::string_view>(view->value);
}

}  // namespace farside::index::shard
