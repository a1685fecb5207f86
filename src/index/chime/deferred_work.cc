#include "index/chime/deferred_work.h"

#include <utility>

#include "index/chime/mutants.h"
#include "index/chime/pivot_inserts.h"
#include "pool/memory/allocator.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;

std::optional<FarAddr> DeferredWork::TakeMemory(size_t node, uint64_t bytes) {
  for (auto room = rooms_.begin(); room != rooms_.end(); ++room) {
    if (room->node != node || room->bytes != bytes) continue;
    const FarAddr at = room->at;
    rooms_.erase(room);
    return at;
  }
  const std::optional<FarAddr> free = table_.AllocatorOf(node).TryAllocate(bytes);
  if (!free.has_value()) wanted_ = Room{.at = {}, .node = node, .bytes = bytes};
  return free;
}

void DeferredWork::KeepMemory(FarAddr at, size_t node, uint64_t bytes) {
  rooms_.push_back({.at = at, .node = node, .bytes = bytes});
}

void DeferredWork::GiveBack(const TableContext& table, const Error& error, size_t node, FarAddr at,
                            uint64_t bytes) {
  if (Mutant(kFailedSplitKeeps)) return;
  pool::Allocator& allocator = table.AllocatorOf(node);
  if (error.code() == ErrorCode::kOutcomeUnknown) {
    allocator.NoteInDoubt();
  } else {
    allocator.FreeUnpublished(at, bytes);
  }
}

Task<Done> DeferredWork::Run(Op& op) {
  co_await InsertPivot(op);
  co_await FetchMemory(op);
  co_return Done{};
}

Task<Done> DeferredWork::InsertPivot(Op& op) {
  if (!missing_pivot_.has_value()) co_return Done{};
  MissingPivot missing = *std::exchange(missing_pivot_, std::nullopt);
  co_await pivot_inserts_.InsertMissing(op, std::move(missing));
  co_return Done{};
}

Task<Done> DeferredWork::FetchMemory(Op& op) {
  if (!wanted_.has_value()) co_return Done{};
  Room room = *std::exchange(wanted_, std::nullopt);
  room.at = co_await table_.AllocatorOf(room.node).Allocate(op, room.bytes);
  rooms_.push_back(room);
  co_return Done{};
}

void DeferredWork::ReturnMemory() {
  for (const Room& room : rooms_) table_.AllocatorOf(room.node).FreeUnpublished(room.at, room.bytes);
  rooms_.clear();
}

}  // namespace farside::index::chime
