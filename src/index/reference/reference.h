// The reference table: the simplest table that is linearizable under everything the contract allows. It
// exists to prove the fabric, the simulator and the checker, and to be read first; it is not fast, it
// does not grow, and its keys and values are small. See docs/engines/reference.md.
//
// Invariants
//   reference/1  The image that the head names is complete: sealed with the head's version.
//   reference/2  Only the owner in the head writes to the bucket, and only to the image that the head does
//                not name. An owner that may be dead is fenced before the lock is taken from it.
//   reference/3  A change is visible exactly from the CAS that turns the head (and frees the lock).
//   reference/4  Every tenure of the lock ends with a higher version, so a head word that is seen again is that of the same
//                tenure, and nothing has changed.
//   reference/5  No two images of a bucket that may exist at the same time are sealed with one version. So an owner
//                that has taken the lock over skips the versions that its predecessors may have used: a torn READ
//                could show the image of one with the head of the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "index/index.h"
#include "index/reference/image.h"
#include "index/reference/layout.h"

namespace farside::index::reference {

struct Options {
  uint64_t buckets = 4;
  Nanos lease = std::chrono::microseconds(500);  // an owner that holds a lock for longer is taken for dead
  Nanos backoff = std::chrono::microseconds(2);  // the first pause of a waiter; doubled up to the lease

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
};

class Table final : public Index {
 public:
  Table(const Options& options, fabric::Client& client) : options_(options), client_(client) {}

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override;
  Task<bool> Put(fabric::Op& op, std::string_view key, std::string_view value) override;
  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) override;
  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) override;
  Task<bool> Delete(fabric::Op& op, std::string_view key) override;
  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) override;
  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  fabric::FarAddr BucketOf(std::string_view key) const;

  Task<Changed> Modify(fabric::Op& op, Change change);
  Task<Bucket> Lock(fabric::Op& op, fabric::FarAddr at);
  Task<std::optional<Bucket>> TakeOver(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> Unlock(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> Commit(fabric::Op& op, fabric::FarAddr at, Head held, Image image);

  const Options options_;
  fabric::Client& client_;
};

class ReferenceEngine final : public Engine {
 public:
  explicit ReferenceEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "reference"; }
  uint64_t region_bytes() const override { return options_.buckets * sizeof(Bucket); }
  Task<Done> Format(fabric::Op& op) override;
  std::unique_ptr<Index> Open(fabric::Client& client) override;
  std::string Describe(fabric::FarAddr at) const override;

 private:
  const Options options_;
};

Result<std::unique_ptr<Engine>> MakeReferenceEngine(const OptionMap& options);

}  // namespace farside::index::reference
