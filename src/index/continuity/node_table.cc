#include "index/continuity/node_table.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "index/continuity/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::continuity {
namespace {

Error Damaged(uint64_t root) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the continuity table whose root is at {:#x} is damaged; run farside fsck", root));
}

}  // namespace

Result<NodeTable> NodeTable::Open(fabric::NodeMemory& memory, uint64_t root) {
  NodeTable table(memory, root);
  // A handler that gave up on a line (fabric/46) has left the pair that it was changing. What it had stored
  // is durable, and it stores nothing more, so the bits under the odd sequence count (continuity/6).
  const bool was_left = table.memory_.Load(pool::kHandlerOffset) != 0;
  if (was_left && !Mutant(kHandlerLeftNamed)) table.memory_.Store(pool::kHandlerOffset, 0);
  if (root == 0 || root % pool::kLine != 0 || !table.memory_.Has(root, sizeof(Root))) return Damaged(root);
  table.root_.current = TableWord(table.memory_.Load(root + kCurrentOffset));
  table.root_.next = TableWord(table.memory_.Load(root + kNextOffset));
  table.root_.moved = table.memory_.Load(root + kMovedOffset);
  table.root_.shape = Shape(table.memory_.Load(root + kShapeOffset));
  const Root& loaded = table.root_;
  const auto has = [&table](TableWord word) { return table.HasTable(word.offset(), word.doublings()); };
  if (!loaded.is_sound() || !has(loaded.current) || (loaded.growing() && !has(loaded.next)))
    return Damaged(root);
  return table;
}

bool NodeTable::HasTable(uint64_t offset, uint32_t doublings) const {
  const uint64_t pairs = PairsOf(root_.shape, doublings);
  return pairs <= kMostPairs && memory_.Has(offset, TableBytes(pairs));
}

bool NodeTable::IsBlock(Memory block, uint64_t hash) {
  if (block.bytes > kMostBlockBytes || !memory_.Has(block.offset, block.bytes)) return false;
  const uint64_t sizes = memory_.Load(block.offset);
  return pool::BlockBytes(static_cast<uint32_t>(sizes), sizes >> 32) == block.bytes &&
         memory_.Load(block.offset + offsetof(pool::BlockHeader, hash)) == hash;
}

bool NodeTable::HasKey(Memory block, std::string_view key) {
  return static_cast<uint32_t>(memory_.Load(block.offset)) == key.size() &&
         memory_.LoadBytes(block.offset + sizeof(pool::BlockHeader), key.size()) == key;
}

Status NodeTable::Check() const {
  if (memory_.strayed() || damaged_) return Damaged(root_at_);
  return OkStatus();
}

NodeTable::Pair NodeTable::Load(TableWord table, uint64_t number) {
  Pair pair{.at = PairAt(table.offset(), number), .number = number, .table = table};
  pair.indicator = Indicator(memory_.Load(pair.indicator_at()));
  pair.group = memory_.Load(pair.indicator_at() + kGroupOffset);
  // No bit of a group counts before the pointer to it does (continuity/3).
  const bool has_group_slots = !pair.indicator.moved() && (pair.indicator.bits() & kGroupBits) != 0;
  damaged_ |= has_group_slots && pair.group == 0;
  return pair;
}

NodeTable::Pair NodeTable::PairOf(uint64_t hash) {
  const Pair pair = Load(root_.current, HomeOf(hash, PairsIn(root_.current)).pair);
  if (!pair.indicator.moved() || !growing()) {
    damaged_ |= pair.indicator.moved();
    return pair;
  }
  return Load(root_.next, HomeOf(hash, PairsIn(root_.next)).pair);
}

std::optional<NodeTable::Found> NodeTable::Find(const Pair& pair, uint64_t hash, std::string_view key) {
  uint32_t left = pair.indicator.bits() & root_.shape.SlotsOf(IsOdd(hash));
  for (; left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    const Found found{.slot = slot, .content = memory_.LoadSlot(pair.SlotAt(slot))};
    const std::optional<SlotView> view = DecodeSlot(found.content);
    if (!view.has_value()) {
      damaged_ = true;
      continue;
    }
    if (!view->in_block && view->key == key) return found;
    if (!view->in_block || view->hash != hash) continue;
    const Memory block{view->offset, view->bytes};
    if (!IsBlock(block, hash)) {
      damaged_ = true;
    } else if (HasKey(block, key)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> NodeTable::FreeSlot(const Pair& pair, bool odd) const {
  const uint32_t free = root_.shape.SlotsOf(odd) & ~pair.indicator.bits();
  const uint32_t in_segment = free & ~kGroupBits;
  if (in_segment != 0)
    return static_cast<uint32_t>(odd ? 31 - std::countl_zero(in_segment) : std::countr_zero(in_segment));
  if (pair.group == 0 || free == 0) return std::nullopt;
  return static_cast<uint32_t>(std::countr_zero(free));
}

// Two flushes to set a slot, one to clear one; one more for a group. What is stored as a step of its own is
// visible as one (fabric/22).
void NodeTable::Apply(Pair& pair, const PairChange& change) {
  uint32_t bits = pair.indicator.bits();
  if (change.clear.has_value()) bits &= ~(uint32_t{1} << *change.clear);
  if (change.set.has_value()) bits |= uint32_t{1} << *change.set;
  const uint64_t at = pair.indicator_at();
  const Indicator before = pair.indicator;

  // INVARIANT continuity/1.
  if (!Mutant(kPairNotNamed)) memory_.Store(pool::kHandlerOffset, at);
  pair.indicator = Mutant(kSequenceNotOdd) ? before : before.Begun();
  memory_.Store(at, pair.indicator.word());

  if (change.group != 0) {
    pair.group = change.group;
    if (!Mutant(kGroupAfterBits)) {
      memory_.Store(at + kGroupOffset, pair.group);
      if (!Mutant(kGroupNotFlushed)) memory_.Flush(at, sizeof(IndicatorBlock));
    }
  }
  if (Mutant(kBitsBeforeRecord)) {
    memory_.Store(at, pair.indicator.WithBits(bits).word());
    memory_.Flush(at, sizeof(uint64_t));
    memory_.Drain();
  }
  if (change.set.has_value()) {
    memory_.StoreSlot(pair.SlotAt(*change.set), change.content);
    if (!Mutant(kSlotNotFlushed)) memory_.Flush(pair.SlotAt(*change.set), kSlotBytes);
    if (!Mutant(kSlotNotDrained)) memory_.Drain();  // INVARIANT continuity/3
  }
  if (Mutant(kUnnamedTooEarly)) memory_.Store(pool::kHandlerOffset, 0);
  // The new bits under the odd sequence; durable before the even one (continuity/3).
  pair.indicator = (Mutant(kEvenBeforeDurable) ? pair.indicator.Ended() : pair.indicator).WithBits(bits);
  memory_.Store(at, pair.indicator.word());
  if (!Mutant(kBitsNotFlushed)) memory_.Flush(at, sizeof(uint64_t));
  if (!Mutant(kBitsNotDrained)) memory_.Drain();
  if (change.group != 0 && Mutant(kGroupAfterBits)) {
    memory_.Store(at + kGroupOffset, pair.group);
    memory_.Flush(at, sizeof(IndicatorBlock));
    memory_.Drain();
  }
  if (pair.indicator.odd()) {
    pair.indicator = pair.indicator.Ended();
    memory_.Store(at, pair.indicator.word());
  }
  memory_.Store(pool::kHandlerOffset, 0);
}

// No other handler runs, so an odd sequence was left, and the bits under it are durable (continuity/6). The
// even one is not made so: after another cut it may be odd again.
void NodeTable::Settle(TableWord table, uint64_t number) {
  if (table != root_.current && !(growing() && table == root_.next)) return;
  if (number >= PairsIn(table)) return;
  const Pair pair = Load(table, number);
  if (Check().ok() && pair.indicator.odd()) memory_.Store(pair.indicator_at(), pair.indicator.Ended().word());
}

bool NodeTable::MayHaveGroup(const Pair& pair) {
  if (pair.group != 0 || root_.shape.every() == 0) return false;
  return memory_.Load(pair.table.offset()) <
         PairsIn(pair.table) / root_.shape.every() + (PairsIn(pair.table) % root_.shape.every() != 0 ? 1 : 0);
}

// Durable before the group is linked, so that after a power cut there are never more than the count says.
void NodeTable::CountGroup(TableWord table) {
  memory_.Store(table.offset(), memory_.Load(table.offset()) + 1);
  if (!Mutant(kCountNotFlushed)) memory_.Flush(table.offset(), sizeof(uint64_t));
  if (!Mutant(kCountNotDrained)) memory_.Drain();
}

}  // namespace farside::index::continuity
