// The systems of a benchmark, by what the command line calls them:
//
//   farside:URL              a pool; embedded: is given as much memory as it takes
//   farside:served:tcp       a pool of `farside serve`, started for this, over tcp
//   farside:served:shm       the same in shared memory
//   farside+cache:...        the same with a location cache that has room for all records
//   redis:tcp  redis:unix    redis-server, started for this
//   memcached:tcp:1          memcached with one worker thread, started for this; also memcached:unix:4
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peers/daemons.h"
#include "bench/peers/interrupt.h"
#include "bench/peers/process.h"
#include "bench/peers/system.h"
#include "farside/result.h"

namespace farside::peers {

struct SystemSpec {
  enum class Kind { kFarside, kRedis, kMemcached };

  Kind kind = Kind::kFarside;
  std::string url;           // of kFarside; also "served:tcp" and "served:shm"
  bool cache = false;        // of kFarside
  bool unix_socket = false;  // of the others
  unsigned threads = 1;      // of kMemcached

  // As in results: "farside embedded, cache", "memcached -t 4, tcp".
  std::string Name() const;
};

Result<SystemSpec> ParseSpec(std::string_view text);

struct LineUpOptions {
  std::vector<SystemSpec> specs;
  uint64_t records = 0;
  size_t value_size = 0;
  uint32_t connections = 1;  // at most, of each system
  std::string farside_program;
};

// The systems, and the servers that were started for them. They are ended with it, whatever happens.
class LineUp {
 public:
  static Result<LineUp> Start(const LineUpOptions& options, Interrupt& interrupt);
  LineUp(LineUp&&) = default;
  LineUp& operator=(LineUp&&) = delete;

  const std::vector<std::unique_ptr<System>>& systems() const { return systems_; }

 private:
  explicit LineUp(TemporaryFolder folder) : folder_(std::move(folder)) {}

  Status Add(const SystemSpec& spec, const LineUpOptions& options, Interrupt& interrupt);
  Status AddFarside(const SystemSpec& spec, const LineUpOptions& options, Interrupt& interrupt);
  Status AddRedis(const SystemSpec& spec, Interrupt& interrupt);
  Status AddMemcached(const SystemSpec& spec, const LineUpOptions& options, Interrupt& interrupt);

  // In this order, so that systems are gone before the servers, and these before their folder.
  TemporaryFolder folder_;
  std::optional<RedisDaemon> redis_;
  std::optional<FarsideDaemon> farside_;
  std::list<MemcachedDaemon> memcached_;
  std::vector<std::unique_ptr<System>> systems_;
};

}  // namespace farside::peers
