// Serves a memory node over TCP: the other end of TcpFabric.
//
// A few threads, each with its share of the connections and a loop over epoll. While requests follow each
// other closely, a thread looks for the next one without sleeping; otherwise it costs nothing.
//
// Why a FENCE is final (node/1 in fabric/memory/served_node.h): only the connection's own thread executes its
// frames, and it does so inside the connection's gate (fabric/memory/gate.h). CutOff closes the gate, and the
// victim is still once no turn is open. From then on every frame of it, received or not, finds the gate
// closed and is thrown away. Its id is remembered by the node, which does not admit it again. Frames of READs
// alone do not enter the gate, as they take no effect; they look at it. A thread leaves the gate of its
// connection before it asks for a fence (gate/2), and goes on with other connections until the fence is done.
//
// What the fenced client hears: answers of all that was executed, then a goodbye.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/address.h"
#include "fabric/memory/reader_guard.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/tls.h"
#include "fabric/tcp/wire.h"
#include "fabric/verb.h"
#include "farside/result.h"

namespace farside::fabric::tcp {

struct ServerOptions {
  std::string host = "127.0.0.1";  // a name or an address of this machine
  uint16_t port = 0;               // 0: any that is free
  std::optional<ServerTls> tls;    // without, only clients of this machine are served
  bool insecure = false;           // plain text for every client
  // What clients without TLS may do. With it, those whose certificate has OU=read-write may write.
  wire::Access plain_access = wire::Access::kReadWrite;
  // Called from threads of the server. None: readers change nothing.
  memory::NewReaderGuard new_reader_guard;

  size_t threads = 0;             // 0: as many as there are processors, but at most 4
  size_t max_connections = 4096;  // clients
  // Of them, from one address: half, so that others have room. Of an IPv6 address the first 64 bits count.
  size_t max_clients_of_address = 2048;
  // Sockets that are no clients: they come in, only look, or are leaving. If one more comes, the oldest of
  // the address that has most of them is closed.
  size_t max_strangers = 1024;
  // Of all connections together, for requests and answers that take more than each connection may have in any
  // case (BufferShare::kOwnBuffer, twice). A request that needs more is refused.
  size_t max_buffered = size_t{1} << 30;
  Nanos greeting_timeout = std::chrono::seconds(10);  // to come in, and to leave
  // For a client that has left a request half sent or takes no answers: how long without progress. While more
  // than half of max_buffered is in use, a tenth of it.
  Nanos stall_timeout = std::chrono::seconds(30);

  // For tests: asked after a frame was executed; true closes the connection instead of answering.
  std::function<bool(std::span<const Verb> verbs)> loses_answer;
};

class IoThread;
struct ServerState;

class Server {
 public:
  // `node` and `log` must outlive the server.
  static Result<std::unique_ptr<Server>> Listen(memory::ServedNode& node, const ServerOptions& options,
                                                Logger& log);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  uint16_t port() const { return port_; }
  // Sockets that are open, also of clients that have not come in yet or are leaving.
  size_t connections() const;
  // Of them, those that are no clients.
  size_t strangers() const;
  // Bytes that count for max_buffered.
  size_t buffered() const;

  // Says goodbye to all clients and ends. Frames that were executed are answered. Once; the destructor does
  // it too.
  void Stop();

 private:
  Server();

  std::unique_ptr<ServerState> state_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  uint16_t port_ = 0;
};

}  // namespace farside::fabric::tcp
