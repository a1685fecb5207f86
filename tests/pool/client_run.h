// The same structure as in epoch_run.h, through PoolClient: its pins, its syncs, its allocator.
//
// A root word names a block. Writers replace it, retire the old one, and get its memory again from the
// allocator; readers follow it within an operation, in the middle of which their client syncs and maintains,
// and must find what the root has told them.
#pragma once

#include "pool/client.h"
#include "tests/pool/members/epoch_run.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {

// Whether clients go offline between operations, and come back.
enum class Presence : uint8_t { kStays, kComesAndGoes };

EpochOutcome RunPinned(fabric::sim::SimOptions options, Presence presence = Presence::kStays);

}  // namespace farside::pool
