#include "index/sephash/segment_reader.h"

#include <algorithm>
#include <utility>

#include "index/sephash/errors.h"
#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Order;
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

Status SegmentReader::CheckHeader(const Segment& segment, const SegmentHeader& header) const {
  if (header.suffix != segment.suffix)
    return DamagedSegment(segment.at, "has another suffix than the directory says");
  if (header.meta.depth() < segment.born || header.meta.depth() > options_.shape.most_depth())
    return DamagedSegment(segment.at, "has a depth that cannot be");
  if (!CanBe(segment, header.meta))
    return DamagedSegment(segment.at, "names a MainSegment where none can be");
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
      const Status sound = CheckHeader(segment, look.image.header);
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

// ---- MainSegments ------------------------------------------------------------------------------------

bool SegmentReader::CanBe(const Segment& segment, MetaWord meta) const {
  const pool::Geometry& geometry = pool_.member(segment.at.node).geometry();
  const uint64_t region = geometry.region_bytes;
  const uint64_t bytes = options_.shape.HeadBytes(meta.pages());
  return meta.main() >= geometry.first_chunk() && meta.pages() * options_.shape.page_bytes() <= region &&
         bytes <= region && meta.main() <= region - bytes;
}

Task<MainHead> SegmentReader::ReadHead(Op& op, const Segment& segment, MetaWord meta) {
  const FarAddr at = MainOf(segment, meta);
  if (!CanBe(segment, meta)) co_return DamagedMain(at, "is where no MainSegment can be");
  std::vector<std::byte> bytes(options_.shape.HeadBytes(meta.pages()));
  co_await op.InOrder(Read(at, bytes));
  Result<MainHead> head = DecodeHead(options_.shape, bytes, at, segment.at.offset);
  if (!head.ok()) co_return head.error();
  if (head->pages.size() != meta.pages()) co_return DamagedMain(at, "has another number of pages");
  co_return std::move(*head);
}

Task<MainHead> SegmentReader::ReadSpare(Op& op, FarAddr at) {
  std::vector<std::byte> bytes(options_.shape.HeadBytes(Shape::kUsualPages));
  co_await op.InOrder(Read(at, bytes));
  Result<MainHead> head = DecodeHead(options_.shape, bytes, at, std::nullopt);
  if (!head.ok()) co_return head.error();
  co_return std::move(*head);
}

Task<Done> SegmentReader::ReadPages(Op& op, NodeId node, std::vector<uint32_t> pages,
                                    std::span<std::byte> into, std::optional<fabric::ReadIntoVerb> along) {
  const uint64_t bytes = options_.shape.page_bytes();
  size_t read = 0;
  while (read < pages.size() || along.has_value()) {
    fabric::Batch reads(op, Order::kTogether);
    if (along.has_value()) reads.Add(*along);
    along.reset();
    for (; read < pages.size() && reads.size() < fabric::kAnsweredVerbsPerRoundTrip; ++read)
      reads.Add(Read(FarAddr(node, PageOffset(pages[read])), into.subspan(read * bytes, bytes)));
    co_await reads;
  }
  co_return Done{};
}

// One trip for the head, one for the pages; one for both if this client remembers where the pages are.
Task<MainContent> SegmentReader::ReadMain(Op& op, const Segment& segment, MetaWord meta) {
  const FarAddr at = MainOf(segment, meta);
  if (!CanBe(segment, meta)) co_return DamagedMain(at, "is where no MainSegment can be");
  std::vector<std::byte> head_bytes(options_.shape.HeadBytes(meta.pages()));
  std::vector<std::byte> pages(meta.pages() * options_.shape.page_bytes());
  std::vector<uint32_t> guess;
  if (segment.main != nullptr && segment.main->at == at && segment.main->pages.size() == meta.pages())
    guess = segment.main->pages;
  co_await ReadPages(op, at.node, guess, pages, Read(at, head_bytes));
  Result<MainHead> head = DecodeHead(options_.shape, head_bytes, at, segment.at.offset);
  if (!head.ok()) co_return head.error();
  if (head->pages.size() != meta.pages()) co_return DamagedMain(at, "has another number of pages");
  if (head->pages != guess) co_await ReadPages(op, at.node, head->pages, pages, std::nullopt);
  Result<MainContent> content = DecodeMain(*head, pages, at);
  if (!content.ok()) co_return content.error();
  co_return std::move(*content);
}

std::shared_ptr<const KnownMain> SegmentReader::Remember(Segment& segment, FarAddr at, const MainHead& head) {
  auto known = std::make_shared<const KnownMain>(
      KnownMain{.at = at,
                .merges = head.merges,
                .table = FpTable(options_.fp_table, head.starts, head.entries),
                .pages = head.pages});
  // Another operation of this client may have learned of a later one meanwhile.
  if (segment.main == nullptr || segment.main->merges <= head.merges) segment.main = known;
  return known;
}

size_t SegmentReader::Pieces(EntryRange range) const {
  const uint64_t words = options_.shape.page_words();
  return range.size() == 0 ? 0 : (range.end - 1) / words - range.first / words + 1;
}

// A range may stand in more pages than a trip can read.
Task<Done> SegmentReader::ReadPieces(Op& op, const KnownMain& main, MainRange& range) {
  std::vector<fabric::ReadIntoVerb> pieces;
  ForEachPiece(main, range,
               [&pieces](FarAddr at, std::span<std::byte> into) { pieces.push_back(Read(at, into)); });
  for (size_t first = 0; first < pieces.size(); first += fabric::kAnsweredVerbsPerRoundTrip) {
    const size_t end = std::min(pieces.size(), first + fabric::kAnsweredVerbsPerRoundTrip);
    fabric::Batch reads(op, Order::kTogether);
    for (size_t i = first; i < end; ++i) reads.Add(pieces[i]);
    co_await reads;
  }
  co_return Done{};
}

Task<Done> SegmentReader::ReadRange(Op& op, const KnownMain& main, uint8_t fp, MainRange& range) {
  range.Resize(main.table.Predict(fp));
  co_await ReadPieces(op, main, range);
  co_await CompleteRange(op, main, fp, range);
  co_return Done{};
}

Task<Done> SegmentReader::CompleteRange(Op& op, const KnownMain& main, uint8_t fp, MainRange& range) {
  const uint32_t all = main.table.entries();
  uint32_t more = std::max<uint32_t>(all / kFingerprints, 8);
  while (!range.HasAllOf(fp, all)) {
    EntryRange wider = range.range();
    wider.first -= std::min(wider.first, more);
    wider.end = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{wider.end} + more, all));
    more = more < all ? more * 4 : more;
    op.CountRetry();
    range.Resize(wider);
    co_await ReadPieces(op, main, range);
  }
  co_return Done{};
}

// ---- views -------------------------------------------------------------------------------------------

Task<Done> SegmentReader::ReadView(Op& op, Segment& segment, uint8_t fp, View& view) {
  Valid valid = Valid::kNothing;
  const std::shared_ptr<const KnownMain> before = segment.main;
  if (before != nullptr && !stale_.Expects()) valid = co_await TryReadView(op, segment, fp, view);
  if (valid == Valid::kView) co_return Done{};
  if (valid == Valid::kNothing) co_await ReadLook(op, segment, options_.shape.entries, view.look);
  const MainHead head = co_await ReadHead(op, segment, view.look.meta());
  const auto known = Remember(segment, MainOf(segment, view.look.meta()), head);
  if (before != nullptr) stale_.Note(before->merges != known->merges);
  view.main_entries = head.entries;
  co_await ReadRange(op, *known, fp, view.main);
  co_return Done{};
}

// INVARIANT sephash/5: the look is sampled first, by a trip of its own where READs have no order. It names
// the MainSegment: whatever the READs behind the look show is of the one that was there then, which the pin
// keeps. The count of merges tells whether that is the one that this client remembers.
Task<SegmentReader::Valid> SegmentReader::TryReadView(Op& op, Segment& segment, uint8_t fp, View& view) {
  const std::shared_ptr<const KnownMain> main = segment.main;
  Look& look = view.look;
  view.main.Resize(main->table.Predict(fp));
  if (Pieces(view.main.range()) > kPiecesAlong) co_return Valid::kNothing;
  const uint64_t commits = segment.commits;
  uint64_t merges = 0;
  const auto read_look = Read(segment.at, BytesOf(look, options_.shape.entries));
  const bool together = op.client().orders_reads() || Mutant(kReadsTakenInAnyOrder);
  if (!together) co_await op.InOrder(read_look);
  fabric::SmallBatch<2 + kPiecesAlong> trip(op, Order::kInOrder);
  if (together) trip.Add(read_look);
  trip.Add(Read(main->at, std::as_writable_bytes(std::span(&merges, 1))));
  AddReads(trip, *main, view.main);
  co_await trip;
  const bool one_round = look.IsOfOneRound() || Mutant(kTornLookTaken);
  if (!one_round || (segment.commits != commits && !Mutant(kOwnCommitsIgnored))) {
    op.CountRetry();
    co_return Valid::kNothing;
  }
  const Status sound = CheckHeader(segment, look.image.header);
  if (!sound.ok()) co_return sound.error();
  const bool is_named = look.meta().main() == main->at.offset;
  if (!is_named || (merges != main->merges && !Mutant(kAddressIsName))) co_return Valid::kLook;
  stale_.Note(false);
  view.main_entries = main->table.entries();
  co_await CompleteRange(op, *main, fp, view.main);
  co_return Valid::kView;
}

}  // namespace farside::index::sephash
