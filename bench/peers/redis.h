// Redis, by its own protocol over TCP or a Unix socket.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "bench/peers/stream.h"
#include "bench/peers/system.h"

namespace farside::peers {

// A server that runs, as process `daemon`.
std::unique_ptr<System> MakeRedis(std::string name, Endpoint endpoint, pid_t daemon);

}  // namespace farside::peers
