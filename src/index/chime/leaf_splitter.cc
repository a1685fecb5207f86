#include "index/chime/leaf_splitter.h"

#include <optional>
#include <string>
#include <utility>

#include "base/hash.h"
#include "index/chime/mutants.h"
#include "index/chime/pivot_inserts.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::Order;
using fabric::Unreachable;

struct LeafSplitter::Memory {
  size_t leaf_node = 0;
  uint64_t separator_bytes = 0;  // 0: the separator needs no block
  std::optional<FarAddr> leaf = std::nullopt;
  std::optional<FarAddr> separator = std::nullopt;
};

// With keys=bytes, the blocks of the entries are READ only if too many of them share a prefix.
Task<Division> LeafSplitter::Divide(ChangeContext& change, const Leaf& leaf) {
  const Shape& shape = table_.shape();
  const std::optional<Division> by_prefix = DivideByPrefix(shape, leaf, change.target.key.prefix);
  if (by_prefix.has_value()) co_return *by_prefix;
  std::vector<Item> items;
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < shape.span; ++slot) {
    const Entry entry = leaf.Get(shape, slot);
    if (!entry.used) continue;
    items.push_back({.prefix = entry.key, .value = entry.value});
    slots.push_back(slot);
  }
  std::vector<Record> records = co_await records_.Read(change.op, items);
  std::vector<std::string> keys(shape.span);
  for (size_t i = 0; i < records.size(); ++i) keys[slots[i]] = std::move(records[i].key);
  co_return DivideByKey(shape, leaf, keys, change.target.key.text);
}

// The separator stands on the memory node of the old leaf. All or nothing: what is there is kept for the next
// attempt.
bool LeafSplitter::TakeMemory(DeferredWork& deferred, size_t node, Memory& memory) const {
  const bool with_separator = memory.separator_bytes > 0;
  if (with_separator) memory.separator = deferred.TakeMemory(node, memory.separator_bytes);
  memory.leaf = deferred.TakeMemory(memory.leaf_node, table_.shape().leaf_bytes());
  if (memory.leaf.has_value() && memory.separator.has_value() == with_separator) return true;
  if (memory.leaf.has_value())
    deferred.KeepMemory(*memory.leaf, memory.leaf_node, table_.shape().leaf_bytes());
  if (memory.separator.has_value()) deferred.KeepMemory(*memory.separator, node, memory.separator_bytes);
  return false;
}

void LeafSplitter::GiveBack(const Error& error, size_t node, const Memory& memory) const {
  DeferredWork::GiveBack(table_, error, memory.leaf_node, *memory.leaf, table_.shape().leaf_bytes());
  if (memory.separator.has_value())
    DeferredWork::GiveBack(table_, error, node, *memory.separator, memory.separator_bytes);
}

Task<Step> LeafSplitter::Split(ChangeContext& change, LeafTurn& turn, Leaf& leaf) {
  const NodePtr at = change.position.node;
  const Division division = co_await Divide(change, leaf);
  const Bound bound = Bound::Of(division.separator);
  const bool is_long = bound.text.size() > kPrefixBytes;
  Memory memory{.leaf_node = NodeForNew(table_, at.node(), bound.text),
                .separator_bytes = is_long ? pool::BlockBytes(bound.text.size(), 0) : 0};
  if (!TakeMemory(change.deferred, at.node(), memory)) {
    turn.Release();
    co_return Step::kAgain;
  }

  BoundRef ref = BoundRef::Short(is_long ? 0 : bound.text.size());
  std::vector<std::byte> separator(memory.separator_bytes);
  std::vector<fabric::WriteVerb> first;
  if (is_long) {
    ref = BoundRef::InBlock(at.node(), memory.separator->offset, memory.separator_bytes);
    pool::EncodeBlock(separator, bound.text, "", Hash64(bound.text));
    first.push_back(ForBlock(Unreachable(fabric::Write(*memory.separator, separator))));
  }
  const NodePtr made = NodePtr::To(memory.leaf_node, memory.leaf->offset, 0);
  Leaf right;
  MoveEntries(division, made, ref, leaf, right);
  const Result<Done> written =
      co_await Write(change.op, turn, at, leaf, made, right, std::move(first)).Outcome();
  if (!written.ok()) {
    GiveBack(written.error(), at.node(), memory);
    co_return written.error();
  }
  change.deferred.InsertLater({.level = 1, .bound = bound, .ref = ref, .child = made});
  co_return Step::kAgain;
}

void LeafSplitter::MoveEntries(const Division& division, NodePtr made, BoundRef ref, Leaf& leaf,
                               Leaf& right) const {
  const Shape& shape = table_.shape();
  right.header = leaf.header;
  right.header.lock = 0;
  right.header.moves = 0;
  for (size_t slot = 0; slot < shape.span; ++slot) {
    if ((division.leaving >> slot & 1) == 0) continue;
    right.Set(shape, slot, leaf.Get(shape, slot));
    leaf.Set(shape, slot, Entry());
  }
  leaf.header.fence_prefix = PrefixOf(division.separator);
  leaf.header.fence_ref = ref.word();
  leaf.header.sibling = made.word();
  leaf.header.leaving = division.leaving;
  leaf.header.moves += 1;
}

// One trip if both leaves are on one memory node, otherwise two. Whether this client still held the lock does
// not matter here: a client that is taken for dead cannot change anything any more, and the change is not
// reported as done.
Task<Done> LeafSplitter::Write(Op& op, LeafTurn& turn, NodePtr at, Leaf& leaf, NodePtr made, Leaf& right,
                               std::vector<fabric::WriteVerb> first) {
  const bool together = at.node() == made.node();
  const FarAddr old = table_.At(at);
  Header at_rest = leaf.header;
  at_rest.leaving = 0;
  at_rest.moves += 1;
  const auto right_header = Unreachable(fabric::Write(table_.At(made), right.header_bytes()));
  const auto right_lines =
      Unreachable(fabric::Write(table_.At(made) + pool::kLine, right.lines(table_.shape())));
  const auto name = fabric::Write(old + kUnlockedOffset, BytesBehindLock(leaf.header));
  const auto clear = fabric::Write(old + pool::kLine, leaf.lines(table_.shape()));
  const auto rest = fabric::Write(old + kUnlockedOffset, BytesBehindLock(at_rest));

  if (!together) co_await op.InOrder(right_header, right_lines);
  fabric::Batch trip(op, Order::kInOrder);
  for (const fabric::WriteVerb& write : first) trip.Add(write);
  if (together) trip.Add(right_header);
  if (together) trip.Add(right_lines);
  if (Mutant(kClearedFirst)) trip.Add(clear);
  trip.Add(name);
  trip.Add(clear);
  trip.Add(rest);
  // INVARIANT chime/14
  turn.AddRelease(trip, Mutant(kSplitNotCounted) ? Range::kSame : Range::kChanged);
  co_await trip;
  co_return Done{};
}

}  // namespace farside::index::chime
