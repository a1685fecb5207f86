// Splitting a leaf that has no room for a key.
//
//   1  the new leaf, complete: nobody can reach it yet
//   2  the old header: its fence, its sibling, which entries are leaving, `moves` odd. From here on the new leaf has them.
//   3  the old lines, without what leaves
//   4  the old header: nothing is leaving, `moves` even. From here on others go to the new leaf.
//   5  the old lock is released
//   6  the parent gets a pivot
//
// If the client dies before 2, the new leaf is nobody's, and is swept. After 2, whoever takes over the old leaf does 3 and
// 4 by what the header says. After 5, whoever has to go along the sibling does 6 (chime/7).
#include "index/chime/chime.h"
#include "index/chime/deferred_work.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

// With keys=bytes, the keys of the entries are read only if too many of them share a prefix.
Task<Division> Table::Divide(Op& op, const Target& target, const Leaf& leaf) {
  const std::optional<Division> by_prefix = DivideByPrefix(shape(), leaf, target.key.prefix);
  if (by_prefix.has_value()) co_return *by_prefix;
  std::vector<Item> items;
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < shape().span; ++slot) {
    const Entry entry = leaf.Get(shape(), slot);
    if (!entry.used) continue;
    items.push_back({.prefix = entry.key, .value = entry.value});
    slots.push_back(slot);
  }
  std::vector<Record> records = co_await ReadItems(op, items);
  std::vector<std::string> keys(shape().span);
  for (size_t i = 0; i < records.size(); ++i) keys[slots[i]] = std::move(records[i].key);
  co_return DivideByKey(shape(), leaf, keys, target.key.text);
}

// The lock is held. If it succeeds, it is released; then it is the caller's turn to look again where the key belongs.
Task<Table::Step> Table::SplitLeaf(Op& op, const Target& target, NodePtr at, Leaf& leaf,
                                   DeferredWork& deferred) {
  const Division division = co_await Divide(op, target, leaf);
  const Bound bound = Bound::Of(division.separator);
  const size_t node = NodeForNew(at.node(), division.separator);
  const bool is_long = division.separator.size() > kPrefixBytes;
  const uint64_t key_bytes = is_long ? pool::BlockBytes(division.separator.size(), 0) : 0;
  std::optional<FarAddr> key_at;
  if (is_long) key_at = deferred.Take(at.node(), key_bytes);
  const std::optional<FarAddr> made_at = deferred.Take(node, shape().leaf_bytes());
  if (!made_at.has_value() || (is_long && !key_at.has_value())) {
    Unlock(op, at);
    if (made_at.has_value()) deferred.GiveBack(*made_at, node, shape().leaf_bytes());
    if (key_at.has_value()) deferred.GiveBack(*key_at, at.node(), key_bytes);
    co_return Step::kAgain;
  }

  BoundRef ref;
  if (!is_long) ref = BoundRef::Short(bound.text.size());
  std::vector<std::byte> key_block(key_bytes);
  std::vector<fabric::WriteVerb> first;
  if (is_long) {
    ref = BoundRef::InBlock(at.node(), key_at->offset, key_bytes);
    pool::EncodeBlock(key_block, bound.text, "", Hash64(bound.text));
    first.push_back(ForBlock(Unreachable(Write(*key_at, key_block))));
  }
  const NodePtr made = NodePtr::To(node, made_at->offset, 0);
  Leaf right;
  right.header = leaf.header;
  right.header.lock = 0;
  right.header.moves = 0;
  for (size_t slot = 0; slot < shape().span; ++slot) {
    if ((division.leaving >> slot & 1) == 0) continue;
    right.Set(shape(), slot, leaf.Get(shape(), slot));
    leaf.Set(shape(), slot, Entry());
  }
  leaf.header.fence_prefix = bound.prefix;
  leaf.header.fence_ref = ref.word();
  leaf.header.sibling = made.word();
  leaf.header.leaving = division.leaving;
  leaf.header.moves += 1;
  co_await WriteSplit(op, at, leaf, made, right, std::move(first));
  deferred.InsertPivotLater(1, bound, ref, made);
  co_return Step::kAgain;
}

// One trip if both leaves are on one memory node, otherwise two. Whether the lock was still this client's does not matter here:
// who is taken for dead cannot change anything any more, and nobody is told that something was done.
Task<Done> Table::WriteSplit(Op& op, NodePtr at, Leaf& leaf, NodePtr made, Leaf& right,
                             std::vector<fabric::WriteVerb> first) {
  const bool together = at.node() == made.node();
  const auto without_lock = [](const Header& header) {
    return std::as_bytes(std::span(&header, 1)).subspan(kUnlockedOffset);
  };
  Header clean = leaf.header;
  clean.leaving = 0;
  clean.moves += 1;
  const auto right_header = Unreachable(Write(At(made), right.header_bytes()));
  const auto right_lines = Unreachable(Write(At(made) + pool::kLine, right.lines(shape())));
  const auto name = Write(At(at) + kUnlockedOffset, without_lock(leaf.header));
  const auto clear = Write(At(at) + pool::kLine, leaf.lines(shape()));
  const auto rest = Write(At(at) + kUnlockedOffset, without_lock(clean));
  const auto unlock = Cas(At(at) + kLockOffset, LockedBySelf(at), 0);

  if (!together) co_await op.InOrder(right_header, right_lines);
  fabric::Batch trip(op, Order::kInOrder);
  for (const fabric::WriteVerb& write : first) trip.Add(write);
  if (together) trip.Add(right_header);
  if (together) trip.Add(right_lines);
  if (Mutant(kClearedFirst)) trip.Add(clear);
  trip.Add(name);
  trip.Add(clear);
  trip.Add(rest);
  trip.Add(unlock);
  co_await trip;
  co_return Done{};
}

}  // namespace farside::index::chime
