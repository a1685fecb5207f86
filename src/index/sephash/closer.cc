#include "index/sephash/closer.h"

#include <algorithm>
#include <set>

#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

constexpr size_t kMostWaiting = 1 << 16;
constexpr int kMostNotedAtOnce = 16;
constexpr size_t kSlotsOfATrip = fabric::kAnsweredVerbsPerRoundTrip;

// Whether every key is deleted, if all keys have different tags and those deleted were in the MainSegment.
bool SeemsEmpty(const Look& look, uint32_t main_entries) {
  std::set<Tag> deleted;
  for (const Entry& entry : look.entries()) {
    if (entry.epoch() != look.epoch() || entry.is_padding()) continue;
    if (entry.is_tombstone()) {
      deleted.insert(entry.tag());
    } else {
      deleted.erase(entry.tag());
      main_entries += 1;
    }
  }
  return deleted.size() >= main_entries;
}

}  // namespace

void Closer::NoteDelete(const Access& at, Segment& segment, const Look& look, uint32_t main_entries) {
  if (segment.closing || main_entries > look.sampled || waiting_.size() >= kMostWaiting) return;
  if (!SeemsEmpty(look, main_entries)) return;
  segment.closing = true;
  // Epochs pass only while something waits for them.
  pool_.AfterGrace(at.node(), [] {});
  waiting_.push_back({.directory = &at.directory, .segment = &segment, .epochs = pool_.KnownEpochs()});
}

Task<Done> Closer::CloseOne(Op& op, const pool::PoolClient::Pin& pin) {
  const std::optional<Merger::OverdueParent> overdue = merger_.TakeOverdueParent();
  if (overdue.has_value()) {
    const Access at{op, *overdue->directory};
    Segment& parent = at.directory.Know(overdue->segment, overdue->suffix);
    co_await Close(at, parent, pin.epoch(at.node()), Which::kAny);
    co_return Done{};
  }
  const Waiting next = waiting_.front();
  waiting_.pop_front();
  next.segment->closing = false;
  const Access at{op, *next.directory};
  const uint64_t birth = pin.epoch(at.node());
  co_await CloseParent(at, *next.segment, birth);
  // What the first merge has dropped is retired by the second.
  const bool closed = co_await Close(at, *next.segment, birth, Which::kEmpty);
  if (closed) co_await Close(at, *next.segment, birth, Which::kEmpty);
  co_return Done{};
}

void Closer::NoteTouched(const Access& at, Segment& segment) {
  const auto is_same = [&segment](const Waiting& noted) { return noted.segment == &segment; };
  if (std::any_of(touched_.begin(), touched_.end(), is_same)) return;
  touched_.push_back({.directory = &at.directory, .segment = &segment});
}

void Closer::NoteSome(const Access& at) {
  for (int i = 0; i < kMostNotedAtOnce; ++i) NoteTouched(at, at.directory.Find(next_noted_++));
}

Task<Done> Closer::CloseTouched(Op& op, const pool::PoolClient::Pin& pin) {
  const Waiting next = touched_.front();
  touched_.pop_front();
  const Access at{op, *next.directory};
  const Result<Done> closed = co_await CloseTwice(at, *next.segment, pin.epoch(at.node())).Outcome();
  if (!closed.ok()) touched_.push_back(next);
  co_return closed;
}

// The first merge drops what slots of the round name, and the second one retires it.
Task<Done> Closer::CloseTwice(Access at, Segment& segment, uint64_t birth) {
  co_await CloseParent(at, segment, birth);
  co_await Close(at, segment, birth, Which::kTouched);
  co_await Close(at, segment, birth, Which::kTouched);
  co_return Done{};
}

// A segment that a split has made gives nothing back while slots of its parent may name it (sephash/3).
Task<Done> Closer::CloseParent(Access at, const Segment& segment, uint64_t birth) {
  const MetaWord meta = co_await at.op.InOrder(Read<MetaWord>(segment.at));
  const MainHead head = co_await reader_.ReadHead(at.op, segment, meta);
  if (segment.born == 0) co_return Done{};
  const bool named = co_await merger_.IsNamedByParent(at, head);
  if (!named) co_return Done{};
  Segment& parent = at.directory.Know(head.parent, segment.parent_suffix());
  co_await Close(at, parent, birth, Which::kAny);
  co_return Done{};
}

Task<bool> Closer::Close(Access at, Segment& segment, uint64_t birth, Which which) {
  if (segment.merging) co_return false;
  Look look;
  co_await reader_.ReadLook(at.op, segment, at.shape().entries, look);
  const MainHead head = co_await reader_.ReadHead(at.op, segment, look.meta());
  const bool holds_memory = look.Used() > 0 || head.words() > 0;
  const bool is_empty = holds_memory && SeemsEmpty(look, head.entries);
  if (which == Which::kEmpty && !is_empty) co_return false;
  if (which == Which::kTouched && look.Used() == 0 && head.dropped == 0) co_return false;
  const bool padded = co_await Pad(at, segment, look, head.merges);
  if (!padded) co_return false;
  co_await merger_.Merge(at, segment, look, birth, /*frees=*/which != Which::kAny);
  co_return true;
}

// The CASes of a trip have no order, so a slot may be padded before the one below it. That harms no client
// that appends: padding is no entry of a key, and a free slot below it is still the first one.
Task<bool> Closer::Pad(Access at, const Segment& segment, Look& look, uint64_t merges) {
  const Entry padding = Entry::Padding(look.epoch(), Mutant(kPaddingNotUnique) ? 0 : merges);
  for (uint32_t first = look.Used(); first < look.sampled; first += kSlotsOfATrip) {
    const uint32_t end = std::min<uint32_t>(first + kSlotsOfATrip, look.sampled);
    fabric::Batch trip(at.op, Order::kTogether);
    for (uint32_t slot = first; slot < end; ++slot) {
      const Entry expected = look.image.entries[slot];
      // A client that died while it padded may have left some.
      const Entry desired = expected.epoch() == look.epoch() ? expected : padding;
      trip.Add(Cas(EntryAt(segment.at, slot), expected.word(), desired.word()));
    }
    co_await trip;
    for (uint32_t slot = first; slot < end; ++slot) {
      const uint64_t found = trip.Old(slot - first);
      const bool done = found == look.image.entries[slot].word();
      if (!done) look.image.entries[slot] = Entry(found);
      if (done && look.image.entries[slot].epoch() != look.epoch()) look.image.entries[slot] = padding;
      // An entry that another client has appended fills the slot as well; but this round is over.
      if (look.image.entries[slot].epoch() != look.epoch()) co_return false;
    }
  }
  co_return true;
}

}  // namespace farside::index::sephash
