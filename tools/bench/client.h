// A client of a benchmark: a table, with a number of operations in flight that never goes down.
//
// Workers are coroutines. Each performs one operation after the other, so `depth` workers keep `depth`
// operations in flight. The same code runs on every fabric; table.h says what is behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/task.h"
#include "tools/bench/phase.h"
#include "tools/bench/table.h"
#include "workload/generator.h"

namespace farside::tools {

class BenchClient {
 public:
  BenchClient(uint64_t number, std::unique_ptr<BenchTable> table)
      : number_(number), table_(std::move(table)) {}
  BenchClient(const BenchClient&) = delete;
  BenchClient& operator=(const BenchClient&) = delete;

  // Runs `depth` workers of a phase (BenchTable::RunAll). The phase must outlive them.
  Status Run(BenchPhase& phase, uint32_t depth);
  // Whether all of them have ended.
  bool done() const;
  // Of the phase that has ended.
  const BenchTally& tally() const { return tally_; }

  BenchTable& table() { return *table_; }

 private:
  struct Buffers {
    std::string key;
    std::string value;
    std::string read;
    KeyRange range;
    std::vector<Record> page;
  };

  Task<Done> Worker();
  Task<Done> Perform(workload::Request request, Buffers& buffers);
  Task<Done> Read(Buffers& buffers);
  Task<Done> Update(Buffers& buffers);
  Task<Done> ReadAndUpdate(Buffers& buffers);
  Task<Done> Scan(uint32_t length, Buffers& buffers);
  // What is wrong with the page that a scan returned; empty if nothing is.
  std::string ProblemOf(const Buffers& buffers, uint32_t length) const;
  Task<Done> Insert(uint64_t record, Buffers& buffers);
  Task<bool> InsertUncontended(Buffers& buffers);
  // The worker is the last one that has ended.
  Task<Done> End();
  std::optional<workload::Request> NextRequest(Nanos now);
  void FillNewValue(Buffers& buffers);
  void CountInWindow(Nanos end);
  void CountError(std::string what);
  // True if the run goes on without this operation.
  bool Survives(const Error& error, const char* what);

  const uint64_t number_;
  const std::unique_ptr<BenchTable> table_;

  // ---- of the current phase
  BenchPhase* phase_ = nullptr;
  std::optional<workload::Generator> generator_;
  BenchTally tally_;
  uint64_t next_ = 0;  // number of the operation that it issues next, if any are left
  uint64_t left_ = 0;
  Nanos deadline_{0};
  uint32_t working_ = 0;             // workers that have not ended
  bool counting_ = false;            // a worker has begun, so that counters are those of the phase
  uint32_t versions_ = 0;            // values written so far
  uint64_t growth_seen_ = 0;         // of the table, at the last look
  std::vector<Task<Done>> workers_;  // ended before the table
};

}  // namespace farside::tools
