// Blocks on their way: one that was read, and one that is to be published.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/shard/layout.h"
#include "index/shard/shard.h"
#include "pool/allocator.h"
#include "pool/block.h"

namespace farside::index::shard {

// Room for a block; on the heap only if it is large.
class Table::BlockBuffer {
 public:
  std::span<std::byte> Resize(uint64_t bytes) {
    if (bytes > small_.size()) {
      large_.resize(bytes);
      return bytes_ = std::span(large_);
    }
    return bytes_ = std::span(small_).first(bytes);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::array<std::byte, 4 * pool::kLine> small_;
  std::vector<std::byte> large_;
  std::span<std::byte> bytes_;
};

// The block of a new value. It goes back to the allocator unless it was published, or may have been.
class Table::Draft {
 public:
  explicit Draft(pool::Allocator& allocator) : allocator_(allocator) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() { Discard(); }

  // What it will hold; and memory for it, unless it has that from an earlier attempt, or there is none at hand.
  void Fill(std::string_view key, std::string_view value, uint64_t hash) {
    const uint64_t bytes = pool::BlockBytes(key.size(), value.size());
    if (buffer_.bytes().size() != bytes) Discard();
    pool::EncodeBlock(buffer_.Resize(bytes), key, value, hash);
    if (owned_) return;
    const std::optional<fabric::FarAddr> free = allocator_.TryAllocate(bytes);
    if (!free.has_value()) return;
    at_ = *free;
    owned_ = true;
  }
  bool has_memory() const { return owned_; }
  // From a node, which takes trips.
  Task<Done> FetchMemory(fabric::Op& op) {
    at_ = co_await allocator_.Allocate(op, buffer_.bytes().size());
    owned_ = true;
    co_return Done{};
  }

  Entry EntryFor(uint64_t tag) const { return Entry::Of(at_.offset, buffer_.bytes().size(), tag); }
  fabric::WriteVerb Write() const {
    return fabric::ForBlock(fabric::Unreachable(fabric::Write(at_, buffer_.bytes())));
  }
  // A trip that publishes it is about to be posted: whatever becomes of that, it is not ours any more...
  void Publish() {
    owned_ = false;
    may_be_published_ = true;
  }
  // ...unless the trip says that it was not published.
  void Unpublish() {
    owned_ = true;
    may_be_published_ = false;
  }
  bool may_be_published() const { return may_be_published_; }
  // Back to the allocator, if it is ours. A sweep begins when no pin is held, and frees what is neither free nor reachable:
  // so nobody keeps a draft without a pin.
  void Discard() {
    if (owned_) allocator_.FreeUnpublished(at_, buffer_.bytes().size());
    owned_ = false;
  }

 private:
  pool::Allocator& allocator_;
  fabric::FarAddr at_;
  bool owned_ = false;
  bool may_be_published_ = false;
  BlockBuffer buffer_;
};

}  // namespace farside::index::shard
