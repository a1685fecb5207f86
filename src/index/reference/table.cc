#include "index/reference/table.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "pool/catalog/placement.h"

namespace farside::index::reference {

using fabric::FarAddr;
using fabric::Op;

Table::Table(const Options& options, pool::PoolClient& pool, std::vector<FarAddr> roots)
    : KeyedIndex(pool, options), options_(options), roots_(std::move(roots)) {
  for (const FarAddr& root : roots_) nodes_.push_back(root.node);
}

FarAddr Table::BucketAt(size_t part, uint64_t bucket) const {
  return FirstBucket(roots_[part]) + bucket * sizeof(Bucket);
}

FarAddr Table::BucketOf(uint64_t hash) const {
  return BucketAt(pool::PickNode(hash, nodes_), hash % options_.buckets);
}

SearchContext Table::ContextOf(Op& op, std::string_view key, std::string& value) {
  const uint64_t hash = Hash64(AsBytes(key));
  return SearchContext(pool(), op, BucketOf(hash), hash, key, value);
}

ChangeContext Table::ContextOf(Op& op, Change& change) {
  const uint64_t hash = Hash64(AsBytes(change.key));
  return ChangeContext(pool(), op, BucketOf(hash), hash, change);
}

}  // namespace farside::index::reference
