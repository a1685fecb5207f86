// The reference table: the simplest table that is linearizable under everything the contract allows. It
// exists to prove the fabric, the pool, the simulator and the checker, and to be read first; it is not fast,
// and it does not grow. See docs/engines/reference.md.
//
// Invariants
//   reference/1  The image that the head names is complete: sealed with the head's version.
//   reference/2  Only the owner in the head writes to the bucket, and only to the image that the head does
//                not name. The lock is taken from an owner only when it is gone (pool/2).
//   reference/3  A change is visible exactly from the CAS that turns the head (and frees the lock).
//   reference/4  No two images of a bucket that may exist at the same time are sealed with one version. So an owner
//                that has taken the lock over skips the versions that its predecessors may have used: a torn READ
//                could show the image of one with the head of the other.
//   reference/5  A block is complete before the image that points to it counts, and is retired by the client
//                whose CAS replaced it. Whoever found it holds a pin.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "index/index.h"
#include "index/kit/change.h"
#include "index/kit/changing_index.h"
#include "index/reference/image.h"
#include "index/reference/layout.h"
#include "pool/client.h"

namespace farside::index::reference {

struct Options {
  uint64_t buckets = 4;  // on each node
  Nanos backoff =
      std::chrono::microseconds(2);  // the first pause of a waiter; doubled with every further one

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
};

class Table final : public ChangingIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::vector<fabric::FarAddr> roots);

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override;
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) override;
  Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  friend class ChangingIndex<Table>;
  struct KeyHome {
    fabric::FarAddr bucket;
    uint64_t hash = 0;
  };
  // An entry of an image, and the block that it points to.
  struct Match {
    size_t entry = 0;
    std::vector<std::byte> block;
    std::string_view value;  // inside of the block
  };
  // What a look through the whole table keeps of it: the few first or last keys of a range.
  struct Sieve {
    enum class End : uint8_t { kFirst, kLast };

    const KeyRange& range;
    const End end;
    const size_t most;
    std::map<std::string, std::string, std::less<>> kept = {};

    void Add(std::string_view key, std::string_view value);
  };

  KeyHome HomeOf(std::string_view key) const;
  fabric::FarAddr BucketAt(size_t part, uint64_t bucket) const;

  Task<Changed> Modify(fabric::Op& op, Change change);
  Task<Changed> ModifyLocked(fabric::Op& op, const Change& change, KeyHome home, const Bucket& bucket,
                             uint64_t birth);
  Task<Bucket> ReadBucket(fabric::Op& op, fabric::FarAddr at);
  Task<std::optional<Match>> FindKey(fabric::Op& op, const Image& image, KeyHome home, std::string_view key);
  Task<std::vector<std::byte>> ReadBlock(fabric::Op& op, fabric::NodeId node, Entry entry);
  Task<Done> Sift(fabric::Op& op, Sieve& sieve);
  Task<Bucket> Lock(fabric::Op& op, fabric::FarAddr at);
  Task<std::optional<Bucket>> TakeOver(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> GiveBack(fabric::Op& op, fabric::FarAddr at, const Bucket& bucket);
  Task<Done> Unlock(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> Commit(fabric::Op& op, fabric::FarAddr at, Head held, Image image, fabric::FarAddr block_at,
                    std::vector<std::byte> block);

  const Options options_;
  pool::PoolClient& pool_;
  const std::vector<fabric::FarAddr> roots_;
  std::vector<fabric::NodeId> nodes_;
};

class ReferenceEngine final : public Engine {
 public:
  explicit ReferenceEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "reference"; }
  bool ordered() const override { return true; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeReferenceEngine(const OptionMap& options);

}  // namespace farside::index::reference

extern template class farside::index::ChangingIndex<farside::index::reference::Table>;
