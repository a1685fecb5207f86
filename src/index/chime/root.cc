#include "index/chime/root.h"

#include <algorithm>
#include <vector>

#include "index/chime/deferred_work.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

// What the root block says is taken over. True: what is remembered has to be forgotten.
Result<bool> TakeOver(const TableContext& table, const RootBlock& block, NodePtr& node, uint64_t& merges) {
  const NodePtr root(block.root);
  if (root.null() || root.is_leaf() || root.level() > kMostLevels || !table.Has(root))
    return Damaged(root, "is named as the root of the tree, and is none");
  node = root;
  // READs may end in another order than they began.
  const bool forgets = block.merges > merges;
  merges = std::max(merges, block.merges);
  return forgets;
}

}  // namespace

// INVARIANT chime/8: an operation READs the root block before it uses what was remembered under an older
// epoch than that of its pin. `merges` tells of all leaves that were retired before that epoch.
Task<Done> Root::Refresh(Op& op, const pool::PoolClient::Pin& pin) {
  const uint64_t epochs = EpochsOf(pin);
  co_await Read(op);
  checked_ = std::max(checked_, epochs);
  co_return Done{};
}

Task<Done> Root::Read(Op& op) {
  std::vector<Front::Read> front;
  if (inner_nodes_.NewImage().clears > 0 && op.client().orders_reads()) front = front_.ReadsBehind(node_);
  RootBlock block;
  fabric::Batch trip(op, fabric::Order::kInOrder);
  trip.Add(fabric::Read(table_.root_block, std::as_writable_bytes(std::span(&block, 1))));
  front_.AddTo(trip, front);
  co_await trip;
  const Result<bool> forgets = TakeOver(table_, block, node_, merges_);
  if (!forgets.ok()) co_return forgets.error();
  if (*forgets) {
    ForgetAll();
    co_await front_.Remember(op, node_, front);
  }
  co_return Done{};
}

void Root::ForgetAll() {
  if (Mutant(kFreedRemembered)) return;
  inner_nodes_.Clear();
  if (!Mutant(kHotspotsKept)) hotspots_.Clear();
  bounds_.Clear();
}

Task<bool> Root::Grow(Op& op, const Bound& bound, BoundRef ref, NodePtr sibling) {
  const Shape& shape = table_.shape();
  const NodePtr old = node_;
  const uint32_t level = old.level() + 1;
  if (sibling.level() + 1 != level) co_return false;  // another operation of this client has made it grow
  if (level > kMostLevels)
    co_return Contended("the tree is as high as a tree may be; a larger fanout makes lower ones");
  pool::Allocator& allocator = table_.AllocatorOf(0);
  const FarAddr at = co_await allocator.Allocate(op, shape.inner_bytes());
  InnerImage image;
  image.header.info = NodeInfo::Of(level).word();
  image.header.fence_ref = BoundRef::Beyond().word();
  image.Set(shape, 0, {.prefix = 0, .ref = BoundRef::Short(0), .child = old});
  image.Set(shape, 1, {.prefix = bound.prefix, .ref = ref, .child = sibling});
  const NodePtr made = NodePtr::To(0, at.offset, level);
  const Result<bool> replaced = co_await Replace(op, old, made, image).Outcome();
  if (!replaced.ok()) {
    DeferredWork::GiveBack(table_, replaced.error(), 0, at, shape.inner_bytes());
    co_return replaced.error();
  }
  if (*replaced) {
    node_ = made;
    co_return true;
  }
  allocator.FreeUnpublished(at, shape.inner_bytes());
  co_await Read(op);
  co_return false;
}

Task<bool> Root::Replace(Op& op, NodePtr old, NodePtr made, InnerImage& image) {
  const FarAddr at = table_.At(made);
  const auto write_header = Unreachable(Write(at, BytesOf(image.header)));
  const auto write_lines = Unreachable(Write(at + pool::kLine, image.lines(table_.shape())));
  if (Mutant(kRootOverwritten)) {
    const uint64_t word = made.word();
    co_await op.InOrder(write_header, write_lines, WriteObject(table_.root_block, word));
    co_return true;
  }
  auto [a, b, found] =
      co_await op.InOrder(write_header, write_lines, Cas(table_.root_block, old.word(), made.word()));
  co_return found == old.word();
}

fabric::AtomicVerb Root::RaiseMergesVerb() const { return fabric::Faa(table_.root_block + kMergesOffset, 1); }

Task<Done> Root::RaiseMerges(Op& op) {
  co_await op.InOrder(RaiseMergesVerb());
  co_return Done{};
}

}  // namespace farside::index::chime
