// How a client gets a connection to a node: the socket, TLS, and the exchange of Hello and Welcome.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "fabric/address.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/tls.h"
#include "fabric/tcp/transport.h"
#include "fabric/tcp/wire.h"
#include "farside/result.h"

namespace farside::fabric::tcp {

// What a node says of itself.
struct NodeFacts {
  memory::RegionId region_id{};
  uint64_t region_bytes = 0;
  wire::Access access = wire::Access::kReadWrite;
};

struct DialOptions {
  const TlsContext* tls = nullptr;  // null: plain text
  bool insecure = false;            // plain text to other machines too
  Nanos timeout{0};                 // for all of it
};

struct Dialled {
  Transport transport;
  NodeFacts facts;
};

// Comes in as the client `id`; with kNone, only looks, and the connection is of no further use. Waits.
Result<Dialled> Dial(const Endpoint& endpoint, ClientId id, const DialOptions& options);

}  // namespace farside::fabric::tcp
