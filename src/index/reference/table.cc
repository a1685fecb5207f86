#include "index/reference/table.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "pool/catalog/placement.h"

namespace farside::index::reference {

using fabric::FarAddr;

Table::Table(const Options& options, pool::PoolClient& pool, std::vector<FarAddr> roots)
    : options_(options), pool_(pool), roots_(std::move(roots)) {
  for (const FarAddr& root : roots_) nodes_.push_back(root.node);
}

FarAddr Table::BucketAt(size_t part, uint64_t bucket) const {
  return FirstBucket(roots_[part]) + bucket * sizeof(Bucket);
}

Table::KeyHome Table::HomeOf(std::string_view key) const {
  const uint64_t hash = Hash64(AsBytes(key));
  return {.bucket = BucketAt(pool::PickNode(hash, nodes_), hash % options_.buckets), .hash = hash};
}

}  // namespace farside::index::reference
