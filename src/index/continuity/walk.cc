// Looking through the whole table: for cursors, for statistics, for the pool and for fsck. A trip for each
// pair, one more for its group, and one for each block.
#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/errors.h"
#include "index/continuity/mutants.h"
#include "index/continuity/table.h"
#include "pool/beats.h"

namespace farside::index::continuity {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

// A table that grows under a walk doubles it each time.
constexpr int kMostRounds = 32;

Error Damaged(FarAddr pair, std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the pair at {:#x} of node {} of a continuity table {}; run farside fsck",
                           pair.offset, fabric::Index(pair.node), what));
}

}  // namespace

Task<Done> Table::ReadWhole(Op& op, FarAddr pair, PairImage& image) {
  for (int i = 0; i < kMostLooks; ++i) {
    co_await ReadPair(op, pair, Part::kWhole, image);
    if (image.indicator.moved() || (image.indicator.bits() & kGroupBits) == 0) co_return Done{};
    if (image.group == 0) co_return DamagedPair(pair);
    const bool whole = co_await ReadGroup(op, pair, image);
    if (whole) co_return Done{};
    op.CountRetry();
  }
  co_return Contended();
}

Task<std::vector<Table::FoundPair>> Table::ReadPairs(Op& op, Partition& part, uint32_t doublings,
                                                     uint64_t number) {
  // Pairs of a table that have records of one pair of a smaller table: every `step`-th.
  struct Pairs {
    TableWord table;
    uint64_t number = 0;
    uint64_t step = 0;
  };
  if (part.IsBehind()) co_await part.Refresh(op);
  const Shape shape = part.root().shape;
  if (part.root().current.doublings() < doublings) co_return DamagedRoot(part.at());
  std::vector<Pairs> left{{part.root().current, number, PairsOf(shape, doublings)}};
  std::vector<FoundPair> found;
  while (!left.empty()) {
    const Pairs place = left.back();
    left.back().number += place.step;
    if (place.number >= PairsOf(shape, place.table.doublings())) {
      left.pop_back();
      continue;
    }
    FoundPair pair{.at = FarAddr(part.node(), PairAt(place.table.offset(), place.number)),
                   .table = place.table,
                   .number = place.number};
    co_await ReadWhole(op, pair.at, pair.image);
    if (pair.image.indicator.moved()) {
      const TableWord next = co_await NextTable(op, part, place.table);
      left.push_back({next, place.number, PairsOf(shape, place.table.doublings())});
      continue;
    }
    found.push_back(pair);
  }
  co_return std::move(found);
}

std::vector<Slot> Table::SlotsOf(const PairImage& image) {
  std::vector<Slot> slots;
  for (uint32_t left = image.indicator.bits(); left != 0; left &= left - 1)
    slots.push_back(image.slots[static_cast<size_t>(std::countr_zero(left))]);
  return slots;
}

// A handler that has begun to change the pair may be slow, and the pair may be changed again and again: that
// ends no walk.
Task<std::vector<Table::FoundPair>> Table::AwaitPairs(Op& op, Partition& part, uint32_t doublings,
                                                      uint64_t number, pool::Beats& beats) {
  const RetryPolicy policy = RetryPolicySince(pool().known_catalog_changes(), part.node());
  while (true) {
    Result<std::vector<FoundPair>> pairs = co_await ReadPairs(op, part, doublings, number).Outcome();
    if (pairs.ok()) co_return std::move(*pairs);
    co_await policy.AwaitRetryPinned(op, pairs.error(), beats);
  }
}

// An attempt that fails leaves the cursor and the page as they were.
Task<bool> Table::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const uint64_t catalogs = pool().known_catalog_changes();
  const size_t before = page.size();
  const auto attempt = [&] {
    page.resize(before);
    return TryNext(op, cursor, page);
  };
  Result<bool> more = co_await attempt().Outcome();
  if (!more.ok()) {
    const RetryPolicy policy = RetryPolicySince(catalogs, parts_[cursor.position[0]].node());
    more = co_await WithRetries<bool>(op, policy, more.error(), attempt).Outcome();
  }
  if (!more.ok()) {
    page.resize(before);
    co_return more.error();
  }
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return *more;
}

// A page has the records of a pair, as it was at one moment. Records stay in their class of pairs while the
// table grows, and pairs are counted as they were when the cursor came to this node.
// position: node of the table, pair, doublings + 1 (0: it has not come there yet).
Task<bool> Table::TryNext(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool().Begin();
  Cursor next = cursor;
  auto& [number_of_part, number, grown, unused] = next.position;
  bool appended = false;
  while (number_of_part < parts_.size() && !appended) {
    Partition& part = parts_[number_of_part];
    if (part.IsBehind()) co_await part.Refresh(op);
    if (grown == 0) grown = part.root().current.doublings() + 1;
    const auto doublings = static_cast<uint32_t>(grown - 1);
    const std::vector<FoundPair> pairs = co_await ReadPairs(op, part, doublings, number);
    for (const FoundPair& pair : pairs) {
      const std::vector<Slot> slots = SlotsOf(pair.image);
      for (const Slot& slot : slots) {
        Record record = co_await ReadRecord(op, pair.at, slot);
        page.push_back(std::move(record));
        appended = true;
      }
    }
    if (++number >= PairsOf(part.root().shape, doublings)) {
      number = grown = 0;
      ++number_of_part;
    }
  }
  cursor = next;
  co_return appended;
}

Task<TableStats> Table::Stats(Op& op) {
  const pool::PoolClient::Pin pin = pool().Begin();
  pool::Beats beats(pool());
  TableStats stats;
  uint64_t pairs_read = 0;
  uint64_t groups = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Partition& part = parts_[i];
    co_await part.Refresh(op);
    const Root root = part.root();
    const uint64_t count = PairsOf(root.shape, root.current.doublings());
    stats.index_bytes += sizeof(Root) + TableBytes(count);
    for (uint64_t number = 0; number < count; ++number) {
      const std::vector<FoundPair> pairs =
          co_await AwaitPairs(op, part, root.current.doublings(), number, beats);
      for (const FoundPair& pair : pairs) {
        ++pairs_read;
        stats.slots += root.shape.SlotsOfPair();
        if (pair.image.group != 0) ++groups;
        const std::vector<Slot> slots = SlotsOf(pair.image);
        stats.records += slots.size();
        for (const Slot& slot : slots) {
          const std::optional<SlotView> view = DecodeSlot(slot);
          if (!view.has_value()) co_return DamagedPair(pair.at);
          stats.block_bytes += view->in_block ? view->bytes : kSlotBytes;
          if (!view->in_block) stats.index_bytes -= kSlotBytes;  // it holds the record itself
        }
      }
      if (beats.Due()) co_await beats.Beat(op);
    }
  }
  stats.index_bytes += groups * kGroupBytes;
  stats.details = {
      {"load", stats.slots == 0 ? 0 : static_cast<double>(stats.records) / static_cast<double>(stats.slots)},
      {"share of pairs with a group",
       pairs_read == 0 ? 0 : static_cast<double>(groups) / static_cast<double>(pairs_read)}};
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  for (size_t i = 0; i < parts_.size(); ++i) co_await WalkPart(op, parts_[i], reach);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// Whatever is in the table throughout is marked: each pair is read as it was at one moment, and what moves to
// another table meanwhile is followed there. A table that came meanwhile is met by another round.
Task<Done> Table::WalkPart(Op& op, Partition& part, pool::Reach& reach) {
  pool::Beats beats(pool());
  for (int round = 0; round < kMostRounds; ++round) {
    co_await part.Refresh(op);
    const Root root = part.root();
    const auto bytes_of = [&root](TableWord table) {
      return TableBytes(PairsOf(root.shape, table.doublings()));
    };
    reach.Mark(part.at(), sizeof(Root));
    reach.Mark(FarAddr(part.node(), root.current.offset()), bytes_of(root.current));
    if (root.growing()) reach.Mark(FarAddr(part.node(), root.next.offset()), bytes_of(root.next));
    for (uint64_t number = 0; number < PairsOf(root.shape, root.current.doublings()); ++number) {
      const std::vector<FoundPair> pairs =
          co_await AwaitPairs(op, part, root.current.doublings(), number, beats);
      for (const FoundPair& pair : pairs) {
        if (pair.image.indicator.odd()) co_await Settle(op, part, pair);
        if (pair.image.group != 0) reach.Mark(FarAddr(part.node(), pair.image.group), kGroupBytes);
        uint64_t in_slots = 0;
        const std::vector<Slot> slots = SlotsOf(pair.image);
        for (const Slot& slot : slots) {
          const std::optional<SlotView> view = DecodeSlot(slot);
          if (!view.has_value()) co_return DamagedPair(pair.at);
          if (!view->in_block) {
            ++in_slots;
            continue;
          }
          reach.MarkBlock(FarAddr(part.node(), view->offset), view->bytes, 0);
        }
        reach.CountRecords(in_slots);
      }
      if (beats.Due()) co_await beats.Beat(op);
    }
    co_await part.Refresh(op);
    if (part.root().current == root.current && part.root().next == root.next) co_return Done{};
  }
  co_return Outgrown();
}

// One trip. Whatever becomes of it, readers are right; it only spares them a look.
Task<Done> Table::Settle(Op& op, const Partition& part, const FoundPair& pair) {
  if (pool().read_only() || Mutant(kOddNotSettled)) co_return Done{};
  const SettleRequest request{.root = part.at().offset, .table = pair.table.word(), .pair = pair.number};
  static_cast<void>(co_await op.Call(part.node(), kSettleCall, EncodeFixed(request)).Outcome());
  co_return Done{};
}

Task<Done> Table::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool().Begin();
  pool::Beats beats(pool());
  for (size_t i = 0; i < parts_.size(); ++i) {
    Partition& part = parts_[i];
    co_await part.Refresh(op);
    const Root root = part.root();
    for (uint64_t number = 0; number < PairsOf(root.shape, root.current.doublings()); ++number) {
      const std::vector<FoundPair> pairs =
          co_await AwaitPairs(op, part, root.current.doublings(), number, beats);
      for (const FoundPair& pair : pairs) co_await VerifyPair(op, part, pair);
      if (beats.Due()) co_await beats.Beat(op);
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::VerifyPair(Op& op, const Partition& part, const FoundPair& pair) {
  const Shape shape = part.root().shape;
  std::set<std::string, std::less<>> keys;
  if (pair.image.group % pool::kLine != 0) co_return Damaged(pair.at, "names a group that cannot be");
  for (uint32_t left = pair.image.indicator.bits(); left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    const Slot content = pair.image.slots[slot];
    const Record record = co_await ReadRecord(op, pair.at, content);
    const uint64_t hash = Hash64(AsBytes(record.key));
    const std::optional<SlotView> view = DecodeSlot(content);
    const Home home = HomeOf(hash, PairsOf(shape, pair.table.doublings()));
    if (view->in_block && view->hash != hash) co_return Damaged(pair.at, "has a slot with a wrong hash");
    if (home.pair != pair.number || (shape.SlotsOf(home.odd) >> slot & 1) == 0)
      co_return Damaged(pair.at,
                        fmt::format("has the key \"{}\", which belongs elsewhere", Escape(record.key)));
    if (!keys.insert(record.key).second)
      co_return Damaged(pair.at, fmt::format("has the key \"{}\" twice", Escape(record.key)));
  }
  co_return Done{};
}

}  // namespace farside::index::continuity
