#include "index/nessie/table.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/nessie/searcher.h"

namespace farside::index::nessie {

using fabric::FarAddr;
using fabric::Op;

Table::Table(const Options& options, pool::PoolClient& pool, std::span<const FarAddr> roots)
    : KeyedIndex(pool, options),
      partitions_(options, pool, roots),
      spares_(pool),
      cleaner_(pool, spares_),
      committer_(pool, options.backoff, cleaner_),
      mover_(pool, cleaner_),
      splitter_(pool, cleaner_),
      sweeper_(options.sweep, splitter_),
      room_maker_(options.chain, cleaner_, mover_, splitter_),
      changer_(pool, options, cleaner_, committer_, room_maker_, splitter_, sweeper_, spares_),
      walker_(pool, partitions_) {}

Table::ChangeContext Table::ContextOf(Op& op, Change& change) {
  const uint64_t hash = Hash64(AsBytes(change.key));
  return ChangeContext(pool(), op, partitions_.Of(hash), hash, change);
}

Table::SearchContext Table::ContextOf(Op& op, std::string_view key, std::string& value) {
  const uint64_t hash = Hash64(AsBytes(key));
  return SearchContext(pool(), op, partitions_.Of(hash), hash, key, value);
}

Task<bool> Table::TrySearch(SearchContext& context) { return SearchKey(context); }

// That of the node that is ahead.
uint64_t Table::growth() const {
  uint64_t most = 0;
  for (const auto& part : partitions_.parts()) {
    const Directory& directory = part->directory();
    if (directory.version > 0)
      most = std::max<uint64_t>(most, 2 * (directory.version - 1) + directory.announced);
  }
  return most;
}

}  // namespace farside::index::nessie

template class farside::index::KeyedIndex<farside::index::nessie::Table>;
