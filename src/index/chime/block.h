// Blocks on their way, with keys=bytes: one that was read, and one that is to be published.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/chime.h"
#include "pool/allocator.h"
#include "pool/block.h"

namespace farside::index::chime {

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

// The block of a new value. It goes back to the allocator unless it was published, or may have been. It is allocated before
// the leaf is locked: who waits for memory must not keep others waiting.
class Table::Draft {
 public:
  explicit Draft(Table& table) : table_(table) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() { Discard(); }

  // Room for a block on a node of the table, unless it has it from an earlier attempt.
  Task<Done> Prepare(fabric::Op& op, size_t node, uint64_t bytes) {
    if (owned_ && node_ == node && bytes_ == bytes) co_return Done{};
    Discard();
    pool::Allocator& allocator = AllocatorOf(node);
    const std::optional<fabric::FarAddr> free = allocator.TryAllocate(bytes);
    if (free.has_value()) {
      at_ = *free;
    } else {
      at_ = co_await allocator.Allocate(op, bytes);
    }
    node_ = node;
    bytes_ = bytes;
    owned_ = true;
    co_return Done{};
  }
  // What it will hold; as many bytes as were asked for.
  void Fill(std::string_view key, std::string_view value, uint64_t hash) {
    pool::EncodeBlock(buffer_.Resize(bytes_), key, value, hash);
  }
  bool owned() const { return owned_; }
  BlockRef RefFor(uint64_t tag) const { return BlockRef::To(node_, at_.offset, bytes_, tag); }
  fabric::WriteVerb Write() const {
    return fabric::ForBlock(fabric::Unreachable(fabric::Write(at_, buffer_.bytes())));
  }
  // A trip that publishes it is about to be posted: whatever becomes of that, it is not ours any more.
  void Publish() { owned_ = false; }
  void Discard() {
    if (owned_) AllocatorOf(node_).FreeUnpublished(at_, bytes_);
    owned_ = false;
  }

 private:
  pool::Allocator& AllocatorOf(size_t node) { return table_.pool_.allocator(table_.nodes_[node]); }

  Table& table_;
  fabric::FarAddr at_;
  size_t node_ = 0;
  uint64_t bytes_ = 0;
  bool owned_ = false;
  BlockBuffer buffer_;
};

}  // namespace farside::index::chime
