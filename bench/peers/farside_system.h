// Farside by its public interface: a table of a pool that is opened by a URL, a session for each connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "bench/peers/system.h"
#include "farside/result.h"

namespace farside::peers {

struct FarsideOptions {
  std::string name;  // "farside, embedded"
  std::string url;
  std::string table;  // made anew, so a pool may serve several systems
  std::string engine = "shard";
  uint64_t cached_locations = 0;     // of each session; 0: no location cache
  uint32_t sessions = 64;            // at a time, in a pool that is made for this
  std::optional<pid_t> daemon = {};  // the process behind the URL, if it is one of ours
};

Result<std::unique_ptr<System>> MakeFarside(FarsideOptions options);

}  // namespace farside::peers
