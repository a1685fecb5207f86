// Telling the levels above of a node that was split: a pivot more, a split of the parent, a new root.
#include <algorithm>

#include "index/chime/chime.h"
#include "index/chime/deferred_work.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/catalog/placement.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

constexpr int kMostAttempts = 1000;

}  // namespace

// A table of several nodes of the pool is spread over them, split by split.
size_t Table::NodeForNew(size_t old, std::string_view separator) const {
  return nodes_.size() == 1 ? old : pool::PickNode(Hash64(separator), nodes_);
}

Task<Done> Table::Repair(Op& op, uint32_t level, Bound bound, BoundRef ref, NodePtr child) {
  if (pool_.read_only() || Mutant(kNotRepaired)) co_return Done{};
  // Of those in flight that have met the same split, one tells the level above; it may be hundreds. If it could not, neither
  // could the others, who hold their pins: whoever comes next does.
  const Change of_nobody(ChangeKind::kDelete, {});
  KeyQueue::Ticket ticket(pivot_inserts_, op.client(), child.word(), of_nobody);
  if (!ticket.is_first()) {
    co_await ticket;
    co_return Done{};
  }
  const Result<Done> inserted = co_await InsertPivot(op, level, std::move(bound), ref, child).Outcome();
  const bool can_wait = !inserted.ok() && (inserted.error().code() == ErrorCode::kOutOfMemory ||
                                           inserted.error().code() == ErrorCode::kContended);
  if (!inserted.ok() && !can_wait) co_return inserted.error();
  co_return Done{};
}

Task<Done> Table::InsertPivot(Op& op, uint32_t level, Bound bound, BoundRef ref, NodePtr child) {
  const Key key(bound.text);
  DeferredWork deferred(*this);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::optional<PathNode> known = Known(key, level);
    PathNode at_node;
    if (known.has_value()) {
      at_node = *known;
    } else {
      at_node = co_await Find(op, key, level);
    }
    if (at_node.node.null()) {
      const bool grown = co_await GrowRoot(op, bound, ref, child);
      if (grown) co_return Done{};
      continue;
    }
    NodePtr at = at_node.node;
    Inserted inserted = Inserted::kRight;
    for (int step = 0; inserted == Inserted::kRight && step < kMostAttempts; ++step) {
      InnerImage image;
      image.memory = memory_;
      Header of_child{};
      const std::array reads = {Read(At(at), std::as_writable_bytes(std::span(&image.header, 1))),
                                Read(At(at) + pool::kLine, image.lines(shape())),
                                Read(At(child), std::as_writable_bytes(std::span(&of_child, 1)))};
      const NodePtr locked = at;
      const bool look_at_child = child.is_leaf() && child.node() == at.node();
      co_await Lock(op, locked, std::span(reads).first(look_at_child ? 3 : 2));
      const Result<Inserted> outcome =
          co_await InsertPivotLocked(op, at, image, bound, ref, child, of_child, deferred).Outcome();
      if (!outcome.ok()) {
        Unlock(op, locked);
        co_return outcome.error();
      }
      inserted = *outcome;
    }
    if (inserted == Inserted::kDone) co_return Done{};
    co_await deferred.Run(op);
  }
  co_return Contended("the inner nodes of the tree change all the time");
}

// The lock is held. If it succeeds, it is released.
Task<Table::Inserted> Table::InsertPivotLocked(Op& op, NodePtr& at, InnerImage& image, const Bound& bound,
                                               BoundRef ref, NodePtr child, Header of_child,
                                               DeferredWork& deferred) {
  Bound fence;
  std::vector<Pivot> pivots = co_await Decode(op, at, image, fence);
  if (!IsBelow(Key(bound.text), fence)) {
    Unlock(op, at);
    at = NodePtr(image.header.sibling);
    co_return Inserted::kRight;
  }
  const bool there =
      std::any_of(pivots.begin(), pivots.end(), [&](const Pivot& pivot) { return pivot.raw.child == child; });
  // INVARIANT chime/9: whether a leaf is alive is looked at under the lock that it takes to unlink it.
  if (child.is_leaf() && child.node() != at.node()) of_child = co_await op.InOrder(Read<Header>(At(child)));
  const bool dead = of_child.heir != 0 && !Mutant(kDeadPivotInserted);
  if (there || dead) {
    Unlock(op, at);
    Remember(at, image, fence, pivots);
    co_return Inserted::kDone;
  }
  if (pivots.size() == shape().fanout) {
    const Inserted split = co_await SplitInner(op, at, image, std::move(pivots), deferred);
    co_return split;
  }
  // What does not count leaves its slot to others.
  size_t slot = 0;
  while (std::any_of(pivots.begin(), pivots.end(), [slot](const Pivot& p) { return p.slot == slot; })) ++slot;
  Pivot added{.bound = bound, .raw = {.prefix = bound.prefix, .ref = ref, .child = child}, .slot = slot};
  std::array<std::byte, 24> bytes;
  StorePivot(shape(), bytes.data(), added.raw);
  const std::span<const std::byte> written = std::span(bytes).first(shape().pivot_bytes());
  co_await op.InOrder(Write(At(at) + shape().PivotOffset(slot), written),
                      Cas(At(at) + kLockOffset, LockedBySelf(at), 0));
  pivots.push_back(std::move(added));
  std::sort(pivots.begin(), pivots.end(), [](const Pivot& a, const Pivot& b) {
    return a.raw.prefix != b.raw.prefix ? a.raw.prefix < b.raw.prefix : a.bound.text < b.bound.text;
  });
  Remember(at, image, fence, pivots);
  co_return Inserted::kDone;
}

// The upper half of the pivots goes to a new node. They are cleared before the header says that they are gone: a pivot that is
// missing is found along the siblings (chime/7), but one that stays behind would name a leaf after that is retired (chime/8).
Task<Table::Inserted> Table::SplitInner(Op& op, NodePtr at, InnerImage& image, std::vector<Pivot> pivots,
                                        DeferredWork& deferred) {
  const size_t middle = pivots.size() / 2;
  const Pivot& separator = pivots[middle];
  const size_t node = NodeForNew(at.node(), separator.bound.text);
  const std::optional<FarAddr> free = deferred.Take(node, shape().inner_bytes());
  if (!free.has_value()) {
    Unlock(op, at);
    co_return Inserted::kAgain;
  }
  const NodePtr made = NodePtr::To(node, free->offset, at.level());
  InnerImage right;
  right.header = image.header;
  right.header.lock = 0;
  InnerImage left;
  left.header = image.header;
  left.header.fence_prefix = separator.raw.prefix;
  left.header.fence_ref = separator.raw.ref.word();
  left.header.sibling = made.word();
  for (size_t i = 0; i < pivots.size(); ++i) {
    if (i < middle) {
      left.Set(shape(), pivots[i].slot, pivots[i].raw);
    } else {
      right.Set(shape(), i - middle, pivots[i].raw);
    }
  }
  const auto header_of = [](const InnerImage& of) { return std::as_bytes(std::span(&of.header, 1)); };
  const auto right_header = Unreachable(Write(*free, header_of(right)));
  const auto right_lines = Unreachable(Write(*free + pool::kLine, right.lines(shape())));
  if (node != at.node()) co_await op.InOrder(right_header, right_lines);
  fabric::Batch trip(op, Order::kInOrder);
  if (node == at.node()) trip.Add(right_header);
  if (node == at.node()) trip.Add(right_lines);
  trip.Add(Write(At(at) + pool::kLine, left.lines(shape())));
  trip.Add(Write(At(at) + kUnlockedOffset, header_of(left).subspan(kUnlockedOffset)));
  trip.Add(Cas(At(at) + kLockOffset, LockedBySelf(at), 0));
  co_await trip;
  cache_.Drop(at);
  deferred.InsertPivotLater(at.level() + 1, separator.bound, separator.raw.ref, made);
  co_return Inserted::kAgain;
}

// The root has a sibling, and so gets a parent. False: somebody else was faster.
Task<bool> Table::GrowRoot(Op& op, const Bound& bound, BoundRef ref, NodePtr child) {
  const NodePtr old = root_;
  const uint32_t level = old.level() + 1;
  if (child.level() + 1 != level) co_return false;  // another operation of this client has made it grow
  if (level > kMostLevels)
    co_return Contended("the tree is as high as a tree may be; a larger fanout makes lower ones");
  pool::Allocator& allocator = pool_.allocator(nodes_[0]);
  const FarAddr at = co_await allocator.Allocate(op, shape().inner_bytes());
  InnerImage image;
  image.header.info = NodeInfo::Of(level).word();
  image.header.fence_ref = BoundRef::Beyond().word();
  image.Set(shape(), 0, {.prefix = 0, .ref = BoundRef::Short(0), .child = old});
  image.Set(shape(), 1, {.prefix = bound.prefix, .ref = ref, .child = child});
  const NodePtr made = NodePtr::To(0, at.offset, level);
  const std::span<const std::byte> header = std::as_bytes(std::span(&image.header, 1));
  const auto write_header = Unreachable(Write(at, header));
  const auto write_lines = Unreachable(Write(at + pool::kLine, image.lines(shape())));
  if (Mutant(kRootOverwritten)) {
    const uint64_t word = made.word();
    co_await op.InOrder(write_header, write_lines, WriteObject(root_block_, word));
    root_ = made;
    co_return true;
  }
  auto [a, b, found] =
      co_await op.InOrder(write_header, write_lines, Cas(root_block_, old.word(), made.word()));
  if (found == old.word()) {
    root_ = made;
    co_return true;
  }
  allocator.FreeUnpublished(at, shape().inner_bytes());
  co_await ReadRoot(op);
  co_return false;
}

}  // namespace farside::index::chime
