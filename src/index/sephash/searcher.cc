#include "index/sephash/searcher.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "index/kit/block_buffer.h"
#include "index/sephash/errors.h"
#include "index/sephash/find_key.h"
#include "index/sephash/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Read;

namespace {

bool Answer(SearchContext& context, const std::optional<Found>& found) {
  if (!found.has_value() || !found->present()) return false;
  context.value.assign(found->value);
  return true;
}

}  // namespace

Task<bool> Searcher::TrySearch(SearchContext& context) {
  const KeyAccess& at = context.at;
  if (!at.directory.known()) co_await at.directory.Load(at.op);
  if (closer_.IsDue()) co_await closer_.CloseOne(at.op, *context.pin).Outcome();
  for (int step = 0; step < Directory::kMostSteps; ++step) {
    Segment& segment = at.directory.Find(at.hash);
    if (!options_.filter) {
      View view;
      co_await reader_.ReadView(at.op, segment, at.fp(), view);
      if (view.look.Covers(at.hash)) {
        const bool found = co_await SearchView(context, view);
        co_return found;
      }
      co_await at.directory.Follow(at.op, segment, view.look.meta(), at.hash);
      continue;
    }
    Known known;
    co_await ReadKnown(at, segment, known);  // trip 1
    const MetaWord meta = known.header.meta;
    if (!known.header.Covers(at.hash) && !Mutant(kDepthIgnored)) {
      co_await at.directory.Follow(at.op, segment, meta, at.hash);
      continue;
    }
    if (!known.has_main) co_await ReadMain(at, segment, known);
    if (!known.filter) {
      const bool found = co_await SearchMain(context, meta.depth(), known.main);  // trip 2
      co_return found;
    }
    // Trip 2, and trip 3 if the key is in the CurSegment.
    const std::optional<bool> found = co_await SearchBoth(context, segment, known);
    if (found.has_value()) co_return *found;
    at.op.CountRetry();
  }
  co_return Outrun();
}

Task<Done> Searcher::ReadKnown(const KeyAccess& at, Segment& segment, Known& known) {
  if (segment.main == nullptr) {
    known.header = co_await at.op.InOrder(Read<SegmentHeader>(segment.at));
  } else {
    co_await ReadRemembered(at, segment, known);
  }
  const Status sound = reader_.CheckHeader(segment, known.header);
  if (!sound.ok()) co_return sound.error();
  co_return Done{};
}

// INVARIANT sephash/5: the meta word is sampled first. It names the MainSegment, which the pin keeps from
// then on, and the count of merges tells whether it is the one that this client remembers. Bytes of a filter
// only rise: one that is 0 was 0 when the meta word was sampled, and that is when the search takes effect.
Task<Done> Searcher::ReadRemembered(const KeyAccess& at, const Segment& segment, Known& known) {
  const uint8_t fp = at.fp();
  const std::shared_ptr<const KnownMain> main = segment.main;
  known.main.Resize(main->table.Predict(fp));
  if (reader_.Pieces(known.main.range()) > SegmentReader::kPiecesAlong) {
    known.header = co_await at.op.InOrder(Read<SegmentHeader>(segment.at));
    co_return Done{};
  }
  FilterLine filter;
  const auto read_header = Read(segment.at, std::as_writable_bytes(std::span(&known.header, 1)));
  const auto read_filter =
      Read(main->at + FilterLineOffset(fp), std::as_writable_bytes(std::span(&filter, 1)));
  const bool together = at.op.client().orders_reads() || Mutant(kReadsTakenInAnyOrder);
  if (!together && !Mutant(kFilterBeforeMeta)) co_await at.op.InOrder(read_header);
  fabric::SmallBatch<2 + SegmentReader::kPiecesAlong> trip(at.op, fabric::Order::kInOrder);
  if (together && !Mutant(kFilterBeforeMeta)) trip.Add(read_header);
  trip.Add(read_filter);
  reader_.AddReads(trip, *main, known.main);
  co_await trip;
  if (Mutant(kFilterBeforeMeta)) co_await at.op.InOrder(read_header);
  const bool is_named = Mutant(kOldMainTaken) || known.header.meta.main() == main->at.offset;
  if (!is_named || (filter.merges != main->merges && !Mutant(kAddressIsName))) co_return Done{};
  known.has_main = true;
  known.filter = IsSet(filter, fp);
  co_await reader_.CompleteRange(at.op, *main, fp, known.main);
  co_return Done{};
}

// The byte of the filter is sampled behind the meta word, as above.
Task<Done> Searcher::ReadMain(const KeyAccess& at, Segment& segment, Known& known) {
  const MetaWord meta = known.header.meta;
  const MainHead head = co_await reader_.ReadHead(at.op, segment, meta);
  known.filter = IsSet(head.filter[at.fp() / FilterLine::kBytes], at.fp());
  const auto main = reader_.Remember(segment, SegmentReader::MainOf(segment, meta), head);
  co_await reader_.ReadRange(at.op, *main, at.fp(), known.main);
  co_return Done{};
}

// The block of the first entry of the MainSegment that may be the key's is read along.
Task<std::optional<bool>> Searcher::SearchBoth(SearchContext& context, Segment& segment, Known& known) {
  const KeyAccess& at = context.at;
  const MetaWord meta = known.header.meta;
  const Candidates candidates(at, meta.depth());
  const std::span<const Entry> entries = known.main.entries();
  const auto candidate = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return candidates.Has(entry) && entry.bytes() != 0;
  });
  Look look;
  BlockBuffer along;
  const uint32_t slots = at.shape().entries;
  if (candidate != entries.end()) {
    const FarAddr block_at(at.node(), candidate->offset());
    const auto read_along = ForBlock(Read(block_at, along.Resize(candidate->bytes())));
    co_await reader_.ReadLook(at.op, segment, slots, look, &read_along);
  } else {
    co_await reader_.ReadLook(at.op, segment, slots, look);
  }
  if (look.meta() != meta && !Mutant(kOldMainTaken)) co_return std::nullopt;
  BlockBuffer block;
  const std::optional<Found> latest = co_await FindInLook(at, look, block);
  if (latest.has_value()) co_return Answer(context, latest);
  if (candidate != entries.end()) {
    const Result<pool::BlockView> read = pool::DecodeBlock(along.bytes());
    if (!read.ok()) co_return read.error();
    if (read->key == at.key) {
      context.value.assign(read->value);
      co_return true;
    }
  }
  const bool found = co_await SearchMain(context, meta.depth(), known.main);
  co_return found;
}

Task<bool> Searcher::SearchMain(SearchContext& context, uint32_t depth, const MainRange& main) {
  BlockBuffer block;
  const std::optional<Found> found = co_await FindInMain(context.at, depth, main, block);
  co_return Answer(context, found);
}

Task<bool> Searcher::SearchView(SearchContext& context, const View& view) {
  BlockBuffer block;
  const std::optional<Found> found = co_await FindInView(context.at, view, block);
  co_return Answer(context, found);
}

}  // namespace farside::index::sephash
