// Programs that use an index.
#pragma once

#include <string>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/scenario.h"
#include "check/history.h"
#include "index/index.h"
#include "pool/client.h"
#include "pool/region/superblock.h"

namespace farside::check {

struct CallsOptions {
  // The first operation that fails ends the program, which is then stuck; for clients that run undisturbed.
  // Otherwise the failure is recorded, and the next operation tried.
  bool must_succeed = false;
};

// The pool that is explored: as small as can be.
inline constexpr pool::FormatOptions kExploredFormat{
    .client_slots = 8, .table_slots = 1, .chunk_bytes = 4096};
inline constexpr uint64_t kExploredRegionBytes = 12 * pool::kPage;

// Makes a pool with an empty table.
Program Format(index::Engine& engine, pool::ClientOptions options);

// Does these calls one after the other, through an index of its own. The bytes that the calls point to and
// the engine must outlive the program.
Program Calls(index::Engine& engine, pool::ClientOptions pool_options, std::vector<Call> calls,
              CallsOptions options = {});

// Fails if the table is damaged. For a client that runs alone.
Program Verify(index::Engine& engine, pool::ClientOptions options);

}  // namespace farside::check
