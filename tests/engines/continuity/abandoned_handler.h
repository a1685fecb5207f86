// Handlers that give up on a line which a client of shared memory holds (fabric/46).
#pragma once

#include <cstdint>
#include <string>

namespace farside::index::continuity {

struct AbandonedReport {
  std::string problem;     // the first one, or nothing
  uint64_t abandoned = 0;  // handlers that gave up
  uint64_t groups = 0;     // linked by the changes
  uint64_t tables = 0;     // that the table has grown into
};

// Changes of a few keys; in each, a handler gives up at every load and every store in turn. Are older records
// there, whole and once; is the change made or not; and does the next handler end what readers wait for?
AbandonedReport HandlersGiveUp();

}  // namespace farside::index::continuity
