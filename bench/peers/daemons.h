// The servers that the systems under test are, started for this benchmark: on the loopback interface and on
// Unix sockets in a folder of their own, with nothing written to disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/peers/interrupt.h"
#include "bench/peers/process.h"
#include "bench/peers/stream.h"
#include "farside/result.h"

namespace farside::peers {

struct RedisDaemon {
  Process process;
  Endpoint tcp;
  Endpoint unix_socket;
};

struct MemcachedDaemon {
  Process process;
  Endpoint endpoint;
};

// `farside serve`: one memory node, reachable in both ways.
struct FarsideDaemon {
  Process process;
  std::string tcp_url;
  std::string shm_url;
};

// All of them return when the server answers. `folder` must stay as long as the server.
Result<RedisDaemon> StartRedis(const std::string& folder, Interrupt& interrupt);
Result<MemcachedDaemon> StartMemcached(const std::string& folder, bool unix_socket, unsigned threads,
                                       uint64_t memory_bytes, Interrupt& interrupt);
Result<FarsideDaemon> StartFarside(const std::string& folder, const std::string& program,
                                   uint64_t memory_bytes, Interrupt& interrupt);

// The address that `farside serve` listens at, from what it has printed: the first word that begins with
// tcp:// in a complete line, and does not end with :0 as what it was asked for does. None until it has said
// so.
std::optional<std::string> ServedAddress(std::string_view output);

}  // namespace farside::peers
