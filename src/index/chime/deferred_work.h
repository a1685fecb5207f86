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
class Table::DeferredWork {
 public:
  explicit DeferredWork(Table& table) : table_(table) {}
  DeferredWork(const DeferredWork&) = delete;
  DeferredWork& operator=(const DeferredWork&) = delete;
  ~DeferredWork() {
    for (const Reserved& reserved : reserved_)
      AllocatorOf(reserved.node).FreeUnpublished(reserved.at, reserved.bytes);
  }

  // Memory for a node or a separator, on a node of the table. Nothing: it will be there when the errands are done.
  std::optional<fabric::FarAddr> Take(size_t node, uint64_t bytes) {
    for (auto reserved = reserved_.begin(); reserved != reserved_.end(); ++reserved) {
      if (reserved->node != node || reserved->bytes != bytes) continue;
      const fabric::FarAddr at = reserved->at;
      reserved_.erase(reserved);
      return at;
    }
    const std::optional<fabric::FarAddr> free = AllocatorOf(node).TryAllocate(bytes);
    if (!free.has_value()) wanted_ = Reserved{.at = {}, .node = node, .bytes = bytes};
    return free;
  }
  // What was taken, and is not needed after all.
  void GiveBack(fabric::FarAddr at, size_t node, uint64_t bytes) {
    reserved_.push_back({.at = at, .node = node, .bytes = bytes});
  }
  // A node was split: the level above should know.
  void InsertPivotLater(uint32_t level, Bound bound, BoundRef ref, NodePtr child) {
    pivot_insert_ = PivotInsert{.level = level, .bound = std::move(bound), .ref = ref, .child = child};
  }

  // No lock is held.
  Task<Done> Run(fabric::Op& op) {
    if (pivot_insert_.has_value()) {
      const PivotInsert insert = *std::exchange(pivot_insert_, std::nullopt);
      co_await table_.Repair(op, insert.level, insert.bound, insert.ref, insert.child);
    }
    if (wanted_.has_value()) {
      Reserved reserved = *std::exchange(wanted_, std::nullopt);
      reserved.at = co_await AllocatorOf(reserved.node).Allocate(op, reserved.bytes);
      reserved_.push_back(reserved);
    }
    co_return Done{};
  }

 private:
  struct Reserved {
    fabric::FarAddr at;
    size_t node = 0;
    uint64_t bytes = 0;
  };
  struct PivotInsert {
    uint32_t level = 0;
    Bound bound;
    BoundRef ref;
    NodePtr child;
  };

  pool::Allocator& AllocatorOf(size_t node) { return table_.pool_.allocator(table_.nodes_[node]); }

  Table& table_;
  std::vector<Reserved> reserved_;
  std::optional<Reserved> wanted_;
  std::optional<PivotInsert> pivot_insert_;
};

}  // namespace farside::index::chime
