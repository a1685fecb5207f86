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

// So many inner nodes are READ along with the root block, the first ones of each level: when keys go at the
// front, the very first one stays, empty, and the next ones have the first keys.
constexpr size_t kReadsOfANode = 3;
constexpr size_t kMostAlong = (fabric::kAnsweredVerbsPerRoundTrip - 1) / kReadsOfANode;

// An inner node that is READ behind the root block, with its header before and behind the lines.
struct Along {
  NodePtr at;
  InnerImage image = {};
  Header again = {};
};

// The inner nodes that lead to the first leaves, parents first, as far as they are remembered and stand on
// the memory node of the root block.
std::vector<Along> FrontOf(const TableContext& table, NodePtr root, const InnerNodes& inner_nodes) {
  std::vector<Along> front;
  const auto add = [&](NodePtr at) {
    const bool fits = front.size() < kMostAlong && table.At(at).node == table.root_block.node;
    if (fits) front.push_back({.at = at});
    return fits;
  };
  NodePtr at = root;
  if (at.null() || !add(at)) return front;
  const size_t of_a_level = (kMostAlong - 1) / std::max(root.level() - 1, 1u);
  while (at.level() > 1) {
    const Inner* const node = inner_nodes.Cached(at);
    if (node == nullptr) break;
    const size_t most = std::min(node->size(), of_a_level);
    for (size_t i = 0; i < most; ++i) add(node->child(i));
    at = node->child(0);
  }
  return front;
}

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

bool Names(const InnerImage& image, const Shape& shape, NodePtr child) {
  for (size_t slot = 0; slot < shape.fanout; ++slot) {
    if (image.Get(shape, slot).child == child) return true;
  }
  return false;
}

// Bounds that stand in blocks of their own would have to be READ.
bool HasLongBounds(const InnerImage& image, const Shape& shape) {
  if (BoundRef(image.header.fence_ref).in_block()) return true;
  for (size_t slot = 0; slot < shape.fanout; ++slot) {
    const RawPivot raw = image.Get(shape, slot);
    if (!raw.child.null() && raw.ref.in_block()) return true;
  }
  return false;
}

// INVARIANT chime/8: the nodes were READ behind the newest `merges`, in order, so each was READ behind the
// node that names it: the same as READing them one after the other. A node that none of them names may be
// anything by now.
Task<Done> RememberFront(Op& op, const TableContext& table, InnerNodes& inner_nodes, NodePtr root,
                         std::vector<Along>& front) {
  const uint64_t clears = inner_nodes.NewImage().clears;
  std::vector<const InnerImage*> whole;
  for (Along& one : front) {
    const auto names = [&](const InnerImage* parent) { return Names(*parent, table.shape(), one.at); };
    const bool named = one.at == root || std::any_of(whole.begin(), whole.end(), names);
    if (!named || one.image.header.sibling != one.again.sibling) continue;
    one.image.header = one.again;
    one.image.clears = clears;
    if (HasLongBounds(one.image, table.shape())) continue;
    const Result<DecodedInner> decoded = co_await inner_nodes.Decode(op, one.at, one.image).Outcome();
    if (!decoded.ok()) co_return Done{};  // an operation that comes to the node will say so
    inner_nodes.Remember(one.at, one.image, *decoded);
    whole.push_back(&one.image);
  }
  co_return Done{};
}

}  // namespace

// INVARIANT chime/8: an operation READs the root block before it uses what was remembered under an older
// epoch than that of its pin. `merges` tells of all leaves that were retired before that epoch.
//
// A client that has had to forget its inner nodes will have to do so again, as with a queue, whose leaves are
// merged all the time. So it READs those of the front in the same trip: `First` takes no trip for each level.
Task<Done> Root::Refresh(Op& op, const pool::PoolClient::Pin& pin) {
  const uint64_t epochs = EpochsOf(pin);
  std::vector<Along> front;
  if (inner_nodes_.NewImage().clears > 0 && op.client().orders_reads())
    front = FrontOf(table_, node_, inner_nodes_);
  RootBlock block;
  fabric::Batch trip(op, fabric::Order::kInOrder);
  trip.Add(fabric::Read(table_.root_block, std::as_writable_bytes(std::span(&block, 1))));
  for (Along& one : front) {
    const auto [header, lines] = inner_nodes_.ReadsOf(one.at, one.image);
    trip.Add(header);
    trip.Add(lines);
    trip.Add(fabric::Read(table_.At(one.at), BytesOf(one.again)));
  }
  co_await trip;
  const Result<bool> forgets = TakeOver(table_, block, node_, merges_);
  if (!forgets.ok()) co_return forgets.error();
  if (*forgets) {
    ForgetAll();
    co_await RememberFront(op, table_, inner_nodes_, NodePtr(block.root), front);
  }
  checked_ = std::max(checked_, epochs);
  co_return Done{};
}

Task<Done> Root::Read(Op& op) {
  const auto block = co_await op.InOrder(fabric::Read<RootBlock>(table_.root_block));
  const Result<bool> forgets = TakeOver(table_, block, node_, merges_);
  if (!forgets.ok()) co_return forgets.error();
  if (*forgets) ForgetAll();
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
