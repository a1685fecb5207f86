// A table as one client of a benchmark uses it. There are two kinds:
//
//   SessionTable   real fabrics: through the public interface of the library, as programs do
//   IndexTable     sim: an index of a simulated client; all clients share one thread and virtual time
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/counters.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/task.h"
#include "tools/bench/phase.h"

namespace farside::tools {

// Far memory of a table.
struct BenchMemory {
  uint64_t index_bytes = 0;
  uint64_t block_bytes = 0;
};

struct BenchSize {
  BenchMemory memory;
  TableStats stats;
};

class BenchTable {
 public:
  virtual ~BenchTable() = default;

  // ---- operations; arguments stay until the task has ended
  virtual Task<bool> Get(std::string_view key, std::string& value) = 0;
  virtual Task<bool> Insert(std::string_view key, std::string_view value) = 0;
  virtual Task<Done> Put(std::string_view key, std::string_view value) = 0;
  virtual Task<bool> Update(std::string_view key, std::string_view value) = 0;
  virtual Task<bool> Scan(const KeyRange& range, size_t limit, std::vector<Record>& page) = 0;

  // Runs the tasks to their end, all at once. Simulated clients share a thread, so there the tasks are only
  // started, and the world goes on with them.
  virtual Status RunAll(std::span<Task<Done>> tasks) = 0;
  virtual Nanos Now() const = 0;
  // Counters of the client's operations; while a task runs.
  virtual fabric::Counters& counters() = 0;
  virtual Result<BenchSize> Measure() = 0;

  // ---- what a session does by itself
  // Whether the client has to do something between two operations.
  virtual bool MaintenanceDue() const { return false; }
  virtual Task<Done> Maintain() { co_return Done{}; }
  // For a client that has nothing left to do: syncs until all clients of the phase have ended.
  virtual Task<Done> AwaitEnd(BenchPhase& /*phase*/) { co_return Done{}; }
  // Index::growth.
  virtual uint64_t growth() const { return 0; }
};

}  // namespace farside::tools
