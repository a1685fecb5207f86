// Searching several keys at once: the READs of all their buckets are one trip, and those of all their blocks another one.
//
// Each key is searched as Get does it, and decided at its own moment. What Get needs more trips for is left open: a table
// that is about to be resized, levels 2 and 3, two keys with one tag, blocks whose size does not stand in the entry.
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/shard/mutants.h"
#include "index/shard/search_batch.h"
#include "index/shard/shard.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::OpKind;
using fabric::Order;
using fabric::Read;

Task<Done> Table::SearchTogether(Op& op, std::span<Search> searches) {
  assert(searches.size() <= kMostTogether);
  const pool::PoolClient::Pin pin = pool_.Begin(searches.size());
  BorrowedSearchBatch borrowed(*this);
  SearchBatch& batch = borrowed.batch();
  FillBatch(batch, searches);
  AskForBuckets(op, batch, pin);
  co_await fabric::ReadsTrip(op, batch.order, batch.asked_reads());  // trip 1
  TakeBuckets(batch, searches, pin);
  co_await fabric::ReadsTrip(op, batch.order, batch.asked_reads());  // trip 2
  TakeBlocks(batch, searches, pin);
  op.EndTogether(OpKind::kSearch, batch.found, batch.absent);
  co_return Done{};
}

void Table::FillBatch(SearchBatch& batch, std::span<const Search> searches) {
  batch.size = searches.size();
  batch.found = 0;
  batch.absent = 0;
  bool one_node = true;
  for (size_t i = 0; i < searches.size(); ++i) {
    SearchBatch::Member& member = batch.members[i];
    member.hash = Hash64(AsBytes(searches[i].key));
    member.part = &PartitionOf(member.hash);
    member.part->CountOperation();
    one_node &= member.part->node() == batch.members[0].part->node();
    if (locations_.enabled()) locations_.Prefetch(member.hash);
  }
  batch.order = one_node ? Order::kInOrder : Order::kTogether;
}

void Table::AskForBuckets(Op& op, SearchBatch& batch, const pool::PoolClient::Pin& pin) {
  const bool in_order = batch.order == Order::kInOrder && op.client().orders_reads();
  batch.asked = 0;
  for (SearchBatch::Member& member : std::span(batch.members).first(batch.size)) {
    const Partition& part = *member.part;
    member.stage = SearchBatch::Stage::kLeft;
    if (part.IsBehind() || part.directory().announced) continue;
    if (locations_.enabled()) {
      const std::optional<Location> known =
          KnownLocation(part, member.hash, pin.epoch(part.node()), in_order);
      if (known.has_value()) {
        member.stage = SearchBatch::Stage::kLocated;
        member.location = *known;
        const FarAddr line_at(part.node(), known->slot / pool::kLine * pool::kLine);
        const FarAddr block_at(part.node(), known->entry.offset());
        batch.Ask(Read(line_at, std::span(member.bytes).first(pool::kLine)));
        batch.Ask(ForBlock(Read(block_at, member.behind_line(known->entry.bytes()))));
        continue;
      }
    }
    member.stage = SearchBatch::Stage::kBucket;
    member.slot.unit = UnitOf(shape(), member.hash, part.directory().version);
    batch.Ask(Read(part.BucketAt(member.slot.unit), std::span(member.bytes).first(shape().bucket_bytes())));
  }
}

void Table::TakeBuckets(SearchBatch& batch, std::span<Search> searches, const pool::PoolClient::Pin& pin) {
  batch.asked = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    SearchBatch::Member& member = batch.members[i];
    const Partition& part = *member.part;
    if (member.stage == SearchBatch::Stage::kLocated) {
      member.stage = SearchBatch::Stage::kLeft;
      if (!IsStillThere(member.location, *member.lines())) continue;
      const Result<pool::BlockView> view =
          pool::DecodeBlock(member.behind_line(member.location.entry.bytes()));
      if (!view.ok() || view->key != searches[i].key) continue;
      searches[i].value->assign(view->value);
      searches[i].outcome = Search::Outcome::kFound;
      ++batch.found;
      member.location.when = Location::When(member.location.version(), pin.epoch(part.node()));
      locations_.Remember(member.location);
    } else if (member.stage == SearchBatch::Stage::kBucket) {
      member.stage = SearchBatch::Stage::kLeft;
      const std::span<const Line> lines(member.lines(), shape().lines());
      if (Classify(part, member.hash, member.slot.unit, lines) != UnitStatus::kDecides ||
          part.directory().announced) {
        continue;
      }
      const uint32_t version = lines[0].version();
      const Entry* const entries = lines[0].entries.data();
      const auto slot = FindTag(entries, shape(), TagOf(shape(), member.hash, version), 0);
      if (!slot.has_value()) {
        // INVARIANT shard/4: without the bit, there is nothing of this bucket's keys in the other levels.
        if (lines[0].overflow() && !Mutant(kOverflowNotAskedFor)) continue;
        searches[i].outcome = Search::Outcome::kAbsent;
        ++batch.absent;
        continue;
      }
      const Entry entry = entries[*slot];
      if (entry.bytes() == 0) continue;
      member.stage = SearchBatch::Stage::kBlock;
      member.slot = Slot{.candidate = Candidate::kLevel1, .unit = member.slot.unit, .version = version};
      member.slot.at = part.BucketAt(member.slot.unit) + *slot * sizeof(Entry);
      member.slot.entry = entry;
      // The bucket is not needed any more.
      batch.Ask(
          ForBlock(Read(FarAddr(part.node(), entry.offset()), std::span(member.bytes).first(entry.bytes()))));
    }
  }
}

void Table::TakeBlocks(SearchBatch& batch, std::span<Search> searches, const pool::PoolClient::Pin& pin) {
  for (size_t i = 0; i < batch.size; ++i) {
    const SearchBatch::Member& member = batch.members[i];
    if (member.stage != SearchBatch::Stage::kBlock) continue;
    const Result<pool::BlockView> view =
        pool::DecodeBlock(std::span(member.bytes).first(member.slot.entry.bytes()));
    if (!view.ok() || (view->key != searches[i].key && !Mutant(kTagIsKey))) continue;
    searches[i].value->assign(view->value);
    searches[i].outcome = Search::Outcome::kFound;
    ++batch.found;
    Remember(*member.part, member.hash, member.slot, pin.epoch(member.part->node()));
  }
}

}  // namespace farside::index::shard
