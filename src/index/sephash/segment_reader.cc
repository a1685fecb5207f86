#include "index/sephash/segment_reader.h"

#include <algorithm>
#include <cstring>

#include "index/sephash/errors.h"
#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::Op;
using fabric::Read;

namespace {

// READs that show entries of several rounds have met a merge each. One that shows the same meta word so often
// has not: the segment is damaged.
constexpr int kSameUntilDamaged = 16;
constexpr int kMostReads = 1000;

std::span<std::byte> BytesOf(Look& look, uint32_t slots) {
  look.sampled = slots;
  const std::span<std::byte> image = std::as_writable_bytes(std::span(&look.image, 1));
  return image.first(sizeof(SegmentHeader) + slots * sizeof(Entry));
}

}  // namespace

// ---- CurSegments -------------------------------------------------------------------------------------

Status SegmentReader::Check(const Segment& segment, const SegmentHeader& header) const {
  if (header.suffix != segment.suffix)
    return DamagedSegment(segment.at, "has another suffix than the directory says");
  if (header.meta.depth() < segment.born || header.meta.depth() > options_.shape.most_depth())
    return DamagedSegment(segment.at, "has a depth that cannot be");
  return OkStatus();
}

// INVARIANT sephash/1. A commit by another operation of this client, posted since this READ was, may be the
// second one within it: then it does not count.
Task<Done> SegmentReader::ReadLook(Op& op, const Segment& segment, uint32_t slots, Look& look,
                                   const fabric::ReadIntoVerb* along) {
  MetaWord last;
  int same = 0;
  for (int attempt = 0; attempt < kMostReads; ++attempt) {
    const uint64_t commits = segment.commits;
    if (along == nullptr) {
      co_await op.InOrder(Read(segment.at, BytesOf(look, slots)));
    } else {
      co_await op.Together(Read(segment.at, BytesOf(look, slots)), *along);
    }
    const bool one_round = look.IsOfOneRound() || Mutant(kTornLookTaken);
    if (one_round && (segment.commits == commits || Mutant(kOwnCommitsIgnored))) {
      const Status sound = Check(segment, look.image.header);
      if (!sound.ok()) co_return sound.error();
      co_return Done{};
    }
    same = !one_round && look.meta() == last ? same + 1 : 0;
    last = look.meta();
    if (same == kSameUntilDamaged) co_return DamagedSegment(segment.at, "has entries of several rounds");
    op.CountRetry();
  }
  co_return Outrun();
}

uint32_t SegmentReader::Window(const Segment& segment) const {
  const uint32_t all = options_.shape.entries;
  if (options_.window == 0) return all;
  return std::min(all, segment.free_slot + options_.window);
}

// ---- MainSegments ------------------------------------------------------------------------------------

void SegmentReader::Remember(Segment& segment, uint64_t main, uint64_t merges, const Starts& starts,
                             uint32_t entries) {
  // Another operation of this client may have learned of a later one meanwhile.
  if (segment.main != 0 && merges < segment.merges) return;
  segment.main = main;
  segment.merges = merges;
  segment.fp_table = FpTable(options_.fp_table, starts, entries);
}

bool SegmentReader::CanBe(const Segment& segment, MetaWord meta, uint64_t bytes) const {
  const uint64_t region = pool_.member(segment.at.node).geometry().region_bytes;
  const bool as_said = meta.main_bytes() == 0 || meta.main_bytes() == bytes;
  return as_said && meta.main() != 0 && bytes <= region && meta.main() <= region - bytes;
}

Task<MainHead> SegmentReader::ReadHead(Op& op, Segment& segment, MetaWord meta) {
  const FarAddr at = MainOf(segment, meta);
  const bool narrow = meta.main_bytes() != 0 && meta.main_bytes() < EntriesOffset(0xffff) + 8 * 0xffff;
  std::vector<std::byte> bytes(narrow ? EntriesOffset(0) : EntriesOffset(~uint32_t{0}));
  co_await op.InOrder(Read(at, bytes));
  MainHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!CanBe(segment, meta, header.bytes) || MainBytes(header.entries, header.dropped) > header.bytes)
    co_return DamagedMain(at, "has a size that cannot be");
  const Result<Starts> starts = DecodeStarts(bytes, at);
  if (!starts.ok()) co_return starts.error();
  Remember(segment, at.offset, header.merges, *starts, header.entries);
  MainHead head{.table = FpTable(options_.fp_table, *starts, header.entries), .filter = {}};
  std::memcpy(head.filter.data(), bytes.data() + kFilterOffset, sizeof head.filter);
  co_return std::move(head);
}

Task<Done> SegmentReader::ReadRange(Op& op, FarAddr main, const FpTable& table, uint8_t fp,
                                    MainRange& range) {
  const std::span<std::byte> into = range.Resize(table.Predict(fp));
  if (!into.empty()) {
    const FarAddr first = main + EntriesOffset(table.entries()) + range.range().first * sizeof(Entry);
    co_await op.InOrder(Read(first, into));
  }
  co_await CompleteRange(op, main, table.entries(), fp, range);
  co_return Done{};
}

Task<Done> SegmentReader::CompleteRange(Op& op, FarAddr main, uint32_t all, uint8_t fp, MainRange& range) {
  uint32_t more = std::max<uint32_t>(all / kFingerprints, 8);
  while (!range.HasAllOf(fp, all)) {
    EntryRange wider = range.range();
    wider.first -= std::min(wider.first, more);
    wider.end = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{wider.end} + more, all));
    more = more < all ? more * 4 : more;
    op.CountRetry();
    const std::span<std::byte> into = range.Resize(wider);
    co_await op.InOrder(Read(main + EntriesOffset(all) + wider.first * sizeof(Entry), into));
  }
  co_return Done{};
}

// ---- views -------------------------------------------------------------------------------------------

// INVARIANT sephash/5: the look names the MainSegment, and READs keep their order: whatever the READs behind
// the look show is of the MainSegment that was there then, which the pin keeps. The count of merges tells
// whether that is the one that this client remembers.
Task<Done> SegmentReader::ReadView(Op& op, Segment& segment, uint8_t fp, View& view) {
  Look& look = view.look;
  const uint32_t slots = options_.shape.entries;
  const bool together = segment.main != 0 && op.client().orders_reads();
  if (together) {
    const uint64_t main = segment.main;
    const uint64_t merges = segment.merges;
    const uint64_t commits = segment.commits;
    const uint32_t entries = segment.fp_table.entries();
    const std::span<std::byte> into = view.main.Resize(segment.fp_table.Predict(fp));
    const FarAddr main_at(segment.at.node, main);
    const FarAddr first = main_at + EntriesOffset(entries) + view.main.range().first * sizeof(Entry);
    auto [read, merges_there, range_read] = co_await op.InOrder(Read(segment.at, BytesOf(look, slots)),
                                                                Read<uint64_t>(main_at), Read(first, into));
    const bool one_round = look.IsOfOneRound() || Mutant(kTornLookTaken);
    const bool valid = one_round && (segment.commits == commits || Mutant(kOwnCommitsIgnored));
    if (valid) {
      const Status sound = Check(segment, look.image.header);
      if (!sound.ok()) co_return sound.error();
    }
    const bool same_main = look.meta().main() == main && (merges_there == merges || Mutant(kAddressIsName));
    if (valid && same_main) {
      co_await CompleteRange(op, main_at, entries, fp, view.main);
      co_return Done{};
    }
    if (!valid) {
      op.CountRetry();
      co_await ReadLook(op, segment, slots, look);
    }
  } else {
    co_await ReadLook(op, segment, slots, look);
  }
  const MainHead head = co_await ReadHead(op, segment, look.meta());
  co_await ReadRange(op, MainOf(segment, look.meta()), head.table, fp, view.main);
  co_return Done{};
}

Task<MainContent> SegmentReader::ReadMain(Op& op, const Segment& segment, MetaWord meta) {
  const FarAddr at = MainOf(segment, meta);
  uint64_t bytes = meta.main_bytes();
  if (bytes == 0) {
    const MainHeader header = co_await op.InOrder(Read<MainHeader>(at));
    bytes = header.bytes;
  }
  if (!CanBe(segment, meta, bytes)) co_return DamagedMain(at, "has a size that cannot be");
  std::vector<std::byte> image(bytes);
  co_await op.InOrder(Read(at, image));
  Result<MainContent> content = DecodeMain(image, at, segment.at.offset);
  if (!content.ok()) co_return content.error();
  co_return std::move(*content);
}

}  // namespace farside::index::sephash
