// A lock word in far memory, held by a member of the pool. Taken and given back by CAS; taken from an owner
// that is gone, never from one that is only slow.
#pragma once

#include <cstdint>

#include "fabric/op.h"
#include "farside/task.h"
#include "pool/members/membership.h"

namespace farside::pool {

enum class Acquired : uint8_t {
  kFree,       // no client held it
  kTakenOver,  // its owner died with it: whatever it guards may be half done
};

// Waits until this member holds the lock. kContended after a bounded number of attempts.
Task<Acquired> AcquireLock(fabric::Op& op, Membership& member, uint64_t offset);
Task<Done> ReleaseLock(fabric::Op& op, Membership& member, uint64_t offset);

}  // namespace farside::pool
