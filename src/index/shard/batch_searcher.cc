#include "index/shard/batch_searcher.h"

#include <cassert>
#include <optional>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/shard/find_key.h"
#include "index/shard/mutants.h"
#include "index/shard/unit_reader.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::OpKind;
using fabric::Order;
using fabric::Read;

namespace {

// The bucket of a key was read: decides about the key, or adds the READ of its block.
void TakeBucket(const Shape& shape, SearchBatch& batch, SearchBatch::Member& member, Search& search) {
  const Partition& part = *member.part;
  const uint64_t unit = member.slot.unit;
  const std::span<const Line> lines(member.lines(), shape.lines());
  if (Classify(part, member.hash, unit, lines) != UnitStatus::kDecides || part.directory().announced) return;
  const uint32_t version = lines[0].version();
  const Entry* const entries = lines[0].entries.data();
  const auto slot = FindTag(entries, shape, TagOf(shape, member.hash, version), 0);
  if (!slot.has_value()) {
    // INVARIANT shard/4: without the bit, there is nothing of this bucket's keys in the other levels.
    if (lines[0].overflow() && !Mutant(kOverflowNotAskedFor)) return;
    search.outcome = Search::Outcome::kAbsent;
    ++batch.absent;
    return;
  }
  const Slot found = SlotOf(part, unit, version, entries, *slot);
  if (found.entry.bytes() == 0) return;
  member.stage = SearchBatch::Stage::kBlock;
  member.slot = found;
  // The bucket is not needed any more.
  const FarAddr block_at(part.node(), found.entry.offset());
  batch.Add(ForBlock(Read(block_at, std::span(member.bytes).first(found.entry.bytes()))));
}

}  // namespace

Task<Done> BatchSearcher::SearchTogether(Op& op, std::span<Search> searches) {
  assert(searches.size() <= kMostTogether);
  const pool::PoolClient::Pin pin = pool_.Begin(searches.size());
  Borrowed borrowed(*this);
  SearchBatch& batch = borrowed.batch();
  Begin(batch, searches);
  AddReadsOfBuckets(op, batch, searches, pin);
  co_await fabric::ReadsTrip(op, batch.order, batch.added_reads());  // trip 1
  TakeBuckets(op, batch, searches, pin);
  co_await fabric::ReadsTrip(op, batch.order, batch.added_reads());  // trip 2
  TakeBlocks(op, batch, searches, pin);
  op.EndTogether(OpKind::kSearch, batch.found, batch.absent);
  co_return Done{};
}

void BatchSearcher::Begin(SearchBatch& batch, std::span<const Search> searches) {
  batch.size = searches.size();
  batch.found = 0;
  batch.absent = 0;
  bool one_node = true;
  for (size_t i = 0; i < searches.size(); ++i) {
    SearchBatch::Member& member = batch.members[i];
    member.hash = Hash64(AsBytes(searches[i].key));
    member.part = &partitions_.Of(member.hash);
    member.part->CountOperation();
    one_node &= member.part->node() == batch.members[0].part->node();
    if (locations_.enabled()) locations_.Prefetch(member.hash);
  }
  batch.order = one_node ? Order::kInOrder : Order::kTogether;
}

void BatchSearcher::AddReadsOfBuckets(Op& op, SearchBatch& batch, std::span<const Search> searches,
                                      const pool::PoolClient::Pin& pin) {
  const bool in_order = batch.order == Order::kInOrder && op.client().orders_reads();
  batch.added = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    SearchBatch::Member& member = batch.members[i];
    Partition& part = *member.part;
    member.stage = SearchBatch::Stage::kClosed;
    if (part.IsBehind() || part.directory().announced) continue;
    if (locations_.enabled()) {
      const KeyAccess at(op, part, KeyHash(member.hash), searches[i].key);
      const std::optional<Location> known = locations_.FindForLook(at, pin, in_order);
      if (known.has_value()) {
        member.stage = SearchBatch::Stage::kLocated;
        member.location = *known;
        batch.Add(Read(known->line_at(), std::span(member.bytes).first(pool::kLine)));
        batch.Add(ForBlock(Read(known->block_at(), member.behind_line(known->slot.entry.bytes()))));
        continue;
      }
    }
    member.stage = SearchBatch::Stage::kBucket;
    member.slot.unit = UnitOf(shape_, member.hash, part.directory().version);
    batch.Add(Read(part.BucketAt(member.slot.unit), std::span(member.bytes).first(shape_.bucket_bytes())));
  }
}

void BatchSearcher::TakeBuckets(Op& op, SearchBatch& batch, std::span<Search> searches,
                                const pool::PoolClient::Pin& pin) {
  batch.added = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    SearchBatch::Member& member = batch.members[i];
    const SearchBatch::Stage stage = std::exchange(member.stage, SearchBatch::Stage::kClosed);
    if (stage == SearchBatch::Stage::kLocated) {
      TakeLocated(op, batch, member, searches[i], pin);
    } else if (stage == SearchBatch::Stage::kBucket) {
      TakeBucket(shape_, batch, member, searches[i]);
    }
  }
}

void BatchSearcher::TakeLocated(Op& op, SearchBatch& batch, SearchBatch::Member& member, Search& search,
                                const pool::PoolClient::Pin& pin) {
  if (!member.location.IsIn(*member.lines())) return;
  const Result<pool::BlockView> view =
      pool::DecodeBlock(member.behind_line(member.location.slot.entry.bytes()));
  if (!view.ok() || view->key != search.key) return;
  search.value->assign(view->value);
  search.outcome = Search::Outcome::kFound;
  ++batch.found;
  Remember(op, member, member.location.slot, search.key, pin);
}

void BatchSearcher::TakeBlocks(Op& op, SearchBatch& batch, std::span<Search> searches,
                               const pool::PoolClient::Pin& pin) {
  for (size_t i = 0; i < batch.size; ++i) {
    const SearchBatch::Member& member = batch.members[i];
    if (member.stage != SearchBatch::Stage::kBlock) continue;
    const Result<pool::BlockView> view =
        pool::DecodeBlock(std::span(member.bytes).first(member.slot.entry.bytes()));
    if (!view.ok() || (view->key != searches[i].key && !Mutant(kTagIsKey))) continue;
    searches[i].value->assign(view->value);
    searches[i].outcome = Search::Outcome::kFound;
    ++batch.found;
    Remember(op, member, member.slot, searches[i].key, pin);
  }
}

void BatchSearcher::Remember(Op& op, const SearchBatch::Member& member, const Slot& slot,
                             std::string_view key, const pool::PoolClient::Pin& pin) {
  if (locations_.enabled())
    locations_.Remember(KeyAccess(op, *member.part, KeyHash(member.hash), key), slot, pin);
}

}  // namespace farside::index::shard
