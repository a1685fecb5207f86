// Runs in which keys go as often as they come, so that leaves become empty and are merged: checked like those
// of `farside check`, with scripts of their own.
#pragma once

#include <string>

#include "base/random.h"
#include "check/run.h"
#include "index/chime/chime.h"

namespace farside::index::chime {

struct DeleteHeavyOptions {
  int clients = 3;
  int operations = 12;  // of each
  int keys = 5;
};

// Says what was wrong first, and where; nothing if all is well.
std::string RunDeleteHeavyWorkload(uint64_t first_seed, uint64_t seeds, bool faults,
                                   const DeleteHeavyOptions& options = {});

// One fault at every verb of short scripts, in every way. Counts the places.
std::string PlayEbbAtEveryVerb(uint64_t first_seed, uint64_t seeds, uint64_t& places);

}  // namespace farside::index::chime
