// A simulated run of clients that change keys of a table and search several of them at a time
// (Index::SearchTogether), which the scripts of check::Run do not do.
#pragma once

#include <cstdint>

#include "fabric/sim/verb_digest.h"
#include "index/index.h"

namespace farside::trace {

// The digest takes in every verb of the run. The seed decides everything else.
void RunBatches(index::Engine& engine, uint64_t seed, fabric::sim::VerbDigest& digest);

}  // namespace farside::trace
