#include "index/sephash/table.h"

#include <algorithm>
#include <memory>

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::Op;

Table::Table(const Options& options, pool::PoolClient& pool, std::span<const FarAddr> roots)
    : KeyedIndex(pool, options),
      options_(options),
      reader_(options_, pool),
      merger_(options_, pool, reader_),
      closer_(pool, reader_, merger_),
      changer_(options_, pool, reader_, merger_, closer_),
      searcher_(options_, reader_, closer_),
      walker_(pool, directories_, reader_) {
  for (const FarAddr& root : roots)
    directories_.Add(root.node, std::make_shared<Directory>(options_, pool, root));
}

ChangeContext Table::ContextOf(Op& op, Change& change) {
  const uint64_t hash = Hash64(AsBytes(change.key));
  return ChangeContext(pool(), op, directories_.Of(hash), hash, change);
}

SearchContext Table::ContextOf(Op& op, std::string_view key, std::string& value) {
  const uint64_t hash = Hash64(AsBytes(key));
  return SearchContext(pool(), op, directories_.Of(hash), hash, key, value);
}

// A segment after the other, each under a pin of its own: what one merge has replaced may be memory for the
// next.
Task<bool> Table::UnlinkTouched(Op& op) {
  const uint64_t catalogs = pool().known_catalog_changes();
  while (closer_.has_touched()) {
    const Status unchanged = RetryPolicy::CheckCatalogs(pool(), catalogs);
    if (!unchanged.ok()) co_return unchanged.error();
    const pool::PoolClient::Pin pin = pool().Begin();
    const Result<Done> closed = co_await closer_.CloseTouched(op, pin).Outcome();
    if (closed.ok()) continue;
    if (closed.error().code() != ErrorCode::kOutOfMemory) co_return closed.error();
    co_return true;
  }
  co_return false;
}

// How often the directory of the node that is ahead has doubled. No doubling is ever under way.
uint64_t Table::growth() const {
  uint32_t deepest = options_.shape.initial_bits;
  for (size_t i = 0; i < directories_.size(); ++i) deepest = std::max(deepest, directories_[i].depth());
  return 2 * uint64_t{deepest - options_.shape.initial_bits};
}

}  // namespace farside::index::sephash

template class farside::index::KeyedIndex<farside::index::sephash::Table>;
