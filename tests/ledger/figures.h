// Figures of a measurement by their names, "shard | load | insert | index trips": which table, which run,
// which kind of operation, and what was counted. They are counts and virtual times, so they are the same on
// every machine.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fabric/counters.h"
#include "tools/bench/client.h"

namespace farside::ledger {

class Figures {
 public:
  // What an operation of one kind cost on average: trips, verbs by type, and bytes each way. Maintenance is
  // left out.
  void AddKind(std::string_view run, std::string_view kind, const fabric::OpTally& tally);
  // Throughput of a run, the trips of each kind of its operations, and what an operation of any kind cost.
  void AddRun(std::string_view run, const tools::BenchTally& tally);
  void AddRate(std::string_view run, double per_second);
  void AddShareOfRaw(std::string_view run, double share);

  // One JSON object, one figure a line, sorted.
  std::string ToJson() const;

 private:
  void AddTrips(const std::string& prefix, const fabric::OpTally& tally);
  void AddVerbs(const std::string& prefix, const fabric::OpTally& tally);
  // A count or an amount of bytes of one operation. What rounds to nothing is no figure.
  void Add(const std::string& name, double amount, int decimals);

  std::map<std::string, std::string> figures_;  // as they are written
};

}  // namespace farside::ledger
