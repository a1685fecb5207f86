#include "index/chime/pivot_inserts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/catalog/placement.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

namespace {

constexpr int kMostAttempts = 1000;

bool IsWithoutHarm(const Error& error) {
  return error.code() == ErrorCode::kOutOfMemory || error.code() == ErrorCode::kContended;
}

}  // namespace

size_t NodeForNew(const TableContext& table, size_t old, std::string_view separator) {
  return table.nodes.size() == 1 ? old : pool::PickNode(Hash64(separator), table.nodes.all());
}

// Hundreds of operations of one client may meet the same split. One inserts the pivot; the others wait until
// it has ended, and do not retry if it failed: they hold pins, and the next operation that meets the split
// inserts it.
Task<Done> PivotInserts::InsertMissing(Op& op, MissingPivot missing) {
  if (table_.pool.read_only() || Mutant(kNotRepaired)) co_return Done{};
  Ticket ticket(pending_, op.client(), missing.child.word());
  if (!ticket.is_first()) {
    co_await ticket;
    co_return Done{};
  }
  const Result<Done> inserted = co_await Insert(op, std::move(missing)).Outcome();
  if (!inserted.ok() && !IsWithoutHarm(inserted.error())) co_return inserted.error();
  co_return Done{};
}

Task<Done> PivotInserts::Insert(Op& op, MissingPivot missing) {
  const Key key(missing.bound.text);
  DeferredWork deferred(table_, *this);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Position parent;
    if (!locator_.FindCached(key, missing.level, parent))
      parent = co_await locator_.Find(op, key, missing.level);
    if (parent.node.null()) {
      const bool grown = co_await root_.Grow(op, missing.bound, missing.ref, missing.child);
      if (grown) co_return Done{};
      continue;
    }
    const Inserted inserted = co_await InsertFrom(op, parent.node, missing, deferred);
    if (inserted == Inserted::kDone) co_return Done{};
    co_await deferred.Run(op);
  }
  co_return Contended("the inner nodes of the tree change all the time");
}

Task<PivotInserts::Inserted> PivotInserts::InsertFrom(Op& op, NodePtr at, const MissingPivot& missing,
                                                      DeferredWork& deferred) {
  const NodePtr child = missing.child;
  Inserted inserted = Inserted::kElsewhere;
  CircleWithHeirs passed;
  for (int step = 0; inserted == Inserted::kElsewhere && step < kMostAttempts; ++step) {
    InnerImage image = inner_nodes_.NewImage();
    Header of_child{};
    const auto [header, lines] = inner_nodes_.ReadsOf(at, image);
    const std::array reads = {header, lines, Read(table_.At(child), BytesOf(of_child))};
    const NodePtr locked = at;
    const bool with_child = child.is_leaf() && child.node() == at.node();
    co_await locks_.Lock(op, locked, std::span(reads).first(with_child ? 3 : 2));
    const Result<Inserted> outcome =
        co_await InsertLocked(op, at, image, missing, of_child, deferred).Outcome();
    if (!outcome.ok()) {
      locks_.Unlock(op, locked);
      co_return outcome.error();
    }
    inserted = *outcome;
    if (inserted == Inserted::kElsewhere && passed.Closes(locked, image.dead()))
      co_return Damaged(locked, kInCircles);
  }
  co_return inserted;
}

Task<PivotInserts::Inserted> PivotInserts::InsertLocked(Op& op, NodePtr& at, InnerImage& image,
                                                        const MissingPivot& missing, Header of_child,
                                                        DeferredWork& deferred) {
  DecodedInner decoded = co_await inner_nodes_.Decode(op, at, image);
  std::vector<Pivot>& pivots = decoded.pivots;
  // INVARIANT chime/12: a dead node is not changed any more.
  const bool is_dead = image.dead() && !Mutant(kDeadInnerChanged);
  if (is_dead || !IsBelow(Key(missing.bound.text), decoded.fence)) {
    locks_.Unlock(op, at);
    if (is_dead) inner_nodes_.Drop(at);
    at = is_dead ? NodePtr(image.header.heir) : NodePtr(image.header.sibling);
    co_return Inserted::kElsewhere;
  }
  const NodePtr child = missing.child;
  const bool there = std::any_of(pivots.begin(), pivots.end(),
                                 [child](const Pivot& pivot) { return pivot.raw.child == child; });
  // INVARIANT chime/9: whether a leaf is dead is READ under the lock that unlinking it takes. Likewise of an
  // inner node; but as long as none below this node has died, this one has not either (chime/12).
  const bool may_be_dead = child.is_leaf() ? child.node() != at.node() : image.header.moves != 0;
  if (may_be_dead) of_child = co_await op.InOrder(Read<Header>(table_.At(child)));
  const bool dead = of_child.heir != 0 && !Mutant(kDeadPivotInserted);
  if (there || dead) {
    locks_.Unlock(op, at);
    inner_nodes_.Remember(at, image, decoded);
    co_return Inserted::kDone;
  }
  if (pivots.size() == table_.shape().fanout) {
    const Inserted split = co_await SplitInner(op, at, image, std::move(decoded), deferred);
    co_return split;
  }
  const size_t slot = FirstFreeSlot(pivots);
  Pivot added{.bound = missing.bound,
              .raw = {.prefix = missing.bound.prefix, .ref = missing.ref, .child = child},
              .slot = slot};
  std::array<std::byte, kMostPivotBytes> bytes;
  StorePivot(table_.shape(), bytes.data(), added.raw);
  fabric::SmallBatch<2> trip(op, Order::kInOrder);
  trip.Add(Write(table_.At(at) + table_.shape().PivotOffset(slot),
                 std::span<const std::byte>(bytes).first(table_.shape().pivot_bytes())));
  LockRelease release = locks_.ReleaseOf(at, locks_.HeldBySelf(at));
  release.AddTo(trip, op);
  co_await trip;
  pivots.push_back(std::move(added));
  SortPivots(pivots);
  inner_nodes_.Remember(at, image, decoded);
  co_return Inserted::kDone;
}

// The upper half of the pivots goes to a new node.
Task<PivotInserts::Inserted> PivotInserts::SplitInner(Op& op, NodePtr at, InnerImage& image,
                                                      DecodedInner decoded, DeferredWork& deferred) {
  const Shape& shape = table_.shape();
  const std::vector<Pivot>& pivots = decoded.pivots;
  const size_t middle = pivots.size() / 2;
  const Pivot& separator = pivots[middle];
  const size_t node = NodeForNew(table_, at.node(), separator.bound.text);
  const std::optional<FarAddr> free = deferred.TakeMemory(node, shape.inner_bytes());
  if (!free.has_value()) {
    locks_.Unlock(op, at);
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
      left.Set(shape, pivots[i].slot, pivots[i].raw);
    } else {
      right.Set(shape, i - middle, pivots[i].raw);
    }
  }
  const Result<Done> written = co_await WriteSplit(op, at, left, made, right).Outcome();
  if (!written.ok()) {
    DeferredWork::GiveBack(table_, written.error(), node, *free, shape.inner_bytes());
    co_return written.error();
  }
  inner_nodes_.Drop(at);
  deferred.InsertLater(
      {.level = at.level() + 1, .bound = separator.bound, .ref = separator.raw.ref, .child = made});
  co_return Inserted::kAgain;
}

// One trip if both nodes are on one memory node, otherwise two. The pivots that leave are cleared before the
// header says so: a missing pivot is found along the siblings (chime/7), but one that stays behind would go
// on naming a leaf after the leaf is retired (chime/8).
Task<Done> PivotInserts::WriteSplit(Op& op, NodePtr at, InnerImage& left, NodePtr made, InnerImage& right) {
  const Shape& shape = table_.shape();
  const bool together = made.node() == at.node();
  const auto right_header = Unreachable(Write(table_.At(made), BytesOf(right.header)));
  const auto right_lines = Unreachable(Write(table_.At(made) + pool::kLine, right.lines(shape)));
  if (!together) co_await op.InOrder(right_header, right_lines);
  fabric::Batch trip(op, Order::kInOrder);
  if (together) trip.Add(right_header);
  if (together) trip.Add(right_lines);
  trip.Add(Write(table_.At(at) + pool::kLine, left.lines(shape)));
  trip.Add(Write(table_.At(at) + kUnlockedOffset, BytesBehindLock(left.header)));
  LockRelease release = locks_.ReleaseOf(at, locks_.HeldBySelf(at));
  release.AddTo(trip, op);
  co_await trip;
  co_return Done{};
}

}  // namespace farside::index::chime
