// Damaged pools: a table in a simulated pool whose bytes are damaged, and the commands that users give it.
//
//   DamagedPool pool("chime", options);
//   for (uint64_t seed = 0; seed < 100; ++seed) Findings found = pool.Try(seed);
//
// Far memory may hold any bytes. Whatever they are, a client ends each command with an answer or an error:
// within kMostTime of simulated time and kMostVerbs, and, if its record has a checksum, without a value that
// was never put. The same seed damages the same words of the same pool in every run.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "index/index.h"
#include "pool/region/layout.h"
#include "tests/damage/damage.h"

namespace farside::damage {

// Of one command. A client waits about a lease for what a dead client has left.
inline constexpr Nanos kMostTime = std::chrono::seconds(5);
inline constexpr Nanos kLease = std::chrono::seconds(1);
inline constexpr uint64_t kMostVerbs = 500'000;

// What a damage has hit.
enum class Damaged : uint8_t {
  kAnyBytes,
  kBlocks,  // and nothing else: every value is right, those that stand in an index without a checksum, too
};

// A word that changes while the commands run, when so many verbs of all clients have been posted.
struct LaterDamage {
  uint64_t verbs = 0;
  size_t node = 0;
  uint64_t offset = 0;
  uint64_t value = 0;
  bool adds = false;  // to what stands there
};

// What came of the commands on one pool.
struct Findings {
  std::vector<std::string> wrong;  // a line each
  std::string damage;              // what was done to the pool
  uint64_t commands = 0;
  uint64_t refused = 0;       // commands that ended with an error
  std::set<ErrorCode> codes;  // of these errors
  std::string last_error;
  Nanos longest{0};  // of a command, simulated
};

// What the table holds.
struct Content {
  std::vector<std::string> keys;
  std::map<std::string, std::set<std::string>> values;  // ever put, by key

  bool Has(const std::string& key, const std::string& value) const {
    const auto found = values.find(key);
    return found != values.end() && found->second.contains(value);
  }
};

class DamagedPool {
 public:
  // Makes the pool with its table. Nothing is damaged yet.
  DamagedPool(std::string_view engine, const index::OptionMap& options);

  // Damages a copy of the pool, and runs all commands on it.
  Findings Try(uint64_t seed) const;
  // The same with a damage of the caller's; `later` is what happens while the commands run.
  Findings TryWith(const Regions& regions, Damaged damaged = Damaged::kAnyBytes,
                   std::vector<LaterDamage> later = {}) const;

  const Regions& regions() const { return regions_; }

 private:
  const std::shared_ptr<index::Engine> engine_;
  Content content_;
  Regions regions_;
  std::unique_ptr<Targets> targets_;
};

// A pool for each set of options that `farside check` uses for the engine; a seed chooses one of them.
std::vector<DamagedPool> PoolsOf(std::string_view engine);

}  // namespace farside::damage
