// Clients that take turns under one lock in far memory, and die with it.
//
// The lock guards two words that are always equal, except in the middle of a client's turn. A turn adds one
// to both, with a trip for each step. So a client that finds them different, though no client is said to have
// died with the lock, or finds fewer turns than were completed, has met a client that was inside at the same
// time.
#pragma once

#include "tests/pool/pool_run.h"

namespace farside::pool {

inline constexpr uint64_t kTestLock = 128 * 1024;

struct Turns {
  uint64_t completed = 0;
  uint64_t taken_over = 0;
};

Task<Done> TakeTurns(Membership& member, PoolRun& run, Turns& turns, int& left);

RunOutcome RunLocks(fabric::sim::SimOptions options, int clients = 3, int turns_of_each = 2);

}  // namespace farside::pool
