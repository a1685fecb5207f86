// `raw`: a bare array of slots. It is a yardstick, not a table: a benchmark of an engine is divided by the
// same benchmark of `raw`. An engine whose searches read a bucket and then a block cannot pass it; one that
// takes fewer trips or bytes can.
//
// NOT FOR USE. Nothing that is put can be relied on to be found again: keys that share a slot overwrite each
// other, a value that is read may be of another key or torn, and absent keys are found. What is right is the
// traffic:
//
//   search   READ bucket; READ block                                2 trips (trips=1: both in one)
//   insert   [WRITE block, READ bucket]; CAS                        2 trips
//   update   [WRITE block, READ bucket]; READ block; CAS            3 trips
//   delete   READ bucket; READ block; CAS                           3 trips
//
// A slot is a bucket and a block, at a place that only the hash of the key decides. All slots are made with
// the table, so that no allocator is involved:
//
//   root  | bucket 0 | bucket 1 | ... | block 0 | block 1 | ...
//
// A bucket begins with the word that is changed by CAS, from whatever the READ has shown to its successor. A
// CAS that fails is not repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"
#include "farside/task.h"
#include "index/index.h"
#include "pool/client.h"

namespace farside::index::raw {

inline constexpr std::string_view kName = "raw";
inline constexpr uint32_t kLayoutVersion = 1;
inline constexpr uint64_t kMostBucketBytes = 4096;
inline constexpr uint64_t kMostBlockBytes = 4 * 1024 * 1024;

struct Options {
  uint64_t records = 1024;     // slots, on each node
  uint64_t bucket_bytes = 64;  // whole lines
  uint64_t block_bytes = 128;  // whole lines
  uint64_t trips = 2;          // of a search: 2, or 1 as with a cache that knows the place of every block

  // Unknown keys and bad numbers are errors.
  static Result<Options> Parse(const OptionMap& options);
  uint64_t RootBytes() const { return records * (bucket_bytes + block_bytes); }
};

class Table final : public Index {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::vector<fabric::FarAddr> roots);

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override;
  Task<PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) override;
  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) override;
  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) override;
  Task<bool> Delete(fabric::Op& op, std::string_view key) override;
  // kUnsupported: they need a table that remembers.
  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) override;
  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) override;
  // There are no records to go through.
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  struct Slot {
    fabric::FarAddr bucket;
    fabric::FarAddr block;
  };
  Slot SlotOf(std::string_view key) const;
  // WRITE block and READ bucket in one trip; returns the word of the bucket.
  Task<uint64_t> WriteAndRead(fabric::Op& op, Slot slot, std::string_view key, std::string_view value);
  Task<Done> ReadBlock(fabric::Op& op, Slot slot);

  const Options options_;
  pool::PoolClient& pool_;
  const std::vector<fabric::FarAddr> roots_;
  std::vector<fabric::NodeId> nodes_;
};

class RawEngine final : public Engine {
 public:
  explicit RawEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return kName; }
  Traits traits() const override { return {.keeps_records = false, .read_only_walk = true}; }
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

Result<std::shared_ptr<Engine>> MakeRawEngine(const OptionMap& options);

}  // namespace farside::index::raw
