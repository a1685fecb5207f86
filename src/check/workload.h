// What the clients of a checked run do: a short script for each, decided by a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/history.h"

namespace farside::check {

// A Call that owns its bytes.
struct ScriptedCall {
  Kind kind = Kind::kGet;
  std::string key = {};
  std::string value = {};
  std::string expected = {};
  uint64_t delta = 0;

  Call call() const {
    return {.kind = kind, .key = key, .value = value, .expected = expected, .delta = delta};
  }
};

using Script = std::vector<ScriptedCall>;

struct Workload {
  std::vector<Script> scripts;    // one per client
  std::vector<std::string> keys;  // all keys that occur
  int nodes = 1;                  // of the pool
  int lanes = 1;                  // operations that a client has in flight
  bool drops_a_table =
      false;  // each client also makes a second table in the middle of its script, and drops it
};

struct WorkloadShape {
  int clients = 4;
  int operations = 8;  // per client
  int keys = 3;
};

// Few keys, so that clients meet; every value is written once, so that a wrong read shows whose it was.
Workload MakeWorkload(uint64_t seed, const WorkloadShape& shape);

}  // namespace farside::check
