#include "index/shard/view_reader.h"

#include <span>
#include <utility>

#include "index/shard/mutants.h"

namespace farside::index::shard {

using fabric::Read;
using fabric::ReadIntoVerb;

namespace {

void SetUnits(const KeyAccess& at, View& view) {
  const uint32_t version = at.directory().version;
  view.bucket.unit = at.unit(Candidate::kLevel1, version);
  for (const Candidate candidate : kChoices) view.choice(candidate).unit = at.unit(candidate, version);
}

std::span<Line> LinesOf(const KeyAccess& at, Bucket& bucket) {
  return std::span(bucket.lines).first(at.shape().lines());
}

ReadIntoVerb ReadLine(const KeyAccess& at, Overflow& overflow) {
  return Read(at.part.OverflowAt(overflow.unit), BytesOf(overflow.line));
}

}  // namespace

// Level 1 first, because what is not in level 1 has to be looked for in the others.
Task<Done> ViewReader::ReadView(const KeyAccess& at, View& view) {
  const uint64_t number = at.number(Candidate::kLevel1);
  view.unclassified = false;
  if (at.directory().announced) {
    co_await units_.ReadBucket(at, number, view.bucket);
    co_return Done{};
  }
  SetUnits(at, view);
  const std::span<Line> lines = LinesOf(at, view.bucket);
  const auto read_bucket = Read(at.part.BucketAt(view.bucket.unit), BytesOf(lines));
  co_await at.op.InOrder(read_bucket, ReadLine(at, view.first), ReadLine(at, view.second));
  if (Mutant(kLevel2First)) co_await at.op.InOrder(read_bucket);
  // INVARIANT shard/1 rests on it: what is read of level 2 is not older than the bucket. A key may have gone
  // there before the bucket was split, and the split has given the bucket unused slots. So a bucket that is
  // read again leaves these behind.
  view.unclassified = Classify(at.part, number, view.bucket.unit, lines) == UnitStatus::kDecides;
  if (view.unclassified) {
    view.bucket.version = lines[0].version();
  } else {
    co_await units_.ReadBucket(at, number, view.bucket);
  }
  co_return Done{};
}

Task<Done> ViewReader::EnsureOverflows(const KeyAccess& at, View& view) {
  if (view.unclassified) {
    view.unclassified = false;
    co_await ClassifyOverflows(at, view);
    co_await ReadNodesOf(at, view);
  } else {
    co_await ReadOverflows(at, view);
  }
  co_return Done{};
}

Task<Done> ViewReader::ReadOverflows(const KeyAccess& at, View& view) {
  if (at.directory().announced) {
    co_await units_.ReadOverflow(at, at.number(Candidate::kFirstChoice), view.first);
    co_await units_.ReadOverflow(at, at.number(Candidate::kSecondChoice), view.second);
  } else {
    for (const Candidate candidate : kChoices)
      view.choice(candidate).unit = at.unit(candidate, at.directory().version);
    co_await at.op.InOrder(ReadLine(at, view.first), ReadLine(at, view.second));
    co_await ClassifyOverflows(at, view);
  }
  co_await ReadNodesOf(at, view);
  co_return Done{};
}

Task<Done> ViewReader::ClassifyOverflows(const KeyAccess& at, View& view) {
  view.first.version = view.first.line.version();
  view.second.version = view.second.line.version();
  for (const Candidate candidate : kChoices) {
    if (!Decides(at, candidate, view.choice(candidate)))
      co_await units_.ReadOverflow(at, at.number(candidate), view.choice(candidate));
  }
  co_return Done{};
}

Task<Done> ViewReader::ReadNodesOf(const KeyAccess& at, View& view) {
  const uint32_t version = at.directory().version;
  view.has_second = at.unit(Candidate::kFirstChoice, version) != at.unit(Candidate::kSecondChoice, version);
  if (view.first.line.has_link()) co_await ReadNodes(at, view.first);
  if (view.has_second && view.second.line.has_link()) co_await ReadNodes(at, view.second);
  co_return Done{};
}

// ---- under a lock ------------------------------------------------------------------------------------

Task<Done> ViewReader::LockView(const KeyAccess& at, View& view) {
  SetUnits(at, view);
  std::vector<ReadIntoVerb> reads;
  reads.push_back(Read(at.part.BucketAt(view.bucket.unit), BytesOf(LinesOf(at, view.bucket))));
  for (const Candidate candidate : kChoices) reads.push_back(ReadLine(at, view.choice(candidate)));
  // INVARIANT shard/7: while a resize is announced, a new unit that has a version decides. The lock keeps
  // other clients from splitting the bucket, but not the lines of level 2.
  for (const Candidate candidate : kChoices) {
    view.choice_new(candidate) = Line();
    const std::optional<uint64_t> moved = NewUnitOf(at.part, at.number(candidate));
    if (moved.has_value())
      reads.push_back(Read(at.part.OverflowAt(*moved), BytesOf(view.choice_new(candidate))));
  }
  if (Mutant(kOverflowWithoutLock)) {
    for (const ReadIntoVerb& read : reads) co_await at.op.InOrder(read);
  } else {
    co_await locks_.Lock(at, view.bucket.unit, std::move(reads));
  }
  view.bucket.version = view.bucket.lines[0].version();
  for (const Candidate candidate : kChoices)
    view.choice(candidate).version = view.choice(candidate).line.version();
  co_return Done{};
}

void ViewReader::UnlockView(const KeyAccess& at, const View& view) {
  if (!Mutant(kOverflowWithoutLock)) locks_.Unlock(at, view.bucket.unit);
}

// Another operation of this client may have learned of a resize since the lock was asked for: then these are
// not the units of the key any more.
bool ViewReader::IsUpToDate(const KeyAccess& at, const View& view, bool with_overflow) {
  const uint32_t version = at.directory().version;
  const auto is_unit = [&](Candidate candidate, uint64_t unit) {
    return at.unit(candidate, version) == unit || Mutant(kUnitOfOldVersion);
  };
  if (VersionOf(std::span(view.bucket.lines).first(at.shape().lines())) != version) return false;
  if (!is_unit(Candidate::kLevel1, view.bucket.unit)) return false;
  if (!with_overflow) return true;
  return view.first.version == version && view.second.version == version && view.first_new.version() == 0 &&
         view.second_new.version() == 0 && is_unit(Candidate::kFirstChoice, view.first.unit) &&
         is_unit(Candidate::kSecondChoice, view.second.unit);
}

// ---- before and after their splits -------------------------------------------------------------------

void Choices::AddReads(std::vector<ReadIntoVerb>& reads) {
  for (const Candidate candidate : kChoices) {
    Overflow& overflow = view_.choice(candidate);
    overflow.unit = at_.unit(candidate, version_ + 1);
    reads.push_back(ReadLine(at_, overflow));
    const uint64_t unit_above = at_.unit(candidate, version_);
    Line& above = above_[candidate == Candidate::kFirstChoice ? 0 : 1];
    if (unit_above != overflow.unit) reads.push_back(Read(at_.part.OverflowAt(unit_above), BytesOf(above)));
  }
}

void Choices::Take() {
  for (const Candidate candidate : kChoices) {
    Overflow& overflow = view_.choice(candidate);
    overflow.version = overflow.line.version();
    if (overflow.version != 0) continue;
    overflow.line = above_[candidate == Candidate::kFirstChoice ? 0 : 1];
    overflow.unit = at_.unit(candidate, version_);
    overflow.version = overflow.line.version();
  }
}

Task<Done> Choices::Fetch() {
  std::vector<ReadIntoVerb> reads;
  AddReads(reads);
  fabric::Batch trip(at_.op, fabric::Order::kInOrder);
  for (const ReadIntoVerb& read : reads) trip.Add(read);
  co_await trip;
  Take();
  co_return Done{};
}

}  // namespace farside::index::shard
