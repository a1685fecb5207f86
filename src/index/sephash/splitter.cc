// Splitting a segment: the part of Merger that divides a MainSegment which became too large.
#include <algorithm>
#include <cstring>
#include <utility>

#include "index/kit/unpublished.h"
#include "index/sephash/errors.h"
#include "index/sephash/merger.h"
#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Order;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

namespace {

// A hash divides keys evenly. Keys that a split divides worse than this were chosen so; splitting them on and
// on would make a directory that is larger than they are.
constexpr size_t kWorstShare = 4;

bool IsOutOfMemory(const Error& error) { return error.code() == ErrorCode::kOutOfMemory; }

}  // namespace

Task<bool> Merger::TrySplit(Plan& plan, MainContent& next) {
  // INVARIANT sephash/13: the sibling's entry has a place before the sibling is there.
  const Result<Done> made = co_await plan.at.directory.MakePart(plan.at.op, plan.depth() + 1).Outcome();
  if (!made.ok() && IsOutOfMemory(made.error())) co_return false;
  if (!made.ok()) co_return made.error();
  MainContent high;
  MainContent low = next;
  high.entries = co_await Divide(plan, low);
  if (high.entries.empty()) co_return false;
  high.merges = 1;
  const Result<Done> committed = co_await CommitSplit(plan, std::move(low), std::move(high)).Outcome();
  if (!committed.ok() && IsOutOfMemory(committed.error())) co_return false;
  if (!committed.ok()) co_return committed.error();
  co_return true;
}

// INVARIANT sephash/3. A split moves entries of the round to the sibling, and the slots keep the words of that
// round until they are filled again. The first merge of the sibling, which may be the first one to retire what
// they name, puts padding in their place: three trips, for each split.
Task<Done> Merger::ForgetMoved(const Plan& plan) {
  const Access& at = plan.at;
  const uint32_t born = plan.segment.born;
  if (born == at.shape().initial_bits || Mutant(kMovedStayNamed)) co_return Done{};
  const uint64_t suffix = plan.segment.suffix & LowBits(born - 1);
  Segment* parent = nullptr;
  Look look;
  for (uint32_t step = 0; step <= kMostDepth; ++step) {
    parent = &at.directory.Find(suffix);
    co_await reader_.ReadLook(at.op, *parent, at.shape().entries, look);
    if (look.Covers(suffix)) break;
    co_await at.directory.Follow(at.op, *parent, look.meta(), suffix);
  }
  if (!look.Covers(suffix)) co_return Outrun();
  if (look.depth() != born) co_return Done{};  // it was split again, with a full round
  const MainHeader main =
      co_await at.op.InOrder(Read<MainHeader>(SegmentReader::MainOf(*parent, look.meta())));
  if (main.sibling != plan.segment.at.offset) co_return Done{};  // it was merged again
  const uint64_t count = Mutant(kPaddingNotUnique) ? 0 : main.merges;
  const Entry padding = Entry::Padding(EpochBefore(look.epoch()), count);
  std::vector<std::pair<uint32_t, Entry>> moved;
  for (uint32_t slot = look.Used(); slot < look.sampled; ++slot) {
    const Entry entry = look.image.entries[slot];
    if (!entry.is_padding() && SplitBit(entry.tag(), at.shape(), born - 1)) moved.emplace_back(slot, entry);
  }
  for (size_t first = 0; first < moved.size(); first += fabric::kMaxVerbsPerTrip) {
    const size_t end = std::min(moved.size(), first + fabric::kMaxVerbsPerTrip);
    fabric::Batch trip(at.op, Order::kTogether);
    for (size_t i = first; i < end; ++i)
      trip.Add(Cas(EntryAt(parent->at, moved[i].first), moved[i].second.word(), padding.word()));
    co_await trip;
  }
  co_return Done{};
}

// No block is read, unless the depth bits of the entries are used up, or are not to be used (paper, section
// 4.2.2).
Task<std::vector<Entry>> Merger::Divide(const Plan& plan, MainContent& next) {
  const Shape& shape = plan.at.shape();
  const uint32_t depth = plan.depth();
  const bool new_tags = (depth + 1) % shape.depth_bits == 0;
  const bool reads = new_tags || options_.depth_bits == DepthBits::kBlocks;
  std::vector<uint64_t> hashes;
  if (reads) hashes = co_await ReadHashes(plan.at, next.entries);
  std::vector<Entry> low;
  std::vector<Entry> high;
  for (size_t i = 0; i < next.entries.size(); ++i) {
    Entry entry = next.entries[i];
    const bool is_high = reads ? (hashes[i] >> depth & 1) != 0 : SplitBit(entry.tag(), shape, depth);
    // INVARIANT sephash/8: the tags of a segment's entries are all of the group of its depth.
    if (new_tags && !Mutant(kTagsNotRenewed)) entry = entry.WithTag(TagOf(hashes[i], shape, depth + 1));
    (is_high ? high : low).push_back(entry);
  }
  if (std::min(low.size(), high.size()) < std::max<size_t>(next.entries.size() / kWorstShare, 1)) {
    high.clear();
    co_return std::move(high);
  }
  std::sort(low.begin(), low.end());
  std::sort(high.begin(), high.end());
  next.entries = std::move(low);
  co_return std::move(high);
}

// INVARIANT sephash/7: the WRITEs are before the CAS, which makes both segments count at once. A client that
// finds the old one with its new depth finds the sibling by the MainSegment.
Task<Done> Merger::CommitSplit(Plan& plan, MainContent low, MainContent high) {
  Segment& segment = plan.segment;
  const Access& at = plan.at;
  pool::Allocator& allocator = pool_.allocator(at.node());
  Unpublished sibling;
  if (!sibling.Reserve(allocator, at.shape().segment_bytes())) co_await sibling.FetchRoom(at.op);
  Unpublished high_main;
  if (!high_main.Reserve(allocator, high.bytes())) co_await high_main.FetchRoom(at.op);
  if (!Mutant(kSiblingForgotten)) low.sibling = sibling.at().offset;
  Unpublished low_main;
  if (!low_main.Reserve(allocator, low.bytes())) co_await low_main.FetchRoom(at.op);

  high.segment = sibling.at().offset;
  std::vector<std::byte> high_bytes(high_main.bytes());
  EncodeMain(high, high_bytes);
  std::vector<std::byte> low_bytes(low_main.bytes());
  EncodeMain(low, low_bytes);
  const uint32_t depth = plan.depth() + 1;
  const uint64_t suffix = plan.sibling_suffix();
  const MetaWord first(kFirstEpoch, depth, high_main.at().offset, high_main.bytes());
  const SegmentHeader header{.meta = first, .suffix = suffix};
  std::vector<std::byte> sibling_bytes(sibling.bytes());
  std::memcpy(sibling_bytes.data(), &header, sizeof header);

  const MetaWord before = plan.look.meta();
  const uint32_t epoch = Mutant(kSplitKeepsEpoch) ? before.epoch() : EpochAfter(before.epoch());
  const MetaWord after(epoch, depth, low_main.at().offset, low_main.bytes());
  if (Mutant(kEntryBeforeSegment)) co_await at.directory.Complete(at.op, suffix, sibling.at().offset);
  for (Unpublished* room : {&sibling, &high_main, &low_main}) room->Publish();
  ++segment.commits;
  auto [wrote_high, wrote_sibling, wrote_low, found] = co_await at.op.InOrder(
      Unreachable(Write(high_main.at(), high_bytes)), Unreachable(Write(sibling.at(), sibling_bytes)),
      Unreachable(Write(low_main.at(), low_bytes)), Cas(segment.at, before.word(), after.word()));
  if (found != before.word()) {
    for (Unpublished* room : {&sibling, &high_main, &low_main}) room->Unpublish();
    ++counts_.lost;
    co_return Done{};
  }
  ++counts_.merges;
  ++counts_.splits;
  Retire(plan);
  segment.free_slot = 0;
  reader_.Remember(segment, low_main.at().offset, low.merges, StartsOf(low.entries),
                   static_cast<uint32_t>(low.entries.size()));
  at.directory.Learn(sibling.at().offset, suffix, depth);
  Segment& made = at.directory.Find(suffix);
  reader_.Remember(made, high_main.at().offset, high.merges, StartsOf(high.entries),
                   static_cast<uint32_t>(high.entries.size()));
  // If this client dies here, the next one that looks for a key of the sibling makes the entry.
  if (options_.zero_wait) {
    at.directory.CompleteLater(at.op, suffix, sibling.at().offset);
  } else {
    co_await at.directory.Complete(at.op, suffix, sibling.at().offset);
  }
  co_return Done{};
}

}  // namespace farside::index::sephash
