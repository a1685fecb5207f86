#include "index/shard/table.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/kit/block_buffer.h"
#include "index/shard/bucket_finder.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::Op;
using fabric::Read;

Table::Table(const Options& options, pool::PoolClient& pool, std::span<const FarAddr> roots)
    : KeyedIndex(pool, options.backoff),
      partitions_(options, pool, roots),
      locations_(pool, options.cached_locations.value_or(LocationCache::LocationsFor(pool.client()))),
      locks_(pool, options.backoff, splitter_),
      units_(locks_),
      splitter_(pool, locks_, units_),
      views_(units_, locks_),
      writer_(locks_),
      overflows_(pool, locks_, views_, splitter_),
      changer_(pool, locks_, views_, writer_, splitter_, overflows_, locations_),
      searcher_(pool, units_, views_, splitter_, locations_),
      batches_(pool, options.shape, partitions_, locations_),
      walker_(pool, options.backoff, partitions_, locks_, views_) {}

ChangeContext Table::ContextOf(Op& op, Change& change) {
  const KeyHash hash(Hash64(AsBytes(change.key)));
  Partition& part = partitions_.Of(hash);
  part.CountOperation();
  return ChangeContext(pool(), op, part, hash, change);
}

SearchContext Table::ContextOf(Op& op, std::string_view key, std::string& value) {
  const KeyHash hash(Hash64(AsBytes(key)));
  return SearchContext(pool(), op, partitions_.Of(hash), hash, key, value);
}

// One trip for the bucket of level 1, one for the block; two more trips for the few keys of levels 2 and 3.
// What this look does not decide, an attempt of the longer kind does.
//
// The operation takes effect when the line with the entry is sampled, or (if it is absent) at some moment
// between the first and the last sample: a key that is not in the lines that were read was deleted or not yet
// inserted at one of them. The pin keeps what was found.
Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const KeyHash hash(Hash64(AsBytes(key)));
  const KeyAccess at(op, partitions_.Of(hash), hash, key);
  Partition& part = at.part;
  part.CountOperation();
  const uint64_t catalogs = pool().known_catalog_changes();
  std::optional<pool::PoolClient::Pin> pin(pool().Begin());
  if (!part.IsBehind() && !part.directory().announced) {
    if (locations_.enabled()) {
      const auto known = locations_.FindForLook(at, *pin, op.client().orders_reads());
      bool there = false;
      if (known.has_value()) there = co_await searcher_.SearchLocation(at, *known, value, *pin);
      if (there) co_return EndSearch(op, true);
    }
    UnreadLines unread;
    const Shape& shape = part.shape();
    const uint64_t unit = at.unit(Candidate::kLevel1, part.directory().version);
    const std::span<std::byte> bytes = std::span(unread.bytes).first(shape.bucket_bytes());
    co_await op.InOrder(Read(part.BucketAt(unit), bytes));  // trip 1
    const std::span<const Line> lines = unread.First(shape.lines());
    // Another operation of this client may have learned of a resize meanwhile: then this is not all that
    // there is to read.
    if (Classify(part, hash.hash(), unit, lines) == UnitStatus::kDecides && !part.directory().announced) {
      BlockBuffer block;
      BucketFinder finder(at, unit, lines[0].version(), lines[0].entries.data(), block);
      while (finder.needs_block()) {
        co_await op.InOrder(finder.BlockRead());  // trip 2
        const Status taken = finder.TakeBlock();
        if (!taken.ok()) co_return taken.error();
      }
      if (finder.found()) {
        value.assign(finder.value());
        if (locations_.enabled()) locations_.Remember(at, finder.slot(), *pin);
        co_return EndSearch(op, true);
      }
      // INVARIANT shard/4: without the bit, there is nothing of this bucket's keys in the other levels.
      if (!lines[0].overflow()) co_return EndSearch(op, false);
      const Result<bool> found = co_await searcher_.SearchOverflow(at, value, *pin).Outcome();
      if (found.ok()) co_return EndSearch(op, *found);
      if (found.error().code() != ErrorCode::kContended) co_return found.error();
    }
  }
  pin.reset();
  const bool found = co_await SearchUntilDecided(op, key, value, catalogs);
  co_return found;
}

void Table::Anticipate(std::string_view key) {
  if (locations_.enabled()) locations_.Prefetch(Hash64(AsBytes(key)));
}

// That of the node that is ahead.
uint64_t Table::growth() const {
  uint64_t most = 0;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const Directory& directory = partitions_[i].directory();
    if (directory.version > 0)
      most = std::max<uint64_t>(most, 2 * (directory.version - 1) + directory.announced);
  }
  return most;
}

}  // namespace farside::index::shard

template class farside::index::KeyedIndex<farside::index::shard::Table>;
