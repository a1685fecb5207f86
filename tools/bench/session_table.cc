#include "tools/bench/session_table.h"

#include "store/access.h"

namespace farside::tools {

// The public Traffic does not tell kinds of operations apart.
fabric::Counters& SessionTable::counters() {
  return store::Access::StateOf(session_).registration().client().counters();
}

Result<BenchSize> SessionTable::Measure() {
  Result<TableStats> stats = session_.Stats(table_);
  if (!stats.ok()) return stats.error();
  const BenchMemory memory{.index_bytes = stats->index_bytes, .block_bytes = stats->block_bytes};
  return BenchSize{.memory = memory, .stats = std::move(*stats)};
}

}  // namespace farside::tools
