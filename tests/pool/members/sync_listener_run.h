// A word that rides with every sync, and clients that must know it (pool/4): one of them changes the word and
// waits for grace; when it is told that the grace is over, no operation in flight may be one that knows the
// old word.
#pragma once

#include "pool/client.h"
#include "tests/pool/members/epoch_run.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {

EpochOutcome RunSyncListeners(fabric::sim::SimOptions options, bool ordered_reads);

}  // namespace farside::pool
