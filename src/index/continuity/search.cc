// Finding a key: one trip for a record in a slot, one more for its block, one more for a group.
#include "base/bytes.h"
#include "index/continuity/errors.h"
#include "index/continuity/mutants.h"
#include "index/continuity/table.h"
#include "index/kit/block_buffer.h"
#include "pool/memory/block.h"

namespace farside::index::continuity {

using fabric::FarAddr;
using fabric::Op;

TableWord Table::FirstTable(const Root& root, uint64_t hash) {
  const Home home = HomeOf(hash, PairsOf(root.shape, root.current.doublings()));
  return root.growing() && home.pair < root.moved ? root.next : root.current;
}

// INVARIANT continuity/7.
Task<TableWord> Table::NextTable(Op& op, Partition& part, TableWord table) {
  for (int i = 0; i < 2; ++i) {
    const Root& root = part.root();
    if (root.growing() && root.current == table) co_return root.next;
    if (root.current.doublings() > table.doublings()) co_return root.current;
    co_await part.Refresh(op);
  }
  co_return DamagedRoot(part.at());
}

// One trip; in a table that grows, one more if the pair was moved.
Task<bool> Table::TrySearch(SearchContext& context) {
  Partition& part = context.part;
  if (part.IsBehind()) co_await part.Refresh(context.op);
  TableWord table = FirstTable(part.root(), context.hash);
  for (int i = 0; i < kMostLooks; ++i) {
    const Home home = HomeOf(context.hash, PairsOf(part.root().shape, table.doublings()));
    const FarAddr pair(part.node(), PairAt(table.offset(), home.pair));
    PairImage image;
    co_await ReadPair(context.op, pair, home.odd ? Part::kOdd : Part::kEven, image);
    if (image.indicator.moved() && !Mutant(kMarkIgnored)) {
      table = co_await NextTable(context.op, part, table);
      continue;
    }
    const uint32_t mine = image.indicator.bits() & part.root().shape.SlotsOf(home.odd);
    for (uint32_t left = mine & ~kGroupBits; left != 0; left &= left - 1) {
      const bool found =
          co_await TakeIfFound(context, pair, image.slots[static_cast<size_t>(std::countr_zero(left))]);
      if (found) co_return true;
    }
    if ((mine & kGroupBits) == 0) co_return false;
    if (image.group == 0) co_return DamagedPair(pair);
    const bool whole = co_await ReadGroup(context.op, pair, image);
    if (!whole) {
      context.op.CountRetry();
      continue;
    }
    for (uint32_t left = mine & kGroupBits; left != 0; left &= left - 1) {
      const bool found =
          co_await TakeIfFound(context, pair, image.slots[static_cast<size_t>(std::countr_zero(left))]);
      if (found) co_return true;
    }
    co_return false;
  }
  co_return Contended();
}

// Whether this slot of a pair is the one of the key; then the value is taken, by a further trip if it stands
// in a block.
Task<bool> Table::TakeIfFound(SearchContext& context, FarAddr pair, const Slot& slot) {
  const std::optional<SlotView> view = DecodeSlot(slot);
  if (!view.has_value()) co_return DamagedPair(pair);
  if (!view->in_block) {
    if (view->key != context.key) co_return false;
    context.value.assign(view->value);
    co_return true;
  }
  if (view->hash != context.hash) co_return false;
  const Record record = co_await ReadRecord(context.op, pair, slot);
  if (record.key != context.key) co_return false;
  context.value.assign(record.value);
  co_return true;
}

Task<Record> Table::ReadRecord(Op& op, FarAddr pair, const Slot& slot) {
  const std::optional<SlotView> view = DecodeSlot(slot);
  if (!view.has_value()) co_return DamagedPair(pair);
  if (!view->in_block) co_return Record{.key = std::string(view->key), .value = std::string(view->value)};
  if (view->bytes == 0 || view->bytes % pool::kLine != 0 || view->bytes > kMostBlockBytes)
    co_return DamagedPair(pair);
  BlockBuffer block;
  co_await ReadBlock(op, FarAddr(pair.node, view->offset), view->bytes, block);
  const Result<pool::BlockView> record = pool::DecodeBlock(block.bytes());
  if (!record.ok()) co_return record.error();
  co_return Record{.key = std::string(record->key), .value = std::string(record->value)};
}

}  // namespace farside::index::continuity
