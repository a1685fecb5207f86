#include "index/shard/splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/shard/mutants.h"
#include "index/shard/slot_writer.h"

namespace farside::index::shard {

using fabric::Read;
using fabric::ReadIntoVerb;

namespace {

constexpr int kMostSteps = 1000;

}  // namespace

Task<Done> Splitter::SplitFor(Access at, Candidate candidate, uint64_t number) {
  for (int step = 0; step < kMostSteps; ++step) {
    uint64_t unit = 0;
    uint32_t version = 0;
    if (candidate == Candidate::kLevel1) {
      Bucket bucket;
      co_await units_.ReadBucket(at, number, bucket);
      unit = bucket.unit;
      version = bucket.version;
    } else {
      Overflow overflow;
      co_await units_.ReadOverflow(at, number, overflow);
      unit = overflow.unit;
      version = overflow.version;
    }
    if (version >= at.directory().version) co_return Done{};
    co_await SplitStep(at, unit, version, nullptr);
  }
  co_return Error(ErrorCode::kContended, "others keep splitting what is to be split; retry later");
}

Task<bool> Splitter::SplitWith(const KeyAccess& at, const Bucket& bucket, Draft& draft) {
  if (bucket.version + 1 == at.directory().version) {
    FoldedInsert insert{at, draft};
    const bool inserted = co_await SplitStep(at, bucket.unit, bucket.version, &insert);
    co_return inserted;
  }
  // Far behind: step by step, and the insert afterwards.
  co_await SplitFor(at, Candidate::kLevel1, at.number(Candidate::kLevel1));
  co_return false;
}

Task<bool> Splitter::SplitStep(Access at, uint64_t unit, uint32_t version, FoldedInsert* insert) {
  Split split(at.shape(), unit, version);
  UnitLines read;
  std::vector<ReadIntoVerb> reads;
  reads.push_back(Read(at.part.BucketAt(unit), BytesOf(std::span(read).first(at.shape().lines() + 1))));
  co_await locks_.Lock(at, unit, std::move(reads));
  split.TakeOld(read);
  // Under the lock no other client splits it, and the split of a dead client was finished by the one that
  // took its lock over.
  if (!split.IsOfVersion()) {
    locks_.Unlock(at, unit);
    co_return false;
  }
  const Result<bool> published = co_await SplitUnderLock(at, split, insert).Outcome();
  if (!published.ok()) {
    FreeUnwritten(at, split);
    locks_.Unlock(at, unit);  // of no effect if the client is broken
    co_return published.error();
  }
  co_return *published;
}

Task<bool> Splitter::SplitUnderLock(Access at, Split& split, FoldedInsert* insert) {
  if (insert != nullptr && !insert->absent) {
    // INVARIANT shard/1. The key was not in the table when the bucket was read. A client that only knows the
    // announcement may have inserted it since, under the lock: then its tag is in the bucket, or the bucket
    // is full and the key elsewhere.
    const uint64_t tag = insert->at.tag(Candidate::kLevel1, split.version);
    const bool perhaps_inserted = FindTag(split.old_bucket, at.shape(), tag, 0).has_value() ||
                                  !FindUnused(split.old_bucket, at.shape()).has_value();
    if (perhaps_inserted && !Mutant(kBlindFold)) insert = nullptr;
  }
  AddedEntry added;
  if (insert != nullptr) {
    const uint32_t next = split.version + 1;
    added.entry = EntryFor(insert->draft, insert->at.tag(Candidate::kLevel1, next));
    added.moves = insert->at.unit(Candidate::kLevel1, next) == split.new_unit;
  }
  if (split.old_bucket.overflow()) co_await ProveOverflow(at, split);
  co_await Divide(at, split, insert == nullptr ? nullptr : &added);
  co_await WriteSplit(at, split, insert == nullptr ? nullptr : &insert->draft, /*unlock=*/true);
  co_return split.publishes;
}

// The holder of the lock is gone. If it was splitting the unit, some lines of the new unit, or all of them
// and some of the old one, have the next version.
Task<Done> Splitter::FinishSplit(Access at, uint64_t unit) {
  co_await at.part.Refresh(at.op);
  const Directory& directory = at.directory();
  if (unit >= at.shape().units(directory.version)) {
    co_return Error(ErrorCode::kCorrupt,
                    fmt::format("a lock names unit {}, which is not in the table", unit));
  }
  const size_t lines = at.shape().lines();
  UnitLines old_unit;
  co_await at.op.InOrder(Read(at.part.BucketAt(unit), BytesOf(std::span(old_unit).first(lines))),
                         Read(at.part.OverflowAt(unit), BytesOf(old_unit[lines])));
  // The version that all lines have, or will have.
  const auto by_version = [](const Line& a, const Line& b) { return a.version() < b.version(); };
  const std::span<const Line> all = std::span(old_unit).first(lines + 1);
  const auto [lowest, highest] = std::minmax_element(all.begin(), all.end(), by_version);
  const uint32_t version = lowest->version();
  if (version == 0 || version >= directory.version) co_return Done{};
  Split split(at.shape(), unit, version);
  split.TakeOld(old_unit);
  co_await at.op.InOrder(Read(at.part.BucketAt(split.new_unit), BytesOf(split.new_lines())),
                         Read(at.part.OverflowAt(split.new_unit), BytesOf(split.new_line)));
  bool begun = highest->version() > version || split.new_line.version() != 0;
  const bool redo = Mutant(kRedoneFromScratch);
  for (size_t i = 0; i < lines; ++i) {
    const bool is_written = split.new_bucket.lines[i].version() != 0;
    split.keep_old[i] = split.old_bucket.lines[i].version() > version;
    split.keep_new[i] = is_written && !redo;
    begun |= is_written;
  }
  if (!begun) co_return Done{};
  split.keep_old_line = split.old_overflow.line.version() > version;
  split.keep_new_line = split.new_line.version() != 0 && !redo;
  const Result<Done> divided = co_await Divide(at, split, nullptr).Outcome();
  if (!divided.ok()) {
    FreeUnwritten(at, split);
    co_return divided.error();
  }
  co_await WriteSplit(at, split, nullptr, /*unlock=*/false);
  co_return Done{};
}

// There was no room for all the nodes. If the split failed while it was written, they stay: they may be
// reachable.
void Splitter::FreeUnwritten(const Access& at, Split& split) {
  if (split.writing) return;
  for (const Node& node : split.made_nodes)
    pool_.allocator(at.part.node()).FreeUnpublished(node.at, sizeof(Line));
  split.made_nodes.clear();
}

}  // namespace farside::index::shard
