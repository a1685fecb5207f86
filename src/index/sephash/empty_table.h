// Making an empty table.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/unpublished.h"
#include "index/sephash/layout.h"
#include "index/sephash/main_room.h"
#include "pool/client.h"

namespace farside::index::sephash {

class EmptyTable {
 public:
  EmptyTable(const Shape& shape, pool::PoolClient& pool) : shape_(shape), pool_(pool) {}

  // Of one node.
  static uint64_t Bytes(const Shape& shape);

  // The part of the table on a node: returns its root. What was made goes back to the allocators unless Keep
  // is called.
  Task<fabric::FarAddr> Make(fabric::Op& op, fabric::NodeId node);
  void Keep() {
    for (Unpublished& room : rooms_) room.Publish();
    for (MainRoom& main : mains_) main.Publish();
  }

 private:
  // Memory with these bytes. While they are written, it is not given back.
  Task<fabric::FarAddr> Make(fabric::Op& op, fabric::NodeId node, std::span<const std::byte> bytes);
  // Without entries, but with pages.
  Task<fabric::FarAddr> MakeMain(fabric::Op& op, fabric::NodeId node, uint64_t segment, uint64_t pages);
  Task<fabric::FarAddr> MakeSegment(fabric::Op& op, fabric::NodeId node, uint64_t suffix);

  const Shape shape_;
  pool::PoolClient& pool_;
  std::deque<Unpublished> rooms_;
  std::deque<MainRoom> mains_;
};

}  // namespace farside::index::sephash
