#include "index/sephash/walker.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "index/kit/block_buffer.h"
#include "index/sephash/errors.h"
#include "index/sephash/mutants.h"
#include "pool/beats.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Order;
using fabric::Read;

namespace {

// Records of a page of a cursor, about.
constexpr uint64_t kRecordsOfAPage = 128;
// Blocks that are read by one trip.
constexpr size_t kBlocksOfATrip = fabric::kAnsweredVerbsPerRoundTrip;

uint64_t Reversed(uint64_t bits) {
  uint64_t reversed = 0;
  for (int i = 0; i < 64; ++i) reversed |= (bits >> i & 1) << (63 - i);
  return reversed;
}

}  // namespace

std::optional<uint64_t> NextSuffix(uint64_t suffix, uint32_t depth) {
  const uint64_t next = Reversed(suffix | ~LowBits(depth)) + 1;
  if (next == 0) return std::nullopt;
  return Reversed(next);
}

Task<Done> Walker::ReadWhole(Access at, uint64_t suffix, Whole& whole) {
  for (int step = 0; step < Directory::kMostSteps; ++step) {
    Segment& segment = at.directory.Find(suffix);
    co_await reader_.ReadLook(at.op, segment, at.shape().entries, whole.look);
    if (!whole.look.Covers(suffix)) {
      co_await at.directory.Follow(at.op, segment, whole.look.meta(), suffix,
                                   /*completes=*/Mutant(kWalkCompletes));
      continue;
    }
    whole.segment = &segment;
    whole.main = co_await reader_.ReadMain(at.op, segment, whole.look.meta());
    whole.merged = co_await Resolve(at, whole.look, whole.main.entries);
    co_return Done{};
  }
  co_return Outrun();
}

Task<uint64_t> Walker::BytesOfBlock(Access at, Entry entry) {
  if (entry.bytes() != 0) co_return entry.bytes();
  std::array<std::byte, pool::kLine> line;
  co_await at.op.InOrder(ForBlock(Read(FarAddr(at.node(), entry.offset()), line)));
  const Result<uint64_t> bytes = pool::BlockBytesFromHeader(line);
  if (!bytes.ok()) co_return bytes.error();
  co_return *bytes;
}

// ---- walking -----------------------------------------------------------------------------------------

Task<Done> Walker::Walk(Op& op, pool::Reach& reach) {
  pool::Beats beats(pool_);
  for (size_t i = 0; i < directories_.size(); ++i) {
    const Access at{op, directories_[i]};
    co_await WalkDirectory(at, reach);
    if (beats.Due()) co_await beats.Beat(op);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Walker::WalkDirectory(Access at, pool::Reach& reach) {
  if (!at.directory.known()) co_await at.directory.Load(at.op);
  const Root root = co_await at.directory.ReadRoot(at.op);
  reach.Mark(at.directory.root(), sizeof(Root));
  for (size_t part = 0; part < kMostParts && root.parts[part] != 0; ++part)
    reach.Mark(FarAddr(at.node(), root.parts[part]), at.shape().PartBytes(part));
  // A spare may become the MainSegment of a segment, and the other way round, while the walk is under way: so
  // they are looked for before the segments, and after them, and what is no MainSegment then is a spare. The
  // caller's pin keeps a MainSegment that became a spare from becoming another one.
  std::vector<Spare> spares;
  co_await FindSpares(at, spares);
  std::set<uint64_t> mains;
  pool::Beats beats(pool_);
  std::optional<uint64_t> suffix = 0;
  while (suffix.has_value()) {
    Whole whole;
    co_await ReadWhole(at, *suffix, whole);
    mains.insert(whole.look.meta().main());
    co_await WalkSegment(at, whole, reach);
    if (beats.Due()) co_await beats.Beat(at.op);
    suffix = NextSuffix(*suffix, whole.look.depth());
  }
  co_await FindSpares(at, spares);
  for (const Spare& spare : spares) {
    if (mains.contains(spare.offset) || Mutant(kWalkWithoutSpare)) continue;
    reach.Mark(FarAddr(at.node(), spare.offset), at.shape().HeadBytes(spare.pages.size()));
    MarkPages(at, spare.pages, reach);
  }
  co_return Done{};
}

// A client that has taken a spare may be writing it: the numbers of the pages are the same in the new head,
// and stand at the same place.
Task<Done> Walker::FindSpares(Access at, std::vector<Spare>& spares) {
  const Root root = co_await at.directory.ReadRoot(at.op);
  for (const SpareWord& word : root.spares) {
    const auto is_known = [&word](const Spare& spare) { return spare.offset == word.offset(); };
    if (word.offset() == 0 || std::any_of(spares.begin(), spares.end(), is_known)) continue;
    Spare spare{.offset = word.offset(), .pages = std::vector<uint32_t>(Shape::kUsualPages)};
    const FarAddr numbers(at.node(), spare.offset + at.shape().NumbersOffset(Shape::kUsualPages));
    co_await at.op.InOrder(Read(numbers, std::as_writable_bytes(std::span(spare.pages))));
    spares.push_back(std::move(spare));
  }
  co_return Done{};
}

void Walker::MarkPages(const Access& at, const std::vector<uint32_t>& pages, pool::Reach& reach) {
  for (const uint32_t page : pages)
    reach.Mark(FarAddr(at.node(), page * at.shape().page_bytes()), at.shape().page_bytes());
}

// INVARIANT sephash/3: what slots name, and no entry, stands in the lists of what was dropped.
Task<Done> Walker::WalkSegment(Access at, const Whole& whole, pool::Reach& reach) {
  reach.Mark(whole.segment->at, at.shape().segment_bytes());
  const FarAddr main = SegmentReader::MainOf(*whole.segment, whole.look.meta());
  reach.Mark(main, at.shape().HeadBytes(whole.main.pages.size()));
  MarkPages(at, whole.main.pages, reach);
  for (const Entry& entry : whole.merged.entries) {
    const uint64_t bytes = co_await BytesOfBlock(at, entry);
    reach.MarkBlock(FarAddr(at.node(), entry.offset()), bytes, 0);
  }
  for (const auto* list : {&whole.main.dropped, &whole.merged.dropped, &whole.merged.replaced}) {
    if (list == &whole.main.dropped && Mutant(kWalkWithoutDropped)) continue;
    for (const DroppedBlock& block : *list) reach.Mark(FarAddr(at.node(), block.offset()), block.bytes());
  }
  co_return Done{};
}

// ---- cursors -----------------------------------------------------------------------------------------

// position: node, suffix, fingerprint. A page has the records of some fingerprints of a segment. If the
// segment is split meanwhile, its sibling comes later, from its first fingerprint on.
Task<bool> Walker::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  auto& [number, suffix, fp, unused] = cursor.position;
  const size_t before = page.size();
  while (number < directories_.size() && page.size() == before) {
    const Access at{op, directories_[number]};
    if (!at.directory.known()) co_await at.directory.Load(op);
    Whole whole;
    co_await ReadWhole(at, suffix, whole);
    const std::vector<Entry>& all = whole.merged.entries;
    const uint64_t step = kFingerprints * kRecordsOfAPage / std::max<uint64_t>(all.size(), 1) + 1;
    const uint64_t end = std::min<uint64_t>(fp + step, kFingerprints);
    std::vector<Entry> some;
    for (const Entry& entry : all) {
      if (entry.fp() >= fp && entry.fp() < end) some.push_back(entry);
    }
    co_await AppendRecords(at, std::move(some), page);
    fp = end;
    if (fp < kFingerprints) continue;
    const uint32_t depth = Mutant(kCursorSkipsSibling) ? whole.segment->born : whole.look.depth();
    const std::optional<uint64_t> next = NextSuffix(suffix, depth);
    number += next.has_value() ? 0 : 1;
    suffix = next.value_or(0);
    fp = 0;
  }
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return page.size() > before;
}

Task<Done> Walker::AppendRecords(Access at, std::vector<Entry> entries, std::vector<Record>& page) {
  for (size_t first = 0; first < entries.size(); first += kBlocksOfATrip) {
    const size_t count = std::min(kBlocksOfATrip, entries.size() - first);
    std::vector<BlockBuffer> blocks(count);
    fabric::Batch reads(at.op, Order::kTogether);
    for (size_t i = 0; i < count; ++i) {
      const Entry entry = entries[first + i];
      if (entry.bytes() != 0)
        reads.Add(ForBlock(Read(FarAddr(at.node(), entry.offset()), blocks[i].Resize(entry.bytes()))));
    }
    co_await reads;
    for (size_t i = 0; i < count; ++i) {
      const Entry entry = entries[first + i];
      if (entry.bytes() == 0) co_await ReadBlock(at.op, FarAddr(at.node(), entry.offset()), 0, blocks[i]);
      const Result<pool::BlockView> view = pool::DecodeBlock(blocks[i].bytes());
      if (!view.ok()) co_return view.error();
      page.push_back({.key = std::string(view->key), .value = std::string(view->value)});
    }
  }
  co_return Done{};
}

// ---- statistics --------------------------------------------------------------------------------------

struct Walker::Totals {
  uint64_t segments = 0;
  uint64_t depth = 0;
  uint64_t merges = 0;     // of all rounds that are over, splits included
  uint64_t in_round = 0;   // entries of CurSegments
  uint64_t in_main = 0;    // entries of MainSegments
  uint64_t slots = 0;      // that both kinds have room for
  uint64_t allocated = 0;  // bytes of both kinds, as the pool rounds them up
  uint64_t directory_bytes = 0;
  uint64_t spare_bytes = 0;
  uint64_t naive_bytes = 0;  // what FPTables take in a client, in either form
  uint64_t points_bytes = 0;
};

uint64_t Walker::Allocated(fabric::NodeId node, uint64_t bytes) {
  const pool::SizeClasses& classes = pool_.allocator(node).carving().classes();
  if (bytes <= classes.largest()) return classes.shape(classes.ClassOf(bytes)).block_bytes;
  return classes.ChunksOf(bytes) * classes.chunk_bytes();
}

Task<TableStats> Walker::Stats(Op& op, const MergeCounts& own) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  TableStats stats;
  Totals totals;
  for (size_t i = 0; i < directories_.size(); ++i) {
    const Access at{op, directories_[i]};
    co_await AddStats(at, totals, stats);
    stats.client_bytes += directories_[i].bytes();
  }
  stats.slots = totals.slots;
  stats.index_bytes = totals.allocated + totals.directory_bytes + totals.spare_bytes;
  const auto slots = static_cast<double>(std::max<uint64_t>(stats.slots, 1));
  stats.details = {
      {"segments", static_cast<double>(totals.segments)},
      {"depth", static_cast<double>(totals.depth)},
      {"merges", static_cast<double>(totals.merges)},
      {"entries of CurSegments", static_cast<double>(totals.in_round)},
      {"entries of MainSegments", static_cast<double>(totals.in_main)},
      {"load", static_cast<double>(stats.records) / slots},
      {"segment bytes as allocated", static_cast<double>(totals.allocated)},
      {"directory bytes", static_cast<double>(totals.directory_bytes)},
      {"naive FPTable bytes", static_cast<double>(totals.naive_bytes)},
      {"record point FPTable bytes", static_cast<double>(totals.points_bytes)},
      {"merges by this client", static_cast<double>(own.merges)},
      {"merges lost by this client", static_cast<double>(own.lost)},
      {"seconds in merges by this client", std::chrono::duration<double>(own.time).count()},
  };
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

Task<Done> Walker::AddStats(Access at, Totals& totals, TableStats& stats) {
  if (!at.directory.known()) co_await at.directory.Load(at.op);
  const Root root = co_await at.directory.ReadRoot(at.op);
  totals.directory_bytes += sizeof(Root);
  for (size_t part = 0; part < kMostParts && root.parts[part] != 0; ++part)
    totals.directory_bytes += at.shape().PartBytes(part);
  for (const SpareWord& spare : root.spares) {
    if (spare.offset() != 0) totals.spare_bytes += at.shape().MainBytes(Shape::kUsualPages);
  }
  std::optional<uint64_t> suffix = 0;
  while (suffix.has_value()) {
    Whole whole;
    co_await ReadWhole(at, *suffix, whole);
    AddSegment(at, whole, totals);
    stats.records += whole.merged.entries.size();
    for (const Entry& entry : whole.merged.entries) {
      const uint64_t block = co_await BytesOfBlock(at, entry);
      stats.block_bytes += block;
    }
    suffix = NextSuffix(*suffix, whole.look.depth());
  }
  co_return Done{};
}

void Walker::AddSegment(const Access& at, const Whole& whole, Totals& totals) {
  ++totals.segments;
  totals.depth = std::max<uint64_t>(totals.depth, whole.look.depth());
  totals.merges += whole.main.merges - 1;  // a new segment begins with 1
  totals.in_round += whole.look.Used();
  totals.in_main += whole.main.entries.size();
  const Shape& shape = at.shape();
  const uint64_t pages = whole.main.pages.size();
  totals.slots += shape.entries + pages * shape.page_words();
  totals.allocated += Allocated(at.node(), shape.segment_bytes()) +
                      Allocated(at.node(), shape.HeadBytes(pages)) +
                      pages * Allocated(at.node(), shape.page_bytes());
  const Starts starts = StartsOf(whole.main.entries);
  const auto entries = static_cast<uint32_t>(whole.main.entries.size());
  for (auto& [kind, sum] : {std::pair{FpTableKind::kNaive, &totals.naive_bytes},
                            std::pair{FpTableKind::kPoints, &totals.points_bytes}})
    *sum += sizeof(FpTable) + FpTable(kind, starts, entries).heap_bytes();
}

}  // namespace farside::index::sephash
