#include "index/chime/merge_writes.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Order;

// WRITE, WRITE and WRITE, FAA keep their order.
Task<Done> MergeWrites::Run(Op& op) {
  size_t next = 0;
  bool raised = false;
  while (next < steps_.size()) {
    fabric::Batch trip(op, Order::kInOrder);
    const size_t node = steps_[next].node;
    while (next < steps_.size() && steps_[next].node == node) trip.Add(steps_[next++].write);
    raised = next == steps_.size() && table_.nodes.At(node) == table_.root_block.node;
    if (raised) trip.Add(root_.RaiseMergesVerb());
    co_await trip;
  }
  if (!raised) co_await root_.RaiseMerges(op);
  co_return Done{};
}

}  // namespace farside::index::chime
