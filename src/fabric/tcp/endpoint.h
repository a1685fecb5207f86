// Where a node listens: a host and a port, and what they resolve to.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"

namespace farside::fabric::tcp {

struct Endpoint {
  // "10.0.0.7:7170", "node-2.example:7170", "[fe80::1]:7170"
  static Result<Endpoint> Parse(std::string_view text);
  std::string ToString() const;

  std::string host;
  uint16_t port = 0;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  bool IsLoopback() const;
  uint16_t port() const;
  // What counts as one address in limits: of IPv4 all of it, of IPv6 the first 64 bits, as a site has the
  // rest to itself.
  uint64_t Network() const;
  std::string ToString() const;
};

// All addresses of a host. It may ask a name server, and wait for it.
Result<std::vector<SocketAddress>> Resolve(const Endpoint& endpoint, bool to_listen);

// Refuses to talk in plain text to anything but this machine, unless `insecure` says that it is meant.
Status CheckPlainIsAllowed(const Endpoint& endpoint, const std::vector<SocketAddress>& addresses,
                           bool insecure);

// Sets what both ends of a connection want of the kernel. What it refuses only costs time.
void PrepareSocket(int fd, const SocketAddress& peer);

// "Connection refused (ECONNREFUSED)"
std::string ErrnoText(int error);

}  // namespace farside::fabric::tcp
