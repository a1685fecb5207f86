#include "fabric/tcp/dial.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/descriptor.h"

namespace farside::fabric::tcp {
namespace {

using Outcome = Transport::Outcome;

// Sockets wait in the time of the machine, whatever clock the fabric was given.
class Deadline {
 public:
  explicit Deadline(Nanos timeout) : timeout_(timeout), end_(clock_.Now() + timeout) {}

  Nanos timeout() const { return timeout_; }
  // False: the time is over, also if there is something to read: of a node that sends without end, and never
  // what is waited for.
  bool Await(int fd, short events) const {
    while (true) {
      const Nanos now = clock_.Now();
      if (now >= end_) return false;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - now).count();
      pollfd waiting{.fd = fd, .events = events, .revents = 0};
      const int ready = poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000)));
      if (ready > 0) return true;
      if (ready == 0 || errno != EINTR) return false;
    }
  }

 private:
  SteadyClock clock_;
  Nanos timeout_;
  Nanos end_;
};

Error TookTooLong(const Endpoint& endpoint, const Deadline& deadline) {
  return Error(
      ErrorCode::kUnavailable,
      fmt::format("{} did not answer within {} ms; check that the node runs and can be reached",
                  endpoint.ToString(),
                  std::chrono::duration_cast<std::chrono::milliseconds>(deadline.timeout()).count()));
}

Error NoConnection(const Endpoint& endpoint, const std::string& why) {
  return Error(ErrorCode::kUnavailable, fmt::format("no connection to {}: {}; check that the node runs there",
                                                    endpoint.ToString(), why));
}

Result<Descriptor> ConnectTo(const Endpoint& endpoint, const SocketAddress& address,
                             const Deadline& deadline) {
  Descriptor socket = Descriptor::From([&address] {
    return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  });
  if (!socket.open()) return NoConnection(endpoint, ErrnoText(errno));
  PrepareSocket(socket.get(), address);
  if (connect(socket.get(), address.get(), address.bytes) == 0) return socket;
  if (errno != EINPROGRESS) return NoConnection(endpoint, ErrnoText(errno));
  if (!deadline.Await(socket.get(), POLLOUT)) return TookTooLong(endpoint, deadline);
  int error = 0;
  socklen_t bytes = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return NoConnection(endpoint, ErrnoText(error));
  return socket;
}

// The first of the addresses that answers.
Result<Descriptor> ConnectToAny(const Endpoint& endpoint, const std::vector<SocketAddress>& addresses,
                                const Deadline& deadline) {
  Result<Descriptor> socket = NoConnection(endpoint, "it has no address");
  for (const SocketAddress& address : addresses) {
    socket = ConnectTo(endpoint, address, deadline);
    if (socket.ok()) break;
  }
  return socket;
}

short EventsOf(Outcome outcome) { return outcome == Outcome::kWantWrite ? POLLOUT : POLLIN; }

// The connection ended before the node had said Welcome.
Error Broke(const Endpoint& endpoint, const Transport& transport, Outcome outcome) {
  if (transport.secure()) {
    return Error(
        ErrorCode::kPermissionDenied,
        fmt::format("{} does not accept this client: {}; check its certificates", endpoint.ToString(),
                    outcome == Outcome::kEnd ? "it closed the connection" : transport.failure()));
  }
  return NoConnection(endpoint,
                      fmt::format("it closed the connection{}; if it expects TLS, give certificates",
                                  outcome == Outcome::kEnd ? "" : ": " + transport.failure()));
}

Status Secure(const Endpoint& endpoint, Transport& transport, const Deadline& deadline) {
  while (true) {
    const Outcome outcome = transport.Handshake();
    if (outcome == Outcome::kMoved) return OkStatus();
    if (outcome == Outcome::kEnd || outcome == Outcome::kBroken) {
      return Error(ErrorCode::kPermissionDenied,
                   fmt::format("no TLS with {}: {}; check the certificates and that it expects TLS",
                               endpoint.ToString(), transport.failure()));
    }
    if (!deadline.Await(transport.fd(), EventsOf(outcome))) return TookTooLong(endpoint, deadline);
  }
}

Status SendAll(const Endpoint& endpoint, Transport& transport, std::span<const std::byte> bytes,
               const Deadline& deadline) {
  while (!bytes.empty()) {
    const Transport::Moved moved = transport.Send(bytes);
    if (moved.outcome == Outcome::kMoved) {
      bytes = bytes.subspan(moved.bytes);
    } else if (moved.outcome == Outcome::kEnd || moved.outcome == Outcome::kBroken) {
      return Broke(endpoint, transport, moved.outcome);
    } else if (!deadline.Await(transport.fd(), EventsOf(moved.outcome))) {
      return TookTooLong(endpoint, deadline);
    }
  }
  return OkStatus();
}

Status ReceiveAll(const Endpoint& endpoint, Transport& transport, std::span<std::byte> bytes,
                  const Deadline& deadline) {
  while (!bytes.empty()) {
    const Transport::Moved moved = transport.Receive(bytes);
    if (moved.outcome == Outcome::kMoved) {
      bytes = bytes.subspan(moved.bytes);
    } else if (moved.outcome == Outcome::kEnd || moved.outcome == Outcome::kBroken) {
      return Broke(endpoint, transport, moved.outcome);
    } else if (!deadline.Await(transport.fd(), EventsOf(moved.outcome))) {
      return TookTooLong(endpoint, deadline);
    }
  }
  return OkStatus();
}

Status CheckWelcome(const Endpoint& endpoint, const wire::Welcome& welcome) {
  if (welcome.magic != wire::kMagic) {
    return NoConnection(endpoint, "what listens there is no memory node of Farside");
  }
  if (welcome.version != wire::kVersion) {
    return Error(
        ErrorCode::kVersionMismatch,
        fmt::format("{} speaks version {} of the protocol and this client version {}; install the same "
                    "release on both",
                    endpoint.ToString(), welcome.version, wire::kVersion));
  }
  const bool known = welcome.status == 0 || wire::CodeOf(welcome.status).has_value();
  if (!known || welcome.message_bytes > wire::kMaxMessageBytes || welcome.access > wire::Access::kReadOnly ||
      welcome.region_bytes % kLineBytes != 0) {
    return NoConnection(endpoint, "it sent a Welcome that makes no sense");
  }
  return OkStatus();
}

Result<NodeFacts> Greet(const Endpoint& endpoint, Transport& transport, ClientId id,
                        const Deadline& deadline) {
  wire::Hello hello;
  hello.client = Number(id);
  hello.flags = id == ClientId::kNone ? wire::Hello::kLookOnly : 0;
  if (Status sent = SendAll(endpoint, transport, std::as_bytes(std::span(&hello, 1)), deadline); !sent.ok()) {
    return sent.error();
  }
  wire::Welcome welcome;
  if (Status came = ReceiveAll(endpoint, transport, std::as_writable_bytes(std::span(&welcome, 1)), deadline);
      !came.ok()) {
    return came.error();
  }
  if (Status good = CheckWelcome(endpoint, welcome); !good.ok()) return good.error();
  std::string message(welcome.message_bytes, '\0');
  if (Status came = ReceiveAll(endpoint, transport, std::as_writable_bytes(std::span(message)), deadline);
      !came.ok()) {
    return came.error();
  }
  if (welcome.status != 0) {
    return Error(*wire::CodeOf(welcome.status),
                 fmt::format("{} refused: {}", endpoint.ToString(), Escape(message)));
  }
  return NodeFacts{welcome.region_id, welcome.region_bytes, welcome.access};
}

}  // namespace

Result<Dialled> Dial(const Endpoint& endpoint, ClientId id, const DialOptions& options) {
  const Deadline deadline(options.timeout);
  const Result<std::vector<SocketAddress>> addresses = Resolve(endpoint, /*to_listen=*/false);
  if (!addresses.ok()) return addresses.error();
  if (options.tls == nullptr) {
    if (Status allowed = CheckPlainIsAllowed(endpoint, *addresses, options.insecure); !allowed.ok()) {
      return allowed.error();
    }
  }
  Result<Descriptor> socket = ConnectToAny(endpoint, *addresses, deadline);
  if (!socket.ok()) return socket.error();

  Dialled dialled;
  if (options.tls == nullptr) {
    dialled.transport = Transport(std::move(*socket));
  } else {
    SslPtr ssl = options.tls->Dial(socket->get(), endpoint.host);
    if (ssl == nullptr) return NoConnection(endpoint, "OpenSSL has no memory for it");
    dialled.transport = Transport(std::move(*socket), std::move(ssl));
    if (Status secure = Secure(endpoint, dialled.transport, deadline); !secure.ok()) return secure.error();
  }
  Result<NodeFacts> facts = Greet(endpoint, dialled.transport, id, deadline);
  if (!facts.ok()) return facts.error();
  dialled.facts = *facts;
  return dialled;
}

}  // namespace farside::fabric::tcp
