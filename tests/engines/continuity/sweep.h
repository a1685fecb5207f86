// What a power cut may leave of a continuity table, at every moment of scripts of changes (check/power).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/power/power_sweep.h"
#include "check/power/survivors.h"
#include "index/continuity/layout.h"
#include "tests/engines/continuity/bare_table.h"

namespace farside::index::continuity {

struct SweepScript {
  std::string name;
  Shape shape;
  std::vector<BareChange> changes;
};

struct SweepReport {
  std::string problem;  // the first one, or nothing
  check::PowerSweep::Counts counts;
  uint64_t groups = 0;  // linked by the script
  uint64_t tables = 0;  // that the table has grown into
};

// Of every state it asks: are the records those of the changes that were acknowledged, or of these and of the
// one that was under way, each exactly once and whole? Is what a reader has seen there? Is all memory that
// the table uses its own, and used once? When no change is under way, it must be all that was linked and not
// unlinked. Some states are taken further: their growth ends, and their keys are deleted one by one.
SweepReport Sweep(const SweepScript& script, check::SurvivorLimits limits, uint64_t seed = 1);

// One for each kind of step that there is.
std::vector<SweepScript> PowerScripts();
// Changes by chance of a few keys in a table of few slots.
SweepScript ScriptByChance(uint64_t seed, size_t changes);

}  // namespace farside::index::continuity
