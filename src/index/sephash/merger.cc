#include "index/sephash/merger.h"

#include <algorithm>
#include <span>
#include <utility>

#include "index/kit/unpublished.h"
#include "index/sephash/mutants.h"
#include "pool/scoped_flag.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Unreachable;
using fabric::Write;

// Three trips, if no two of the keys have the same tag: READ the MainSegment, READ the blocks of the few
// entries that share a tag, WRITE the new MainSegment and commit.
Task<Done> Merger::Merge(Access at, Segment& segment, const Look& look, uint64_t birth, bool frees) {
  const pool::ScopedFlag busy(segment.merging);
  MainContent old = co_await reader_.ReadMain(at.op, segment, look.meta());  // trip 1
  Plan plan{.at = at, .segment = segment, .look = look, .birth = birth, .frees = frees};
  plan.old_main_bytes = old.allocated;
  // INVARIANT sephash/12: behind the next commit, no MainSegment names that sibling any more.
  if (old.sibling != 0 && !Mutant(kSiblingNotCompleted)) {
    const uint64_t suffix = segment.suffix | uint64_t{1} << (look.depth() - 1);
    co_await at.directory.Complete(at.op, suffix, old.sibling);
  }
  if (old.merges == 1) co_await ForgetMoved(plan);
  Merged merged = co_await Resolve(at, look, old.entries);  // trip 2
  MainContent next;
  next.merges = old.merges + 1;
  next.segment = segment.at.offset;
  next.entries = std::move(merged.entries);
  next.dropped = std::move(merged.dropped);
  // INVARIANT sephash/3: what the last merge dropped is named by no slot now: the round is full.
  plan.retired = std::move(merged.replaced);
  if (!Mutant(kDroppedForgotten))
    plan.retired.insert(plan.retired.end(), old.dropped.begin(), old.dropped.end());

  const bool too_large = next.entries.size() > at.shape().most_main_entries();
  if (too_large && look.depth() < at.shape().most_depth()) {
    const bool split = co_await TrySplit(plan, next);
    if (split) co_return Done{};
  }
  co_await CommitMerge(plan, std::move(next));  // trip 3
  if (spare_missing_) co_await RefillSpare(at).Outcome();
  co_return Done{};
}

// The client whose CAS has changed the meta word.
void Merger::Retire(const Plan& plan) {
  pool::Allocator& allocator = pool_.allocator(plan.at.node());
  allocator.Retire(SegmentReader::MainOf(plan.segment, plan.look.meta()), plan.old_main_bytes, plan.birth);
  for (const DroppedBlock& block : plan.retired)
    allocator.Retire(FarAddr(plan.at.node(), block.offset()), block.bytes(), plan.birth);
}

Task<Done> Merger::CommitMerge(Plan& plan, MainContent next) {
  Segment& segment = plan.segment;
  Unpublished main;
  co_await FetchRoom(plan, next.bytes(), main);
  std::vector<std::byte> bytes(main.bytes());
  EncodeMain(next, bytes);
  const MetaWord before = plan.look.meta();
  const MetaWord after(EpochAfter(before.epoch()), before.depth(), main.at().offset, main.bytes());
  main.Publish();
  ++segment.commits;
  // WRITE, CAS keep their order: the MainSegment is complete before the meta word names it.
  const auto write = Unreachable(Write(main.at(), bytes));
  const auto commit = Cas(segment.at, before.word(), after.word());
  uint64_t found = 0;
  if (Mutant(kCommitBeforeMain)) {
    found = co_await plan.at.op.InOrder(commit);
    if (found == before.word()) co_await plan.at.op.InOrder(write);
  } else {
    auto [written, old] = co_await plan.at.op.InOrder(write, commit);
    found = old;
  }
  if (found != before.word()) {
    // INVARIANT sephash/9: the client that was faster retires what there is to retire.
    main.Unpublish();
    ++counts_.lost;
    if (Mutant(kLoserRetires)) Retire(plan);
    co_return Done{};
  }
  ++counts_.merges;
  Retire(plan);
  segment.free_slot = 0;
  reader_.Remember(segment, main.at().offset, next.merges, StartsOf(next.entries),
                   static_cast<uint32_t>(next.entries.size()));
  co_return Done{};
}

}  // namespace farside::index::sephash
