// What one client does next: a stream of actions on records, decided by the seed and the number of the
// client.
//
// Clients draw independently of each other. What they draw is the same whenever they run; only where the
// newest record is, with inserts by others, depends on how far those have come (Frontier).
#pragma once

#include <cstdint>

#include "base/random.h"
#include "workload/frontier.h"
#include "workload/mix.h"
#include "workload/zipfian.h"

namespace farside::workload {

struct Shape {
  Mix mix;
  Distribution distribution = Distribution::kZipfian;
  uint64_t records = 1;  // loaded before the run
  uint64_t seed = 1;
};

struct Request {
  Action action = Action::kRead;
  uint64_t record = 0;  // of a scan: the first
  uint32_t length = 1;  // of a scan: records, at most
};

class Generator {
 public:
  // The frontier must outlive it.
  Generator(const Shape& shape, Frontier& frontier, uint64_t client);

  Request Next();

 private:
  Action DrawAction();
  uint64_t DrawRecord();

  const Shape shape_;
  Frontier& frontier_;
  Random random_;
  Zipfian zipfian_;
  Scramble scramble_;
};

}  // namespace farside::workload
