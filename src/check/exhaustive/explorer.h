// Bounded exhaustive exploration: all interleavings, at the granularity of verbs, of a few clients that
// run real coroutines on a tiny region.
//
//   Scenario scenario;
//   scenario.participants = {{.program = ...}, {.program = ..., .may_die = true}};
//   const Exploration found = Explore(scenario);
//   EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
//
// Every history must be linearizable; see also Scenario for other things that are checked. It is a
// depth-first search over states, with a set of the hashes of those seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/exhaustive/conclusion.h"
#include "check/exhaustive/scenario.h"

namespace farside::check {

// Which of the possible steps was taken, one after the other.
using Schedule = std::vector<uint32_t>;

struct Exploration {
  Conclusion conclusion = Conclusion::kNothing;
  std::string what;  // in a sentence; empty for kNothing

  uint64_t states = 0;     // distinct ones
  uint64_t steps = 0;      // taken, most of them to states that were known
  uint64_t histories = 0;  // classes of histories with different futures
  uint64_t runs = 0;       // of programs
  uint64_t depth = 0;      // steps of the longest path
  uint64_t cut = 0;        // paths that were not followed, see Scenario::max_trips

  // Of what is wrong. Replay(scenario, schedule) gives the same trace again.
  Schedule schedule;
  std::vector<std::string> trace;
  std::string chart;  // the history, see check/history.h

  // All of it, readable.
  std::string ToString() const;
};

// Looks for the first thing that is wrong, and then for a short way to it.
Exploration Explore(const Scenario& scenario);

// Takes these steps, as far as they go.
Exploration Replay(const Scenario& scenario, const Schedule& schedule);

}  // namespace farside::check
