// Searches that share their trips: what is known of each, and the memory that they READ into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "fabric/trip.h"
#include "index/index.h"
#include "index/shard/bucket.h"
#include "index/shard/location_cache.h"
#include "index/shard/partition.h"
#include "index/shard/shard.h"

namespace farside::index::shard {

// The searches of one call, and their memory. It is used again by the next call: nothing is allocated for one.
struct Table::SearchBatch {
  // What has been READ for a key.
  enum class Stage : uint8_t {
    kLeft,     // it is decided, or left open
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

  void Ask(const fabric::ReadIntoVerb& read) { reads[asked++] = read.verb; }
  std::span<fabric::Verb> asked_reads() { return std::span(reads).first(asked); }

  size_t size = 0;
  size_t asked = 0;
  fabric::Order order = fabric::Order::kInOrder;
  uint64_t found = 0;
  uint64_t absent = 0;
  std::array<Member, kMostTogether> members;
  std::array<fabric::Verb, 2 * kMostTogether> reads;
};

// A company, for as long as this exists.
class Table::BorrowedSearchBatch {
 public:
  explicit BorrowedSearchBatch(Table& table) : table_(table) {
    if (table.idle_batches_.empty()) {
      batch_ = std::make_unique<SearchBatch>();
    } else {
      batch_ = std::move(table.idle_batches_.back());
      table.idle_batches_.pop_back();
    }
  }
  BorrowedSearchBatch(const BorrowedSearchBatch&) = delete;
  BorrowedSearchBatch& operator=(const BorrowedSearchBatch&) = delete;
  ~BorrowedSearchBatch() { table_.idle_batches_.push_back(std::move(batch_)); }
  SearchBatch& batch() { return *batch_; }

 private:
  Table& table_;
  std::unique_ptr<SearchBatch> batch_;
};

}  // namespace farside::index::shard
