#include "fabric/tcp/server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/io_thread.h"
#include "fabric/tcp/server_state.h"

namespace farside::fabric::tcp {
namespace {

constexpr size_t kDefaultThreads = 4;
constexpr size_t kMostThreads = 256;
constexpr int kBacklog = 1024;

struct Listener {
  Descriptor socket;
  uint16_t port = 0;
};

Result<Listener> ListenAt(const Endpoint& endpoint, const SocketAddress& address) {
  const auto failed = [&endpoint] {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot listen at {}: {}; choose another address or port", endpoint.ToString(),
                             ErrnoText(errno)));
  };
  Listener listener;
  listener.socket =
      Descriptor(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener.socket.open()) return failed();
  const int on = 1;
  setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.socket.get(), address.get(), address.bytes) != 0) return failed();
  if (listen(listener.socket.get(), kBacklog) != 0) return failed();
  SocketAddress bound;
  bound.bytes = sizeof(bound.storage);
  if (getsockname(listener.socket.get(), bound.get(), &bound.bytes) != 0) return failed();
  listener.port = bound.port();
  return listener;
}

size_t ThreadsFor(const ServerOptions& options) {
  if (options.threads != 0) return std::min(options.threads, kMostThreads);
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kDefaultThreads);
}

}  // namespace

Server::Server() = default;

Result<std::unique_ptr<Server>> Server::Listen(memory::ServedNode& node, const ServerOptions& options,
                                               Logger& log) {
  const Endpoint endpoint{options.host, options.port};
  const Result<std::vector<SocketAddress>> addresses = Resolve(endpoint, /*to_listen=*/true);
  if (!addresses.ok()) return addresses.error();

  std::unique_ptr<Server> server(new Server());
  server->state_ = std::make_unique<ServerState>(node, options, log);
  if (options.tls.has_value()) {
    Result<TlsContext> tls = TlsContext::ForServer(*options.tls);
    if (!tls.ok()) return tls.error();
    server->state_->tls = std::move(*tls);
  } else if (Status allowed = CheckPlainIsAllowed(endpoint, *addresses, options.insecure); !allowed.ok()) {
    return allowed.error();
  }
  Result<Listener> listener = ListenAt(endpoint, addresses->front());
  if (!listener.ok()) return listener.error();
  server->port_ = listener->port;

  auto door = std::make_unique<IoThread>(*server->state_);
  if (Status opened = door->Open(); !opened.ok()) return opened.error();
  std::vector<std::unique_ptr<IoThread>> threads;
  std::vector<std::shared_ptr<Mailbox>> mailboxes;
  for (size_t i = 0; i < ThreadsFor(options); ++i) {
    threads.push_back(std::make_unique<IoThread>(*server->state_));
    if (Status opened = threads.back()->Open(); !opened.ok()) return opened.error();
    threads.back()->Serve(door->mailbox());
    mailboxes.push_back(threads.back()->mailbox());
  }
  if (Status stands = door->StandAtDoor(std::move(listener->socket), std::move(mailboxes)); !stands.ok())
    return stands.error();
  threads.push_back(std::move(door));
  server->threads_ = std::move(threads);
  for (const std::unique_ptr<IoThread>& thread : server->threads_) thread->Start();
  return server;
}

Server::~Server() { Stop(); }

size_t Server::connections() const { return state_->open.load(); }

size_t Server::strangers() const { return state_->lobby.size(); }

size_t Server::buffered() const { return state_->buffer_budget.in_use(); }

void Server::Stop() {
  for (const std::unique_ptr<IoThread>& thread : threads_)
    thread->mailbox()->Send({LetterKind::kStop, nullptr});
  for (const std::unique_ptr<IoThread>& thread : threads_) thread->Join();
  if (threads_.empty()) return;
  threads_.clear();
  const Nanos now = state_->clock.Now();
  state_->stranger_log.ReportTheRest(now);
  state_->client_log.ReportTheRest(now);
}

}  // namespace farside::fabric::tcp
