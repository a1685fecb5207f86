// Blocks on their way, with keys=bytes: one that was read, and one that is to be published.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
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

// What somebody who holds a lock needs, or leaves to do, when the lock is released: who may have to wait for memory, or for
// another lock, holds none. Memory that nobody takes goes back to the allocator.
class Table::Errands {
 public:
  explicit Errands(Table& table) : table_(table) {}
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;
  ~Errands() {
    for (const Room& room : rooms_) AllocatorOf(room.node).FreeUnpublished(room.at, room.bytes);
  }

  // Memory for a node or a separator, on a node of the table. Nothing: it will be there when the errands are done.
  std::optional<fabric::FarAddr> Take(size_t node, uint64_t bytes) {
    for (auto room = rooms_.begin(); room != rooms_.end(); ++room) {
      if (room->node != node || room->bytes != bytes) continue;
      const fabric::FarAddr at = room->at;
      rooms_.erase(room);
      return at;
    }
    const std::optional<fabric::FarAddr> free = AllocatorOf(node).TryAllocate(bytes);
    if (!free.has_value()) wanted_ = Room{.at = {}, .node = node, .bytes = bytes};
    return free;
  }
  // What was taken, and is not needed after all.
  void GiveBack(fabric::FarAddr at, size_t node, uint64_t bytes) {
    rooms_.push_back({.at = at, .node = node, .bytes = bytes});
  }
  // A node was split: the level above should know.
  void Tell(uint32_t level, Bound bound, BoundRef ref, NodePtr child) {
    news_ = News{.level = level, .bound = std::move(bound), .ref = ref, .child = child};
  }

  // No lock is held.
  Task<Done> Run(fabric::Op& op) {
    if (news_.has_value()) {
      const News news = *std::exchange(news_, std::nullopt);
      co_await table_.Repair(op, news.level, news.bound, news.ref, news.child);
    }
    if (wanted_.has_value()) {
      Room room = *std::exchange(wanted_, std::nullopt);
      room.at = co_await AllocatorOf(room.node).Allocate(op, room.bytes);
      rooms_.push_back(room);
    }
    co_return Done{};
  }

 private:
  struct Room {
    fabric::FarAddr at;
    size_t node = 0;
    uint64_t bytes = 0;
  };
  struct News {
    uint32_t level = 0;
    Bound bound;
    BoundRef ref;
    NodePtr child;
  };

  pool::Allocator& AllocatorOf(size_t node) { return table_.pool_.allocator(table_.nodes_[node]); }

  Table& table_;
  std::vector<Room> rooms_;
  std::optional<Room> wanted_;
  std::optional<News> news_;
};

}  // namespace farside::index::chime
