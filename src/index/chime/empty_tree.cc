#include "index/chime/empty_tree.h"

#include <numeric>
#include <span>

#include "index/chime/key.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Unreachable;

namespace {

// INVARIANT chime/11: one parent with both leaves would not do. Its pivots may be missing for some time
// (chime/7), and the two leaves could be merged.
size_t CountInners(const Shape& shape) { return shape.inline_keys && !Mutant(kMergedAcross) ? 3 : 1; }
size_t CountLeaves(const Shape& shape) { return shape.inline_keys ? 2 : 1; }

// The pivot of the i-th node of a level.
RawPivot PivotOf(size_t i, NodePtr node) {
  if (i == 0) return {.prefix = 0, .ref = BoundRef::Short(0), .child = node};
  return {.prefix = kMiddle, .ref = BoundRef::Short(kPrefixBytes), .child = node};
}

// The header of a node whose range ends where `next` begins, if there is a next node.
Header HeaderBefore(uint32_t level, NodePtr next) {
  Header header{};
  header.info = NodeInfo::Of(level).word();
  header.fence_ref = BoundRef::Beyond().word();
  if (next.null()) return header;
  header.fence_prefix = PivotOf(1, next).prefix;
  header.fence_ref = PivotOf(1, next).ref.word();
  header.sibling = next.word();
  return header;
}

}  // namespace

EmptyTree::EmptyTree(const Shape& shape)
    : shape_(shape), inners_(CountInners(shape)), leaves_(CountLeaves(shape)) {}

std::vector<uint64_t> EmptyTree::sizes() const {
  std::vector<uint64_t> sizes = {sizeof(RootBlock)};
  sizes.resize(sizes.size() + inners_.size(), shape_.inner_bytes());
  sizes.resize(sizes.size() + leaves_.size(), shape_.leaf_bytes());
  return sizes;
}

uint64_t EmptyTree::bytes() const {
  const std::vector<uint64_t> all = sizes();
  return std::accumulate(all.begin(), all.end(), uint64_t{0});
}

Task<FarAddr> EmptyTree::Make(Op& op, pool::Allocator& allocator) {
  co_await Allocate(op, allocator);
  Link();
  co_await Write(op);
  co_return made_[0];
}

Task<Done> EmptyTree::Allocate(Op& op, pool::Allocator& allocator) {
  const std::vector<uint64_t> all = sizes();
  for (const uint64_t bytes : all) {
    const Result<FarAddr> at = co_await allocator.Allocate(op, bytes).Outcome();
    if (!at.ok()) {
      for (size_t i = 0; i < made_.size(); ++i) allocator.FreeUnpublished(made_[i], all[i]);
      co_return at.error();
    }
    made_.push_back(*at);
  }
  co_return Done{};
}

void EmptyTree::Link() {
  const bool with_parents = inners_.size() > 1;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const bool is_last = i + 1 == leaves_.size();
    leaves_[i].header = HeaderBefore(0, is_last ? NodePtr() : LeafAt(i + 1));
    inners_[0].Set(shape_, i, PivotOf(i, with_parents ? InnerAt(1 + i, 1) : LeafAt(i)));
    if (!with_parents) continue;
    inners_[1 + i].header = HeaderBefore(1, is_last ? NodePtr() : InnerAt(2 + i, 1));
    inners_[1 + i].Set(shape_, 0, PivotOf(i, LeafAt(i)));
  }
  const uint32_t top = with_parents ? 2 : 1;
  inners_[0].header = HeaderBefore(top, NodePtr());
  root_block_.root = InnerAt(0, top).word();
}

Task<Done> EmptyTree::Write(Op& op) {
  fabric::Batch trip(op, Order::kInOrder);
  const auto add = [&trip](FarAddr at, std::span<const std::byte> bytes) {
    trip.Add(Unreachable(fabric::Write(at, bytes)));
  };
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const FarAddr at = made_[1 + inners_.size() + i];
    add(at, leaves_[i].header_bytes());
    add(at + pool::kLine, leaves_[i].lines(shape_));
  }
  for (size_t i = 0; i < inners_.size(); ++i) {
    add(made_[1 + i], BytesOf(inners_[i].header));
    add(made_[1 + i] + pool::kLine, inners_[i].lines(shape_));
  }
  add(made_[0], std::as_bytes(std::span(&root_block_, 1)));
  co_await trip;
  co_return Done{};
}

}  // namespace farside::index::chime
