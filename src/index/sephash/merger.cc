#include "index/sephash/merger.h"

#include <utility>

#include "index/sephash/mutants.h"
#include "pool/scoped_flag.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Order;
using fabric::Read;

namespace {

// As many as a trip reads. A segment is merged so often before its depth leaves the next group that none are
// left to the split which needs them.
constexpr size_t kRenewedByAMerge = fabric::kAnsweredVerbsPerRoundTrip;

// Adds the time of its life.
class Stopwatch {
 public:
  Stopwatch(const fabric::Client& client, Nanos& sum) : client_(client), sum_(sum), begin_(client.Now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { sum_ += client_.Now() - begin_; }

 private:
  const fabric::Client& client_;
  Nanos& sum_;
  const Nanos begin_;
};

}  // namespace

// Four trips: READ the head of the MainSegment, READ its pages, READ blocks (of entries that share a tag, and
// of some whose tags are renewed), WRITE the new MainSegment and commit. The first two are one if this client
// remembers the pages and a trip can read all of them, and the third is left out if there are no blocks to
// read.
Task<Done> Merger::Merge(Access at, Segment& segment, const Look& look, uint64_t birth, bool frees) {
  const pool::ScopedFlag busy(segment.merging);
  const Stopwatch stopwatch(at.op.client(), counts_.time);
  MainContent old = co_await reader_.ReadMain(at.op, segment, look.meta());  // trips 1 and 2
  Plan plan{.at = at, .segment = segment, .look = look, .birth = birth, .frees = frees};
  plan.retired_pages = old.pages;
  // INVARIANT sephash/12: behind the next commit, no MainSegment names that sibling any more.
  if (old.sibling != 0 && !Mutant(kSiblingNotCompleted))
    co_await at.directory.Complete(at.op, segment.SiblingSuffix(look.depth()), old.sibling);
  Merged merged = co_await Resolve(at, look, old.entries, kRenewedByAMerge);  // trip 3
  MainContent next;
  next.merges = old.merges + 1;
  next.segment = segment.at.offset;
  next.entries = std::move(merged.entries);
  next.dropped = std::move(merged.dropped);
  // INVARIANT sephash/3: what the last merge dropped is named by no slot of this segment now: the round is
  // full. But slots of the parent may name it, and what is replaced now.
  const bool named_by_parent = co_await IsNamedByParent(at, old);
  std::vector<DroppedBlock>& list = named_by_parent ? next.dropped : plan.retired;
  list.insert(list.end(), merged.replaced.begin(), merged.replaced.end());
  if (!Mutant(kDroppedForgotten)) list.insert(list.end(), old.dropped.begin(), old.dropped.end());
  if (named_by_parent) KeepParent(plan, old, next);
  const bool too_large = next.entries.size() > at.shape().most_main_entries() && !named_by_parent;
  if (too_large && look.depth() < at.shape().most_depth()) {
    const bool split = co_await TrySplit(plan, next);
    if (split) co_return Done{};
  }
  co_await CommitMerge(plan, next);  // trip 4
  co_return Done{};
}

Task<bool> Merger::IsNamedByParent(Access at, const MainNames& main) {
  if (main.parent == 0 || Mutant(kMovedStayNamed)) co_return false;
  const MetaWord parent = co_await at.op.InOrder(Read<MetaWord>(FarAddr(at.node(), main.parent)));
  co_return FoldOf(parent) == main.parent_meta;
}

// If only keys of this segment change, the parent's round is never full, and nothing merges it.
void Merger::KeepParent(const Plan& plan, const MainContent& old, MainContent& next) {
  next.parent = old.parent;
  next.parent_meta = old.parent_meta;
  if (next.dropped.size() <= plan.at.shape().entries || plan.segment.born == 0) return;
  overdue_ = OverdueParent{
      .directory = &plan.at.directory, .segment = old.parent, .suffix = plan.segment.parent_suffix()};
}

// INVARIANT sephash/9: by the client whose CAS has changed the meta word.
Task<Done> Merger::Retire(const Plan& plan) {
  pool::Allocator& allocator = pool_.allocator(plan.at.node());
  for (const DroppedBlock& block : plan.retired)
    allocator.Retire(FarAddr(plan.at.node(), block.offset()), block.bytes(), plan.birth);
  const bool kept = co_await KeepAsSpare(plan);
  if (kept) co_return Done{};
  RetireMain(allocator, plan.at.shape(), SegmentReader::MainOf(plan.segment, plan.look.meta()),
             plan.retired_pages, plan.birth);
  co_return Done{};
}

void Merger::Remember(Segment& segment, const MainRoom& room, const MainContent& content) {
  MainHead head;
  head.merges = content.merges;
  head.entries = static_cast<uint32_t>(content.entries.size());
  head.pages = room.numbers();
  head.starts = StartsOf(content.entries);
  reader_.Remember(segment, room.at(), head);
}

Task<Done> Merger::CommitMerge(Plan& plan, const MainContent& next) {
  Segment& segment = plan.segment;
  MainRoom room(plan.at.shape(), plan.at.node());
  co_await FetchRoom(plan, next.words(), room);
  const MainImage image = EncodeMain(plan.at.shape(), next, room.numbers());
  const MetaWord before = plan.look.meta();
  const MetaWord after(EpochAfter(before.epoch()), before.depth(), room.at().offset, room.pages());
  co_await room.WriteEarly(plan.at.op, image);
  // WRITE, CAS keep their order: the MainSegment is complete before the meta word names it.
  fabric::Batch trip(plan.at.op, Mutant(kCommitBeforeMain) ? Order::kTogether : Order::kInOrder);
  room.AddWrites(trip, image);
  const size_t cas = trip.Add(Cas(segment.at, before.word(), after.word()));
  room.Publish();
  ++segment.commits;
  co_await trip;
  if (trip.Old(cas) != before.word()) {
    // INVARIANT sephash/9: the client that was faster retires what there is to retire.
    if (!plan.spare.has_value()) room.Unpublish();
    ++counts_.lost;
    co_await SettleSpare(plan, /*committed=*/false);
    if (Mutant(kLoserRetires)) co_await Retire(plan);
    co_return Done{};
  }
  ++counts_.merges;
  segment.free_slot = 0;
  Remember(segment, room, next);
  co_await SettleSpare(plan, /*committed=*/true);
  co_await Retire(plan);
  co_return Done{};
}

}  // namespace farside::index::sephash
