// What the threads of a server share.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/host_visits.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/tls.h"

namespace farside::fabric::tcp {

struct ServerState {
  ServerState(memory::ServedNode& served, const ServerOptions& wanted, Logger& logger)
      : node(served), options(wanted), log(logger) {}

  memory::ServedNode& node;
  const ServerOptions options;
  Logger& log;
  std::optional<TlsContext> tls;
  SteadyClock clock;  // sockets wait in the time of the machine

  std::atomic<size_t> open{0};      // sockets
  std::atomic<size_t> admitted{0};  // clients
  HostVisits visits;
  std::atomic<size_t> buffered{0};  // bytes of large requests and answers, of all connections
};

}  // namespace farside::fabric::tcp
