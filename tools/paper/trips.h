// Round trips per operation of an engine, counted: one client, a simulated pool, keys and values of 8 bytes.
//
// Simulated, because clients sync by the clock as well: in virtual time, the counts are the same on every
// machine. One client, because what contention costs is measured elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fabric/counters.h"
#include "farside/result.h"
#include "index/index.h"
#include "tools/bench/run.h"

namespace farside::tools::paper {

struct TripsPlan {
  std::string engine;
  index::OptionMap options;
  uint64_t records = 1;
  bool puts = false;  // measures puts too, which takes time
  // Called behind each operation of the phases "inserts", "updates" and so on, with what it alone has
  // counted. May be empty.
  std::function<void(std::string_view phase, const fabric::OpTally& tally)> observe = {};
};

// What an operation of one kind cost on average.
struct KindTrips {
  uint64_t operations = 0;
  double index = 0;
  double end_to_end = 0;
  double maintenance = 0;  // inside of the operations; what is asked for beside them is in TripFigures
  fabric::OpTally tally;   // of all of them together
};

struct TripFigures {
  KindTrips insert;           // every record, from an empty table on
  KindTrips search;           // every record
  KindTrips absent;           // as many keys that are not there
  KindTrips repeated_search;  // every record, right after another search of it
  KindTrips update;           // every record
  KindTrips put;              // every record, which is there already; of plans with puts
  KindTrips scan;             // of 100 records, from every 100th record on; of engines that have an order
  KindTrips erase;            // every second record
  double maintenance_beside_inserts = 0;  // trips per insert: syncs, grace, memory
  index::TableStats loaded;               // when everything was inserted
};

// An operation that ends in another way than it must is an error: these are tables that remember.
Result<TripFigures> MeasureTrips(const TripsPlan& plan, const BenchProgress& progress);

}  // namespace farside::tools::paper
