// One checked run: several clients join a pool in the simulated world, run their scripts on a table and
// leave; some of them die or fall asleep; and the history they saw is checked.
//
// When all scripts have ended, an auditor reads and writes every key, verifies the table and waits until the
// slots of dead clients are released, so that a lost value, a broken invariant or a lock that no client can
// take becomes visible. Then fsck must find every byte free or reachable; and once more when the table is
// dropped.
//
// If the engine claims to survive power cuts, the nodes of the world are durable, and may lose their power. A
// node that has it back is recovered before it serves clients, and clients that had been connected to it come
// back as new ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "check/history.h"
#include "check/linearizability.h"
#include "check/workload.h"
#include "fabric/sim/sim.h"
#include "index/index.h"

namespace farside::check {

struct RunReport {
  bool ok() const { return problem.empty(); }
  // Nothing is known to be wrong, but the checker gave up before it could tell. Neither ok nor a violation.
  bool undecided() const { return verdict.answer == Answer::kUndecided && problem == ToString(verdict); }

  std::string problem;  // empty, or what is wrong or undecided in a line
  History history;
  Verdict verdict;
  uint64_t operations = 0;
  uint64_t verbs = 0;         // of all clients
  uint64_t script_verbs = 0;  // without the auditor's
  uint64_t script_steps = 0;  // of handlers of durable nodes, likewise
  uint64_t power_cuts = 0;
  uint64_t deaths_offline = 0;  // of clients on their way offline, or back
  uint64_t evacuated = 0;       // records that were moved by evacuations
  bool has_faults = false;      // the world was allowed to break things
  bool exact = false;           // by one fault at one place
  bool fault_fired = false;     // the one fault that was asked for has happened
};

// `options.region_bytes` and the longest sleep are set here: regions for the engine, sleeps that outlast the
// lease.
RunReport Run(index::Engine& engine, const Workload& workload, fabric::sim::SimOptions options);

}  // namespace farside::check
