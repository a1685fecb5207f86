// The shard table: an iceberg hash table in far memory, after "SHARD: A Scalable and Resize-optimized Hash
// Index on Disaggregated Memory" (PVLDB 19(4), 2025). Searches take one trip for the index, changes two,
// or one where the key is remembered; it doubles without stopping any client. See docs/engines/shard.md.
//
// Invariants
//   shard/1  A key stands at most once in the table. Kept by: in a bucket of level 1, unused slots are filled
//            in order, and used ones never become unused while the bucket has its version; so a CAS that
//            fills the first unused slot proves that no client has inserted anything in this bucket since it
//            was read. Every other insert (into a hole, into level 2 or 3) is made under the lock of the
//            key's unit, when the bucket has no unused slot.
//   shard/2  A change of an entry keeps its flag.
//   shard/3  A bucket counts only if all its lines show one version, which is not 0.
//   shard/4  A key stands in level 2 or 3 only if its bucket of level 1 has the overflow bit.
//   shard/5  Buckets are split to a version only when every operation in flight knows that it was announced.
//   shard/6  A client that knows of an announcement changes a unit only under its lock. So no client changes
//            a unit that another one splits.
//   shard/7  A split writes the new unit first, whole, then the old one without what moved. A new unit that
//            has a version decides what is in it.
//   shard/8  A lock names the unit that its owner may be splitting. A client that takes it over from a dead
//            one finishes that split first: lines that have the new version stay as they are, the others
//            follow from the old unit.
//   shard/9  (location_cache.h)
//   shard/10 An operation that has to wait releases its pin, and takes a new one only if no catalog has
//            changed since it began, as far as its client knows (index/kit/retry_policy.h).
//   shard/11 (location_cache.h)
//   shard/12 A put or update whose CAS fails may end as if it had happened just before the change that was
//            faster, if it saw the entry that this one has replaced, and that is a put or update of a present
//            key, too: a mark in the block says so.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/shard/layout.h"
#include "index/shard/options.h"
#include "pool/client.h"

namespace farside::index::shard {

class ShardEngine final : public Engine {
 public:
  explicit ShardEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "shard"; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeShardEngine(const OptionMap& options);

}  // namespace farside::index::shard
