// Splitting a segment: the part of Merger that divides a MainSegment which became too large.
#include <algorithm>
#include <utility>

#include "index/kit/unpublished.h"
#include "index/sephash/merger.h"
#include "index/sephash/mutants.h"
#include "index/sephash/tag_renewal.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::Unreachable;
using fabric::Write;

namespace {

// A hash divides keys evenly. Keys that a split divides worse than this were chosen so; splitting them on and
// on would make a directory that is larger than they are.
constexpr size_t kWorstShare = 4;

bool IsOutOfMemory(const Error& error) { return error.code() == ErrorCode::kOutOfMemory; }

}  // namespace

Task<bool> Merger::TrySplit(Plan& plan, const MainContent& next) {
  // INVARIANT sephash/13: the sibling's entry has a place before the sibling is there.
  const Result<Done> made = co_await plan.at.directory.MakePart(plan.at.op, plan.depth() + 1).Outcome();
  if (!made.ok() && IsOutOfMemory(made.error())) co_return false;
  if (!made.ok()) co_return made.error();
  MainContent low = next;
  MainContent high;
  high.entries = co_await Divide(plan, low.entries);
  if (high.entries.empty()) co_return false;
  high.merges = 1;
  const Result<Done> committed = co_await CommitSplit(plan, std::move(low), std::move(high)).Outcome();
  if (!committed.ok() && IsOutOfMemory(committed.error())) co_return false;
  if (!committed.ok()) co_return committed.error();
  co_return true;
}

// No block is read, unless the tags of some entries end with this split, or are not to be used (paper,
// section 4.2.2).
Task<std::vector<Entry>> Merger::Divide(const Plan& plan, std::vector<Entry>& entries) {
  const Shape& shape = plan.at.shape();
  const uint32_t depth = plan.depth();
  // INVARIANT sephash/8: the tags of a segment's entries are of the group of its depth, or of the one before.
  const uint32_t group = GroupOf(shape, depth);
  const bool ends_group = GroupOf(shape, depth + 1) != group;
  if (ends_group && !Mutant(kTagsNotRenewed)) co_await RenewTags(plan.at, group, entries);
  const bool reads = options_.split_by == SplitBy::kBlocks;
  std::vector<uint64_t> hashes;
  if (reads) hashes = co_await ReadHashes(plan.at, entries);
  std::vector<Entry> low;
  std::vector<Entry> high;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_high = reads ? (hashes[i] >> depth & 1) != 0 : SplitBit(entries[i].tag(), shape, depth);
    (is_high ? high : low).push_back(entries[i]);
  }
  if (std::min(low.size(), high.size()) < std::max<size_t>(entries.size() / kWorstShare, 1)) {
    high.clear();
    co_return std::move(high);
  }
  entries = std::move(low);
  co_return std::move(high);
}

// INVARIANT sephash/7: the WRITEs are before the CAS, which makes both segments count at once. A client that
// finds the old one with its new depth finds the sibling by the MainSegment.
Task<Done> Merger::CommitSplit(Plan& plan, MainContent low, MainContent high) {
  Segment& segment = plan.segment;
  const Access& at = plan.at;
  const Shape& shape = at.shape();
  pool::Allocator& allocator = pool_.allocator(at.node());
  Unpublished sibling;
  if (!sibling.Reserve(allocator, shape.segment_bytes())) co_await sibling.FetchRoom(at.op);
  MainRoom high_room(shape, at.node());
  co_await high_room.Fetch(at.op, allocator, shape.PagesOf(high.words()));
  MainRoom low_room(shape, at.node());
  co_await low_room.Fetch(at.op, allocator, shape.PagesOf(low.words()));
  const uint32_t depth = plan.depth() + 1;
  const MetaWord before = plan.look.meta();
  const uint32_t epoch = Mutant(kSplitKeepsEpoch) ? before.epoch() : EpochAfter(before.epoch());
  const MetaWord after(epoch, depth, low_room.at().offset, low_room.pages());
  high.segment = sibling.at().offset;
  high.parent = segment.at.offset;
  high.parent_meta = FoldOf(after);
  if (!Mutant(kSiblingForgotten)) low.sibling = sibling.at().offset;
  const MainImage high_image = EncodeMain(shape, high, high_room.numbers());
  const MainImage low_image = EncodeMain(shape, low, low_room.numbers());
  co_await high_room.WriteEarly(at.op, high_image);
  co_await low_room.WriteEarly(at.op, low_image);

  const uint64_t suffix = segment.SiblingSuffix(depth);
  const MetaWord first(kFirstEpoch, depth, high_room.at().offset, high_room.pages());
  const SegmentImage sibling_image = NewSegment(first, suffix);
  if (Mutant(kEntryBeforeSegment)) co_await at.directory.Complete(at.op, suffix, sibling.at().offset);
  fabric::Batch trip(at.op, fabric::Order::kInOrder);
  high_room.AddWrites(trip, high_image);
  trip.Add(Unreachable(Write(sibling.at(), BytesOf(sibling_image, shape))));
  low_room.AddWrites(trip, low_image);
  const size_t cas = trip.Add(Cas(segment.at, before.word(), after.word()));
  sibling.Publish();
  high_room.Publish();
  low_room.Publish();
  ++segment.commits;
  co_await trip;
  if (trip.Old(cas) != before.word()) {
    sibling.Unpublish();
    high_room.Unpublish();
    low_room.Unpublish();
    ++counts_.lost;
    co_return Done{};
  }
  ++counts_.merges;
  ++counts_.splits;
  segment.free_slot = 0;
  Remember(segment, low_room, low);
  at.directory.Learn(sibling.at().offset, suffix, depth);
  Remember(at.directory.Find(suffix), high_room, high);
  // If this client dies here, the next one that looks for a key of the sibling makes the entry.
  if (options_.zero_wait) {
    at.directory.CompleteLater(at.op, suffix, sibling.at().offset);
  } else {
    co_await at.directory.Complete(at.op, suffix, sibling.at().offset);
  }
  co_await Retire(plan);
  co_return Done{};
}

}  // namespace farside::index::sephash
