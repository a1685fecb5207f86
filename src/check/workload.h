// What the clients of a checked run do: a short script for each, decided by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  std::optional<std::string> to = {};
  uint64_t limit = 0;

  Call call() const {
    Call call{.kind = kind, .key = key, .value = value, .expected = expected, .delta = delta, .limit = limit};
    if (to.has_value()) call.to = *to;
    return call;
  }
};

using Script = std::vector<ScriptedCall>;

struct Workload {
  std::vector<Script> scripts;    // one per client
  std::vector<std::string> keys;  // all keys that occur
  int nodes = 1;                  // of the pool
  int lanes = 1;                  // operations that a client has in flight
  int operations_until_idle = 3;  // then a client goes offline for a while
  bool evacuates = false;         // each client also evacuates what it has, again and again
  bool drops_a_table = false;     // each client also makes a second table in its script, and drops it
};

struct WorkloadShape {
  int clients = 4;
  int operations = 8;  // per client
  int keys = 3;
  int operations_until_idle = 3;
  bool evacuates = false;  // always, not by chance
};

// What the table takes, beside the shape that was asked for.
struct WorkloadFor {
  bool scans = false;                     // the table keeps its keys in order
  std::optional<size_t> fixed_size = {};  // of all keys and values
};

// The text as a key or a value of this size, if there is only one.
std::string Fitted(std::string text, std::optional<size_t> size);

// Few keys, so that clients meet; every value is written once, so that a wrong read shows whose it was. With
// scans, half of the reads become scans, and the rest is as it would be without.
Workload MakeWorkload(uint64_t seed, const WorkloadShape& shape, const WorkloadFor& table = {});

}  // namespace farside::check
