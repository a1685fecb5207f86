#include "index/nessie/walker.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "index/nessie/context.h"
#include "index/nessie/errors.h"
#include "index/nessie/move_log.h"
#include "index/nessie/mutants.h"
#include "index/nessie/searcher.h"
#include "pool/beats.h"

namespace farside::index::nessie {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

namespace {

constexpr size_t kItemsByATrip = fabric::kAnsweredVerbsPerRoundTrip;
constexpr uint64_t kMostRestarts = 64;
constexpr int kMostLooks = 16;
constexpr Nanos kPauseForEntry = std::chrono::microseconds(2);  // a move ends as a rule one trip later

}  // namespace

Task<uint64_t> Walker::ReadRange(Op& op, Partition& part, uint64_t first, uint64_t slots, Range& range,
                                 Counts* counts) {
  const Shape& shape = part.shape();
  const size_t segment = shape.SegmentOf(first);
  const uint64_t end =
      std::min({slots, shape.FirstSlot(segment) + shape.SegmentSlots(segment), first + kSlotsByATrip});
  range.first = first;
  range.slots = end - first;
  co_await op.InOrder(Read(part.SlotAt(first), range.bytes()));
  if (counts != nullptr) {
    counts->unsplit += std::count_if(range.words.begin(), range.words.begin() + range.slots,
                                     [](Word word) { return !word.is_effective(); });
  }
  co_await ReadItemsOf(op, part, range, nullptr);
  co_return range.slots;
}

Task<Done> Walker::ReadItemsOf(Op& op, Partition& part, Range& range, const Range* before) {
  range.used.clear();
  for (uint64_t i = 0; i < range.slots; ++i) {
    const Word word = range.words[i];
    if (word.is_damaged()) co_return BrokenWord(part, range.first + i);
    if (!word.has_item() || (before != nullptr && word == before->words[i])) continue;
    auto used = std::make_unique<Used>();
    used->slot = range.first + i;
    used->word = used->read.word = word;
    range.used.push_back(std::move(used));
  }
  for (size_t begin = 0; begin < range.used.size(); begin += kItemsByATrip) {
    const std::span<std::unique_ptr<Used>> some =
        std::span(range.used).subspan(begin, std::min(kItemsByATrip, range.used.size() - begin));
    std::vector<ItemRead*> reads;
    for (const auto& used : some) reads.push_back(&used->read);
    co_await ReadManyItems(op, part.node(), reads);
    for (const auto& used : some) {
      const Result<Item> item = used->read.Decode();
      if (!item.ok()) co_return item.error();
      used->item = *item;
    }
  }
  co_return Done{};
}

bool Walker::IsHome(const Partition& part, const Used& used) {
  const KeyHash hash(used.item.hash);
  const uint32_t newest = part.directory().newest;
  return used.slot == hash.SlotOf(part.shape(), Candidate::kPrimary, newest) ||
         used.slot == hash.SlotOf(part.shape(), Candidate::kSecondary, newest);
}

// ---- walking -----------------------------------------------------------------------------------------

// Items never change their slots: one that is linked throughout is in the slot, or is what a pending entry
// there replaces. Slots that the table gets meanwhile have only items that were not there when the walk
// began.
Task<Done> Walker::Walk(Op& op, pool::Reach& reach) {
  pool::Beats beats(pool_);
  for (size_t i = 0; i < partitions_.size(); ++i) {
    Partition& part = partitions_[i];
    const Shape& shape = part.shape();
    reach.Mark(part.root(), sizeof(TableRoot));
    co_await part.Refresh(op);
    const Directory directory = part.directory();
    for (size_t segment = 0; segment < directory.newest; ++segment)
      reach.Mark(FarAddr(part.node(), directory.bases[segment]), shape.SegmentBytes(segment));
    Range range;
    for (uint64_t slot = 0; slot < shape.slots(directory.newest);) {
      slot += co_await ReadRange(op, part, slot, shape.slots(directory.newest), range);
      co_await MarkRange(op, part, range, reach);
      if (beats.Due()) co_await beats.Beat(op);
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Walker::MarkRange(Op& op, Partition& part, const Range& range, pool::Reach& reach) {
  for (const auto& used : range.used) {
    const FarAddr block(part.node(), used->word.offset());
    if (used->word.is(Kind::kLive)) {
      reach.MarkBlock(block, used->item.bytes, sizeof(ItemHeader));
      continue;
    }
    if (!part.IsSpare(used->word.offset())) reach.Mark(block, used->item.bytes);
    if (!used->word.is(Kind::kPending) || !used->item.replaced.is(Kind::kLive)) continue;
    const Word replaced = used->item.replaced;
    const uint64_t bytes = co_await BytesOfItem(op, part.node(), replaced);
    reach.MarkBlock(FarAddr(part.node(), replaced.offset()), bytes, sizeof(ItemHeader));
  }
  co_return Done{};
}

// ---- cursors -----------------------------------------------------------------------------------------

// position: partition, slot, moves that were looked up + 1 (0: not begun), how often it started anew. A page
// that is not returned, because of an error, counts as not read: the cursor stays where it was.
Task<bool> Walker::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  Cursor copy = cursor;
  Cursor& next = Mutant(kCursorAdvancesFirst) ? cursor : copy;
  auto& [number, slot, moves, restarts] = next.position;
  const size_t before = page.size();
  while (number < partitions_.size() && page.size() == before) {
    Partition& part = partitions_[number];
    if (part.IsBehind()) co_await part.CatchUp(op);
    if (moves == 0) moves = 1 + co_await CountMoves(op, part);
    if (slot >= part.shape().slots(part.directory().newest)) {
      co_await part.Refresh(op);
      if (slot < part.shape().slots(part.directory().newest)) continue;
      co_await AppendLastMoved(op, part, next, page);
      if (slot == 0) continue;
      slot = moves = 0;
      ++number;
      continue;
    }
    Range range;
    const uint64_t read =
        co_await ReadRange(op, part, slot, part.shape().slots(part.directory().newest), range);
    co_await AppendRange(op, part, range, page);
    slot += read;
    const uint64_t count = co_await AppendChanged(op, part, range, page);
    co_await AppendMoved(op, part, next, count, page);
  }
  cursor = next;
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return page.size() > before;
}

// INVARIANT nessie/12. The words are READ by a trip of their own with the count of moves, so it costs none.
Task<uint64_t> Walker::AppendChanged(Op& op, Partition& part, const Range& range, std::vector<Record>& page) {
  if (Mutant(kRangeReadOnce)) {
    const uint64_t count = co_await CountMoves(op, part);
    co_return count;
  }
  Range again;
  again.first = range.first;
  again.slots = range.slots;
  const auto [count, unused] =
      co_await op.Together(Read<uint64_t>(part.MovesAt()), Read(part.SlotAt(again.first), again.bytes()));
  co_await ReadItemsOf(op, part, again, &range);
  co_await AppendRange(op, part, again, page);
  co_return count;
}

Task<Done> Walker::AppendMoved(Op& op, Partition& part, Cursor& cursor, uint64_t count,
                               std::vector<Record>& page) {
  auto& [number, slot, moves, restarts] = cursor.position;
  const MovedKeys moved = co_await ReadMoves(op, part, moves - 1, count);
  moves = moved.next + 1;
  if (!moved.is_complete) {
    if (++restarts > kMostRestarts) co_return Unsettled();
    slot = 0;
    co_return Done{};
  }
  for (const uint64_t hash : moved.hashes) co_await AppendHash(op, part, hash, page);
  co_return Done{};
}

// INVARIANT nessie/11.
Task<Done> Walker::AppendLastMoved(Op& op, Partition& part, Cursor& cursor, std::vector<Record>& page) {
  auto& [number, slot, moves, restarts] = cursor.position;
  const uint64_t end = co_await CountMoves(op, part);
  co_await AppendMoved(op, part, cursor, end, page);
  for (int looks = 1; slot != 0 && moves - 1 < end && !Mutant(kMovesNotRead); ++looks) {
    if (looks == kMostLooks) {
      if (++restarts > kMostRestarts) co_return Unsettled();
      slot = 0;
      moves = end + 1;
      co_return Done{};
    }
    co_await op.Pause(kPauseForEntry);
    const uint64_t count = co_await CountMoves(op, part);
    co_await AppendMoved(op, part, cursor, count, page);
  }
  co_return Done{};
}

// What both slots say at one moment: their words are the same before and behind the items.
Task<Done> Walker::AppendHash(Op& op, Partition& part, uint64_t hash, std::vector<Record>& page) {
  Look look;
  co_await ReadLook(op, part, KeyHash(hash), look);
  for (int i = 0; i < kMostLooks; ++i) {
    std::vector<std::string> keys;
    for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
      const Word word = look.word(candidate);
      if (!word.has_item() || word.tag() != KeyHash(hash).tag()) continue;
      ItemRead read(word);
      Used used;
      used.word = word;
      used.item = co_await ReadItem(op, part.node(), read);
      if (used.item.hash != hash) continue;
      std::string key = co_await KeyOf(op, part, used);
      keys.push_back(std::move(key));
    }
    Look again;
    co_await ReadLookAgain(op, part, look, again);
    if (SameWords(look, again)) {
      for (const std::string& key : keys) co_await AppendFound(op, part, hash, key, page);
      co_return Done{};
    }
    look = again;
  }
  co_return Unsettled();
}

Task<Done> Walker::AppendRange(Op& op, Partition& part, const Range& range, std::vector<Record>& page) {
  for (const auto& used : range.used) {
    if (used->word.is(Kind::kLive) && IsHome(part, *used)) {
      page.push_back({.key = std::string(used->item.key), .value = std::string(used->item.value)});
    } else {
      std::string key = co_await KeyOf(op, part, *used);
      co_await AppendFound(op, part, used->item.hash, std::move(key), page);
    }
  }
  co_return Done{};
}

Task<Done> Walker::AppendFound(Op& op, Partition& part, uint64_t hash, std::string key,
                               std::vector<Record>& page) {
  std::string value;
  SearchContext context(pool_, op, part, hash, key, value);
  const bool found = co_await SearchKey(context);
  if (found) page.push_back({.key = key, .value = value});
  co_return Done{};
}

// A tombstone may have no key of its own.
Task<std::string> Walker::KeyOf(Op& op, Partition& part, const Used& used) {
  if (!used.word.is(Kind::kPending) || !used.item.key.empty() || !used.item.replaced.is(Kind::kLive))
    co_return std::string(used.item.key);
  ItemRead read(used.item.replaced);
  const Item replaced = co_await ReadItem(op, part.node(), read);
  co_return std::string(replaced.key);
}

// ---- statistics --------------------------------------------------------------------------------------

Task<TableStats> Walker::Stats(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  TableStats stats;
  Counts counts;
  uint64_t growths = 0;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    Partition& part = partitions_[i];
    co_await part.Refresh(op);
    growths = std::max<uint64_t>(growths, part.directory().version - 1);
    co_await AddStats(op, part, stats, counts);
  }
  stats.records = counts.records;
  stats.client_bytes = partitions_.size() * sizeof(Directory);
  const auto slots = static_cast<double>(std::max<uint64_t>(stats.slots, 1));
  const auto records = static_cast<double>(std::max<uint64_t>(stats.records, 1));
  stats.details = {
      {"load", static_cast<double>(stats.records) / slots},
      {"share in secondary slots", static_cast<double>(counts.moved) / records},
      {"share of unsplit slots", static_cast<double>(counts.unsplit) / slots},
      {"growths", static_cast<double>(growths)},
  };
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

Task<Done> Walker::AddStats(Op& op, Partition& part, TableStats& stats, Counts& counts) {
  const Shape& shape = part.shape();
  const uint32_t version = part.directory().version;
  stats.slots += shape.slots(version);
  stats.index_bytes += sizeof(TableRoot);
  for (size_t segment = 0; segment < version; ++segment) stats.index_bytes += shape.SegmentBytes(segment);
  Range range;
  for (uint64_t slot = 0; slot < shape.slots(version);) {
    slot += co_await ReadRange(op, part, slot, shape.slots(version), range, &counts);
    for (const auto& used : range.used) {
      const bool is_record = co_await IsRecord(op, part, *used);
      if (!is_record) continue;
      ++counts.records;
      stats.block_bytes += used->item.bytes;
      const uint64_t primary = KeyHash(used->item.hash).SlotOf(shape, Candidate::kPrimary, 1);
      if ((used->slot & (shape.slots(1) - 1)) != primary) ++counts.moved;
    }
  }
  co_return Done{};
}

Task<bool> Walker::IsRecord(Op& op, Partition& part, const Used& used) {
  if (used.word.is(Kind::kPending)) co_return used.item.replaced.is(Kind::kLive);
  if (!used.word.is(Kind::kLive)) co_return false;
  if (IsHome(part, used) && used.item.moves == 0) co_return true;
  Look look;
  co_await ReadLook(op, part, KeyHash(used.item.hash), look);
  const bool in_primary = look.of(Candidate::kPrimary).Find(used.slot).has_value();
  const Candidate candidate = in_primary ? Candidate::kPrimary : Candidate::kSecondary;
  if (look.of(candidate).effective_step().slot != used.slot) co_return false;
  // The source of this copy is counted, if it stands there still.
  co_return used.item.moves == 0 || look.word(Other(candidate)) != used.item.replaced;
}

}  // namespace farside::index::nessie
