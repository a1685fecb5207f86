// Releasing a lock: a word that a client changes by a CAS from free to its own name, and that is taken from
// it only when it was fenced.
//
// Where failed CAS store nothing (fabric/47), a lock is released by a WRITE. A CAS is the dearest verb of a
// card, and a WRITE needs no answer. Elsewhere a WRITE may be lost beside a CAS of a client that waits
// (freedom/23), so it is a CAS. Clients that release in either way may share a lock.
//
// INVARIANT lock/1: The WRITE is not lost, and changes no other client's lock. While this client holds the
// lock, others try a CAS from free, which fails, or from its name when it was fenced, or has left (pool/2); and
// then no verb of it takes effect any more. So no atomic on the word succeeds (freedom/8) until the WRITE has
// taken effect. It has to be posted
//   - behind the trip that has taken the lock: a WRITE may overtake the CAS of its own trip (freedom/3);
//   - in order behind the last change, in its trip or when that has completed: the next client reads at once;
//   - exactly once: a second one would release what another client has taken. After a trip with a release has
//     failed, the node takes no verb of this client any more (fabric/24, fabric/26), or none of the trip has
//     taken effect (fabric/9), so a release that is repeated then does no harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/op.h"

namespace farside::index {

// Stays where it is until its trip has ended.
class LockRelease {
 public:
  // `held`: the word as it is while this client holds the lock; `free`: what it becomes.
  LockRelease(fabric::FarAddr lock, uint64_t held, uint64_t free = 0)
      : lock_(lock), held_(held), free_(free) {}

  // As the last verb that changes anything.
  template <class Trip>
  void AddTo(Trip& trip, fabric::Op& op) {
    if (!GoesAlong(op)) return;
    if (IsByWrite(op)) {
      trip.Add(fabric::WriteObject(lock_, free_));
    } else {
      cas_ = trip.Add(fabric::Cas(lock_, held_, free_));
    }
  }
  // When that trip has ended: whether another client had taken the lock from this one.
  template <class Trip>
  bool WasLost(const Trip& trip) const {
    return cas_.has_value() && trip.Old(*cas_) != held_;
  }

  // Or in a trip of its own that is not awaited: the client's epoch waits for it (pool/1).
  void Detach(fabric::Op& op) const;

 private:
  static bool IsByWrite(fabric::Op& op);
  // True, but for planted bugs.
  bool GoesAlong(fabric::Op& op) const;

  const fabric::FarAddr lock_;
  const uint64_t held_;
  const uint64_t free_;
  std::optional<size_t> cas_;
};

}  // namespace farside::index
