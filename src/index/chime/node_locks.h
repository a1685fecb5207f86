// The locks of nodes. A lock word names its owner; a waiting client takes the lock over from an owner that is
// gone (recovery.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "farside/task.h"
#include "index/chime/layout.h"
#include "index/chime/table_context.h"
#include "index/kit/lock_release.h"
#include "pool/members/membership.h"

namespace farside::index::chime {

class Recovery;

// How long to wait for the lock of an owner that may be dead.
enum class LockWait : uint8_t {
  kBrief,  // as long as a pin may be held (chime/10)
  kLong,   // until the owner is fenced; for operations that look through the whole table
};

// Whether the holder of a leaf's lock has changed the range of the leaf: then the count is raised (chime/14).
enum class Range : uint8_t { kSame, kChanged };

// What a client has seen of a leaf that it READs again and again, because its entries are on the move.
class TornReads {
 public:
  // The header of the next READ.
  void Note(const Header& header) {
    ++times_;
    if (header.moves != moves_) free_ = 0;
    moves_ = header.moves;
    if (header.moves % 2 != 0 && NodeLock(header.lock).free()) ++free_;
  }
  int times() const { return times_; }
  // INVARIANT chime/4: only the lock's holder makes `moves` odd, and makes it even before it unlocks; and the
  // lock of a dead holder stays until another client has brought the leaf to rest. Lock and `moves` stand in
  // one line, which a READ shows as it was at one moment. So one READ of an odd number beside a free lock
  // would be proof; the client asks for some of the same number, each of another trip.
  bool ProveDamage() const { return free_ >= kProof; }

 private:
  static constexpr int kProof = 4;

  int times_ = 0;
  int free_ = 0;  // READs that showed `moves_`, odd, beside a free lock
  uint64_t moves_ = 0;
};

class NodeLocks {
 public:
  NodeLocks(const TableContext& table, Recovery& recovery) : table_(table), recovery_(recovery) {}

  // Takes the lock of a node, and READs behind it in the same trip. If a dead owner left the node half
  // changed, it is repaired first. kContended if that takes longer than a pin may be held (chime/10). `hint`:
  // what the client thinks that the word is; a wrong one does no harm (fabric/4). Returns the word.
  Task<NodeLock> Lock(fabric::Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads,
                      NodeLock hint = NodeLock());
  // One attempt. Returns the word as it was: if it was free, the lock is taken, and `reads` are done.
  Task<NodeLock> TryLock(fabric::Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads,
                         NodeLock hint = NodeLock());
  // What is to be READ under a lock that this client holds.
  static Task<Done> ReadAll(fabric::Op& op, std::span<const fabric::ReadIntoVerb> reads);
  // The locks of two nodes, or none. True: both are taken, and what was asked for is READ behind each.
  Task<bool> TryLockTwo(fabric::Op& op, NodePtr first, std::span<const fabric::ReadIntoVerb> of_first,
                        NodePtr second, std::span<const fabric::ReadIntoVerb> of_second);
  // Not awaited: the client's epoch waits for it (pool/1). The first is for inner nodes, the second for
  // leaves: `held` is the word of the lock, whose count stays or is raised.
  void Unlock(fabric::Op& op, NodePtr at) const { ReleaseOf(at, HeldBySelf(at)).Detach(op); }
  void Unlock(fabric::Op& op, NodePtr at, NodeLock held, Range range = Range::kSame) const {
    ReleaseOf(at, held, range).Detach(op);
  }
  // An operation was destroyed, or has failed, while it held the lock. The lock is released when nothing of
  // this client is in flight any more that might belong to that operation: now, or before a lock is taken
  // again.
  void LeaveBehind(fabric::Op& op, NodePtr at, NodeLock held);
  // Takes the lock and releases it: afterwards no dead client holds it.
  Task<Done> AwaitUnlocked(fabric::Op& op, NodePtr at, LockWait wait = LockWait::kBrief);
  // For a client that has READ a leaf while its entries were on the move: lets it READ again at once, or
  // waits first. The client that moves them may be dead: then the client that takes the lock brings the leaf
  // to rest. kCorrupt if no client moves them.
  Task<Done> AwaitRest(fabric::Op& op, NodePtr leaf, TornReads torn, LockWait wait = LockWait::kBrief);

  // Of an inner node, the word of the lock that this client holds.
  NodeLock HeldBySelf(NodePtr at, NodeLock free = NodeLock()) const {
    return free.HeldBy(table_.MemberOf(at).self());
  }
  // For trips that unlock together with something else.
  LockRelease ReleaseOf(NodePtr at, NodeLock held, Range range = Range::kSame) const {
    const NodeLock free = range == Range::kSame ? held.Freed() : held.Freed().Raised();
    return LockRelease(LockAt(at), held.word(), free.word());
  }

 private:
  Task<bool> TryLockOnTwoNodes(fabric::Op& op, NodePtr first, std::span<const fabric::ReadIntoVerb> of_first,
                               NodePtr second, std::span<const fabric::ReadIntoVerb> of_second);
  // Whether the lock names this client, although no operation of this client holds it.
  Task<bool> IsOwnByMistake(fabric::Op& op, NodePtr at);
  void ReleaseLeftBehind(fabric::Op& op);
  fabric::FarAddr LockAt(NodePtr at) const { return table_.At(at) + kLockOffset; }
  fabric::AtomicVerb LockVerb(NodePtr at, NodeLock hint = NodeLock()) const;

  struct LeftBehind {
    NodePtr at;
    NodeLock held;
    uint64_t posted;  // trips of this client so far
  };

  const TableContext& table_;
  Recovery& recovery_;
  std::vector<LeftBehind> left_behind_;
};

}  // namespace farside::index::chime
