// What is left to do when a lock is released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/chime.h"
#include "pool/memory/allocator.h"

namespace farside::index::chime {

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
