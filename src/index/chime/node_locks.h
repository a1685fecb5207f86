// The locks of nodes. A lock word names its owner; a waiting client takes the lock over from an owner that is
// gone (recovery.h).
#pragma once

#include <cstdint>
#include <span>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "farside/task.h"
#include "index/chime/layout.h"
#include "index/chime/table_context.h"
#include "pool/members/membership.h"

namespace farside::index::chime {

class Recovery;

// How long to wait for the lock of an owner that may be dead.
enum class LockWait : uint8_t {
  kBrief,  // as long as a pin may be held (chime/10)
  kLong,   // until the owner is fenced; for operations that look through the whole table
};

class NodeLocks {
 public:
  NodeLocks(const TableContext& table, Recovery& recovery) : table_(table), recovery_(recovery) {}

  // Takes the lock of a node, and READs behind it in the same trip. If a dead owner left the node half
  // changed, it is repaired first. kContended if that takes longer than a pin may be held (chime/10).
  Task<Done> Lock(fabric::Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads);
  // One attempt. 0: the lock is taken, and `reads` are done; otherwise the word of the lock's owner.
  Task<uint64_t> TryLock(fabric::Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads);
  // Not awaited: the client's epoch waits for it (pool/1).
  void Unlock(fabric::Op& op, NodePtr at) const;
  // Takes the lock and releases it: afterwards no dead client holds it.
  Task<Done> AwaitUnlocked(fabric::Op& op, NodePtr at, LockWait wait = LockWait::kBrief);
  // For a client that has READ a leaf, `times` times by now, while its entries were on the move: lets it READ
  // again at once, or waits first. The client that moves them may be dead: then the client that takes the
  // lock brings the leaf to rest.
  Task<Done> AwaitRest(fabric::Op& op, NodePtr leaf, int times, LockWait wait = LockWait::kBrief);

  // For trips that lock or unlock together with something else.
  uint64_t HeldBySelf(NodePtr at) const { return pool::LockWord::HeldBy(table_.MemberOf(at).self()).word(); }
  fabric::AtomicVerb LockVerb(NodePtr at) const {
    return fabric::Cas(table_.At(at) + kLockOffset, 0, HeldBySelf(at));
  }
  fabric::AtomicVerb UnlockVerb(NodePtr at) const {
    return fabric::Cas(table_.At(at) + kLockOffset, HeldBySelf(at), 0);
  }

 private:
  static Task<Done> ReadAll(fabric::Op& op, std::span<const fabric::ReadIntoVerb> reads);

  const TableContext& table_;
  Recovery& recovery_;
};

}  // namespace farside::index::chime
