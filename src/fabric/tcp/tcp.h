// The tcp fabric: memory nodes behind sockets, each served by a Server (fabric/tcp/server.h) in its own
// process.
//
// Any network, no special hardware. One frame per trip and node, one reply per frame; the node's thread
// executes the verbs of a frame one after the other.
//
// Connections are in plain text only to this machine. To others they are TLS 1.3 with certificates on both
// sides, unless `insecure` says that plain text is meant.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/dial.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/tls.h"
#include "fabric/tcp/transport.h"

namespace farside::fabric::tcp {

struct Options {
  std::vector<std::string> addresses;  // one per node: "10.0.0.7:7170"
  std::optional<ClientTls> tls;
  bool insecure = false;  // plain text to other machines too
  // For all nodes together, with everything that belongs to it; a node that hangs leaves some for the others.
  Nanos connect_timeout = std::chrono::seconds(5);
  // A node that owes an answer, and neither sends nor takes anything for so long, is given up by the client.
  Nanos answer_timeout = std::chrono::seconds(30);
  const Clock* clock = nullptr;  // must outlive the fabric; null: the machine's
};

class TcpFabric final : public Fabric {
 public:
  // Asks every node for its size and its identity. It goes on without nodes that cannot be reached, if some
  // can: their size is 0, and what is on them fails with kUnavailable until the fabric is opened anew.
  static Result<std::unique_ptr<TcpFabric>> Open(const Options& options);

  std::string_view name() const override { return "tcp"; }
  std::span<const uint64_t> region_bytes() const override { return region_bytes_; }
  // Which memory each node had when the fabric was opened.
  std::span<const memory::RegionId> region_ids() const { return region_ids_; }
  // Whether some node lets this client only read, as of the time of opening.
  bool read_only() const { return read_only_; }

  // Safe from any thread. The client belongs to the thread that uses it. It reaches the nodes that answer,
  // and have the memory that they had when the fabric was opened; kUnavailable if there is none.
  Result<std::unique_ptr<Client>> Connect() override;

 private:
  TcpFabric() = default;

  // For the next of so many nodes, if all have to be reached by the deadline.
  DialOptions DialOptionsFor(Nanos deadline, size_t nodes) const;
  // kAlreadyExists: a node knows another client by this id.
  Result<std::unique_ptr<Client>> ConnectAs(ClientId id);
  Result<Transport> Reach(size_t node, ClientId id, const DialOptions& dial);

  SteadyClock steady_clock_;
  const Clock* clock_ = nullptr;
  std::vector<Endpoint> endpoints_;
  std::optional<TlsContext> tls_;
  bool insecure_ = false;
  Nanos connect_timeout_{0};
  Nanos answer_timeout_{0};
  std::vector<uint64_t> region_bytes_;
  std::vector<memory::RegionId> region_ids_;
  std::vector<std::string> why_missing_;  // of nodes that could not be reached when it was opened
  bool read_only_ = false;
};

}  // namespace farside::fabric::tcp
