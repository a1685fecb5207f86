// Turns of the changes of one client at a leaf. Together they would only wait for each other's lock, trip by
// trip; so one goes after the other, and hands the lock over: what the next one has to READ goes along in the
// trip of the last WRITE, and the next one goes on when that trip has completed.
//
//   LeafTurn turn(turns, locks, op, leaf);
//   if (!turn.is_first()) co_await turn;
//   ...                                    takes the lock, unless turn.has_lock()
//   turn.AddEnd(trip);                     in order behind the change: the release, or READs for the next one
//   co_await trip;
//   turn.End();                            hands the lock over
//
// INVARIANT chime/13: A lock is handed over
//   - when the trip of the change has completed, never when it is only posted;
//   - with the leaf at rest: after a WRITE of one entry, after moves, or after nothing; not after a delete,
//     a split or an error;
//   - to a change of the same leaf, which has its own pin, is older than the hand-over, and goes by what was
//     READ under the lock;
//   - at most kMostInARow times in a row, so that other clients have their turn.
// A change that is destroyed hands over or releases the lock that it has, but not while a trip of it is in
// flight, which would land under the lock of another client (NodeLocks::LeaveBehind).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "index/chime/layout.h"
#include "index/chime/leaf_under_lock.h"
#include "index/chime/node_locks.h"
#include "index/kit/key_queue.h"
#include "index/kit/lock_release.h"

namespace farside::index::chime {

class LeafTurn;

// Of one client.
class LeafTurns {
 private:
  friend class LeafTurn;
  KeyQueue queue_;
  uint64_t count_ = 0;
};

// In the frame of a change. All that is named outlives it.
class LeafTurn : public index::Ticket {
 public:
  static constexpr int kMostInARow = 8;

  LeafTurn(LeafTurns& turns, NodeLocks& locks, fabric::Op& op, LeafUnderLock& leaf)
      : Ticket(turns.queue_, op.client(), leaf.at().word()),
        locks_(locks),
        op_(op),
        leaf_(leaf),
        number_(++turns.count_) {}
  ~LeafTurn();

  // Whether the change before has handed the lock over; and has READ for this one.
  bool has_lock() const { return state_ == State::kHanded || state_ == State::kHeld; }
  bool has_reads() const { return has_reads_; }
  // The word of the lock.
  NodeLock held() const { return held_; }
  // The change goes on, with the lock that it has taken or was handed.
  void Begin(NodeLock held) {
    held_ = held;
    state_ = State::kHeld;
  }

  // Whether there is a change to hand the lock over to.
  bool HandsOver() const { return Successor() != nullptr; }
  // Behind the last WRITE. The trip is posted next, and awaited.
  template <class Trip>
  void AddEnd(Trip& trip) {
    if (LeafTurn* const next = Successor(); next != nullptr) {
      next_ = next->number_;
      reads_posted_ = next->AddReads(trip, held_, room_);
    } else {
      AddRelease(trip);
    }
  }
  // The same without a hand-over.
  template <class Trip>
  void AddRelease(Trip& trip, Range range = Range::kSame) {
    release_.emplace(locks_.ReleaseOf(leaf_.at(), held_, range));
    release_->AddTo(trip, op_);
    state_ = State::kReleasing;
  }
  // When that trip has completed: whether another client had taken the lock from this one.
  template <class Trip>
  bool WasLost(const Trip& trip) const {
    return release_.has_value() && release_->WasLost(trip);
  }
  // Hands the lock over, unless it is released.
  void End();
  // Not awaited.
  void Release(Range range = Range::kSame);
  // The change has failed, perhaps by the trip that was to release the lock: then that has changed nothing,
  // or the node takes no verb of this client any more (lock/1).
  void Fail();
  // Keeps the lock for ever: for a planted bug.
  void Forget() { state_ = State::kNoLock; }

 private:
  enum class State : uint8_t {
    kNoLock,
    kHanded,  // the change has not gone on yet
    kHeld,
    kReleasing,  // by a trip that is posted
  };
  // The header and a neighbourhood. Whole leaves are READ by the next change itself.
  using Room = std::array<std::byte, pool::kLine + kMostNeighbourhood * kEntryBytes>;

  LeafTurn* NextTurn() const { return static_cast<LeafTurn*>(Next()); }
  LeafTurn* Successor() const;
  void HandOver(LeafTurn& next, bool with_reads);

  // Adds what this change READs, with other room for it. False: that is more than there is room for.
  template <class Trip>
  bool AddReads(Trip& trip, NodeLock held, Room& room) {
    leaf_.ReadLess(held);
    if (!FitsInto(room)) return false;
    std::span<std::byte> rest = room;
    for (const fabric::ReadIntoVerb& read : leaf_.reads()) {
      trip.Add(fabric::Read(read.verb.at, rest.first(read.verb.size)));
      rest = rest.subspan(read.verb.size);
    }
    return true;
  }
  bool FitsInto(const Room& room) const;
  void TakeReads(std::span<const std::byte> room);

  NodeLocks& locks_;
  fabric::Op& op_;
  LeafUnderLock& leaf_;
  const uint64_t number_;
  NodeLock held_;
  State state_ = State::kNoLock;
  bool has_reads_ = false;
  int in_a_row_ = 0;  // hand-overs up to this change
  std::optional<LockRelease> release_;
  uint64_t next_ = 0;  // the change for which the READs were posted
  bool reads_posted_ = false;
  Room room_;
};

}  // namespace farside::index::chime
