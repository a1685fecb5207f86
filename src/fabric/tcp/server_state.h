// What the threads of a server share.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/limited_log.h"
#include "base/log.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/buffer_budget.h"
#include "fabric/tcp/client_limits.h"
#include "fabric/tcp/host_visits.h"
#include "fabric/tcp/lobby.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/tls.h"

namespace farside::fabric::tcp {

struct ServerState {
  ServerState(memory::ServedNode& served, const ServerOptions& wanted, Logger& logger)
      : node(served),
        options(wanted),
        log(logger),
        stranger_log(logger, "tcp: of strangers"),
        client_log(logger, "tcp: of clients"),
        client_limits(wanted.max_connections, wanted.max_clients_of_address),
        lobby(wanted.max_strangers),
        buffer_budget(wanted.max_buffered) {}

  memory::ServedNode& node;
  const ServerOptions options;
  Logger& log;
  // Lines that peers can cause. Strangers have their own, so that they do not drown those of clients.
  LimitedLog stranger_log;
  LimitedLog client_log;
  std::optional<TlsContext> tls;
  SteadyClock clock;  // sockets wait in the time of the machine

  std::atomic<size_t> open{0};  // sockets
  ClientLimits client_limits;
  Lobby lobby;
  HostVisits visits;
  BufferBudget buffer_budget;
};

}  // namespace farside::fabric::tcp
