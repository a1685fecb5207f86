// Searching several keys at once: the READs of all their buckets are one trip, and those of all their blocks
// another one.
//
// Each key is searched as Get does it, and decided at its own moment. What Get needs more trips for is left
// open: a table that is about to be resized, levels 2 and 3, two keys with one tag, blocks whose size does
// not stand in the entry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/shard/bucket.h"
#include "index/shard/location_cache.h"
#include "index/shard/partitions.h"
#include "pool/client.h"

namespace farside::index::shard {

// The searches of one call, and the memory that they READ into.
struct SearchBatch {
  // What has been READ for a key.
  enum class Stage : uint8_t {
    kClosed,   // nothing more: it is decided, or left open
    kBucket,   // its bucket
    kLocated,  // the line where it was, and behind that the block that was its
    kBlock,    // its block
  };
  struct Member {
    static constexpr size_t kRoom = (Entry::Lines::kMax + 1) * pool::kLine;
    static_assert(kRoom >= kMostLines * pool::kLine, "a bucket");

    alignas(pool::kLine) std::array<std::byte, kRoom> bytes;  // a bucket, a line and a block, or a block
    uint64_t hash;
    Partition* part;
    Location location;  // kLocated
    Slot slot;          // kBucket: of the unit; kBlock: of the entry
    Stage stage;

    const Line* lines() const { return reinterpret_cast<const Line*>(bytes.data()); }
    std::span<std::byte> behind_line(uint64_t size) { return std::span(bytes).subspan(pool::kLine, size); }
  };

  void Add(const fabric::ReadIntoVerb& read) { reads[added++] = read.verb; }
  std::span<fabric::Verb> added_reads() { return std::span(reads).first(added); }

  size_t size = 0;
  size_t added = 0;
  fabric::Order order = fabric::Order::kInOrder;
  uint64_t found = 0;
  uint64_t absent = 0;
  std::array<Member, kMostTogether> members;
  std::array<fabric::Verb, 2 * kMostTogether> reads;
};

class BatchSearcher {
 public:
  BatchSearcher(pool::PoolClient& pool, const Shape& shape, Partitions& partitions, LocationCache& locations)
      : pool_(pool), shape_(shape), partitions_(partitions), locations_(locations) {}

  Task<Done> SearchTogether(fabric::Op& op, std::span<Search> searches);

 private:
  // A batch, for as long as this exists. Its memory is used again by the next call: nothing is allocated for
  // one.
  class Borrowed {
   public:
    explicit Borrowed(BatchSearcher& searcher) : searcher_(searcher) {
      if (searcher.idle_.empty()) {
        batch_ = std::make_unique<SearchBatch>();
      } else {
        batch_ = std::move(searcher.idle_.back());
        searcher.idle_.pop_back();
      }
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() { searcher_.idle_.push_back(std::move(batch_)); }
    SearchBatch& batch() { return *batch_; }

   private:
    BatchSearcher& searcher_;
    std::unique_ptr<SearchBatch> batch_;
  };

  void Begin(SearchBatch& batch, std::span<const Search> searches);
  void AddReadsOfBuckets(fabric::Op& op, SearchBatch& batch, std::span<const Search> searches,
                         const pool::PoolClient::Pin& pin);
  // Takes what the first trip has read, and adds the READs of the second.
  void TakeBuckets(fabric::Op& op, SearchBatch& batch, std::span<Search> searches,
                   const pool::PoolClient::Pin& pin);
  void TakeLocated(fabric::Op& op, SearchBatch& batch, SearchBatch::Member& member, Search& search,
                   const pool::PoolClient::Pin& pin);
  void TakeBlocks(fabric::Op& op, SearchBatch& batch, std::span<Search> searches,
                  const pool::PoolClient::Pin& pin);
  void Remember(fabric::Op& op, const SearchBatch::Member& member, const Slot& slot, std::string_view key,
                const pool::PoolClient::Pin& pin);

  pool::PoolClient& pool_;
  const Shape shape_;
  Partitions& partitions_;
  LocationCache& locations_;
  std::vector<std::unique_ptr<SearchBatch>> idle_;
};

}  // namespace farside::index::shard
