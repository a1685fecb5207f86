// Programs that use an index.
#pragma once

#include <string>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/scenario.h"
#include "check/history.h"
#include "index/index.h"

namespace farside::check {

struct CallsOptions {
  // The first operation that fails ends the program, which is then stuck; for clients that nobody disturbs.
  // Otherwise the failure is recorded, and the next operation tried.
  bool must_succeed = false;
  // Each call has an index of its own, so that nothing is remembered from one to the next: far fewer states.
  // Not for engines whose caches are in question.
  bool fresh_index = false;
};

// Makes an empty table.
Program Format(index::Engine& engine);

// Does these calls one after the other, through an index of its own. The bytes that the calls point to and
// the engine must outlive the program.
Program Calls(index::Engine& engine, std::vector<Call> calls, CallsOptions options = {});

// Fails if the table is damaged. For a client that runs alone.
Program Verify(index::Engine& engine);

}  // namespace farside::check
