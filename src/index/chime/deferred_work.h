// What the holder of a lock leaves until the lock is released: waiting for memory, or for another lock. A
// client that waits holds no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/missing_pivot.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class PivotInserts;

// Memory that is not taken goes back to the allocator.
class DeferredWork {
 public:
  DeferredWork(const TableContext& table, PivotInserts& pivot_inserts)
      : table_(table), pivot_inserts_(pivot_inserts) {}
  DeferredWork(const DeferredWork&) = delete;
  DeferredWork& operator=(const DeferredWork&) = delete;
  ~DeferredWork() {
    if (!rooms_.empty()) ReturnMemory();
  }

  // Memory for a node or a separator, on a memory node of the table. Empty: FetchMemory will fetch it.
  std::optional<fabric::FarAddr> TakeMemory(size_t node, uint64_t bytes);
  // Memory that was taken, and is not needed yet.
  void KeepMemory(fabric::FarAddr at, size_t node, uint64_t bytes);
  // Memory for which a trip has failed with this error. If the trip has certainly changed nothing, the memory
  // goes back; otherwise the next sweep tells.
  static void GiveBack(const TableContext& table, const Error& error, size_t node, fabric::FarAddr at,
                       uint64_t bytes);
  // A node was split: InsertPivot will insert the pivot.
  void InsertLater(MissingPivot pivot) { missing_pivot_ = std::move(pivot); }

  // No lock is held. All of it, or a part.
  Task<Done> Run(fabric::Op& op);
  Task<Done> InsertPivot(fabric::Op& op);
  Task<Done> FetchMemory(fabric::Op& op);
  void ReturnMemory();

 private:
  struct Room {
    fabric::FarAddr at;
    size_t node = 0;
    uint64_t bytes = 0;
  };

  const TableContext& table_;
  PivotInserts& pivot_inserts_;
  std::vector<Room> rooms_;
  std::optional<Room> wanted_;
  std::optional<MissingPivot> missing_pivot_;
};

}  // namespace farside::index::chime
