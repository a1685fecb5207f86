#include "index/chime/leaf_turn.h"

#include <algorithm>

#include "index/chime/mutants.h"

namespace farside::index::chime {

LeafTurn::~LeafTurn() {
  // It was destroyed on the way, or has met an error.
  if (state_ == State::kHanded && !Mutant(kHandedToTheDestroyed)) End();
  if (state_ == State::kHeld) locks_.LeaveBehind(op_, leaf_.at(), held_);
}

LeafTurn* LeafTurn::Successor() const {
  return in_a_row_ < kMostInARow || Mutant(kHandedOverForEver) ? NextTurn() : nullptr;
}

void LeafTurn::End() {
  if (!has_lock()) return;
  LeafTurn* const next = Successor();
  if (next == nullptr) return Release();
  // The one for which the READs were posted may have been destroyed meanwhile.
  HandOver(*next, reads_posted_ && next->number_ == next_);
}

void LeafTurn::HandOver(LeafTurn& next, bool with_reads) {
  if (with_reads) next.TakeReads(room_);
  next.has_reads_ = with_reads;
  next.in_a_row_ = in_a_row_ + 1;
  next.held_ = held_;
  next.state_ = State::kHanded;
  state_ = State::kNoLock;
}

void LeafTurn::Release(Range range) {
  state_ = State::kNoLock;
  locks_.Unlock(op_, leaf_.at(), held_, range);
}

void LeafTurn::Fail() {
  if (state_ != State::kNoLock) Release(Range::kChanged);
}

bool LeafTurn::FitsInto(const Room& room) const {
  size_t bytes = 0;
  for (const fabric::ReadIntoVerb& read : leaf_.reads()) bytes += read.verb.size;
  return bytes <= room.size();
}

void LeafTurn::TakeReads(std::span<const std::byte> room) {
  for (const fabric::ReadIntoVerb& read : leaf_.reads()) {
    std::copy_n(room.begin(), read.verb.size, read.verb.into);
    room = room.subspan(read.verb.size);
  }
}

}  // namespace farside::index::chime
