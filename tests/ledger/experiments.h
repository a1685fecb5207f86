// What the ledger measures: every engine of the registry, on every workload that it can do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"
#include "index/index.h"
#include "tests/ledger/figures.h"

namespace farside::ledger {

// A table that is measured: an engine, and options that say how it is used.
struct Subject {
  std::string engine;
  index::OptionMap options;
  uint64_t records;
  bool scans;  // runs that scan are measured

  std::string label() const;  // "chime keys=inline"
};

// Of every engine in store::Engines(), its default options; and further options that docs/ speaks of.
std::vector<Subject> Subjects();

// One client, one kind of operation after the other: what each kind costs where no other client is in its
// way.
Status MeasureKinds(const Subject& subject, Figures& figures);
// 64 clients on the simulated cluster, one workload after the other.
Status MeasureWorkloads(const Subject& subject, Figures& figures);
// Inserts of shard by alpha, exactly as `farside paper shard-figure18` measures them.
Status MeasureAlphas(Figures& figures);

}  // namespace farside::ledger
