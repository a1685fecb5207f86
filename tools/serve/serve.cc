#include "tools/serve/serve.h"

#include <grp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/dropping_sink.h"
#include "base/log.h"
#include "base/size.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/shm/server.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/server.h"
#include "pool/members/reader_guard.h"
#include "pool/region/pool_region.h"
#include "store/engines.h"
#include "tools/common/descriptor_limit.h"
#include "tools/common/output.h"
#include "tools/serve/served_memory.h"

namespace farside::tools {
namespace {

namespace shm = fabric::shm;
namespace tcp = fabric::tcp;
using fabric::memory::HugePages;
using fabric::memory::kHugePageBytes;
using fabric::memory::ServedNode;

constexpr std::string_view kCalled = "farside serve";
constexpr std::string_view kTcpScheme = "tcp://";
constexpr uint64_t kFewestBuffers = uint64_t{256} << 20;
// Besides those of clients and strangers, and more than enough: also for sockets that are on their way from
// one thread to another.
constexpr uint64_t kOwnDescriptors = 512;
constexpr uint64_t kShmStrangers = 128;
constexpr uint64_t kOfShmClient = 2;  // its socket, and its process

// ---- what the words mean -----------------------------------------------------------------------------

struct ServePlan {
  MemoryPlan memory;
  std::optional<tcp::ServerOptions> tcp;
  std::optional<shm::ServerOptions> shm;
};

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Status PlanMemory(const ServeCommand& command, MemoryPlan& plan) {
  plan.shared = !command.shm.empty();
  if (!command.size.empty()) {
    const Result<uint64_t> size = ParseSize(command.size);
    if (!size.ok()) return Refuse("--size: " + size.error().message());
    plan.home.size = *size;
  }
  // Huge pages come whole.
  const bool in_file = !command.file.empty() || !command.pmem.empty();
  if (!in_file && command.hugepages != "off" && plan.home.size.value_or(0) >= kHugePageBytes)
    plan.home.size = *plan.home.size / kHugePageBytes * kHugePageBytes;
  if (!command.pmem.empty()) {
    if (!command.file.empty()) return Refuse("the memory is kept in one place: give either --file or --pmem");
    plan.home.kind = pool::PoolUrl::Kind::kPmem;
    plan.home.path = command.pmem;
    plan.open.format.durable = true;
  } else if (!command.file.empty()) {
    plan.home.kind = pool::PoolUrl::Kind::kFile;
    plan.home.path = command.file;
  } else if (!plan.home.size.has_value()) {
    return Refuse("say how much memory to offer, as in --size 8GiB");
  }
  plan.open.served = true;
  plan.open.format.client_slots = command.clients;
  plan.open.format.table_slots = command.tables;
  if (plan.home.size.has_value()) {
    const Result<pool::Geometry> fits = pool::PlanGeometry(*plan.home.size, plan.open.format);
    if (!fits.ok()) return Refuse(fits.error().message());
  }
  if (command.hugepages == "on") {
    plan.huge_pages = HugePages::kOn;
  } else if (command.hugepages == "off") {
    plan.huge_pages = HugePages::kOff;
  } else if (command.hugepages != "auto") {
    return Refuse(fmt::format("--hugepages: '{}' is neither auto nor on nor off", Escape(command.hugepages)));
  }
  if (plan.huge_pages == HugePages::kOn && in_file)
    return Refuse("--hugepages on: a file has the pages of its file system; leave it out");
  return OkStatus();
}

Status PlanTcp(const ServeCommand& command, ServePlan& plan) {
  const bool some_tls = !command.tls_cert.empty() || !command.tls_key.empty() || !command.tls_ca.empty();
  const bool all_tls = !command.tls_cert.empty() && !command.tls_key.empty() && !command.tls_ca.empty();
  if (some_tls && !all_tls) return Refuse("TLS takes all three of --tls-cert, --tls-key and --tls-ca");
  if (command.listen.empty()) {
    if (some_tls || command.insecure) return Refuse("TLS and --insecure are for --listen, which is missing");
    return OkStatus();
  }
  if (!command.listen.starts_with(kTcpScheme)) {
    return Refuse(fmt::format("--listen: '{}' does not start with tcp://; write tcp://127.0.0.1:7700",
                              Escape(command.listen)));
  }
  const Result<tcp::Endpoint> endpoint =
      tcp::Endpoint::Parse(std::string_view(command.listen).substr(kTcpScheme.size()));
  if (!endpoint.ok()) return Refuse("--listen: " + endpoint.error().message());
  tcp::ServerOptions options;
  options.host = endpoint->host;
  options.port = endpoint->port;
  options.threads = command.threads;
  options.insecure = command.insecure;
  const Result<uint64_t> buffers = ParseSize(command.buffers);
  if (!buffers.ok()) return Refuse("--buffers: " + buffers.error().message());
  // The largest frame takes so much while its buffer grows.
  if (*buffers < kFewestBuffers) return Refuse("--buffers: at least 256MiB, or a single client may not fit");
  options.max_buffered = *buffers;
  options.max_clients_of_address = command.per_address;
  options.stall_timeout = std::chrono::seconds(command.stall);
  if (all_tls) {
    options.tls = tcp::ServerTls{
        .certificate_file = command.tls_cert, .key_file = command.tls_key, .client_ca_file = command.tls_ca};
  }
  plan.tcp = std::move(options);
  return OkStatus();
}

Status PlanShm(const ServeCommand& command, ServePlan& plan) {
  if (command.fence != "wait" && command.fence != "kill")
    return Refuse(fmt::format("--fence: '{}' is neither wait nor kill", Escape(command.fence)));
  if (command.shm.empty()) {
    if (!command.group.empty()) return Refuse("--group is for --shm, which is missing");
    return OkStatus();
  }
  shm::ServerOptions options;
  options.node = command.shm;
  options.fence = command.fence == "kill" ? shm::FencePolicy::kKill : shm::FencePolicy::kWait;
  if (!command.group.empty()) {
    const group* const known = ::getgrnam(command.group.c_str());
    if (known == nullptr)
      return Refuse(fmt::format("--group: there is no group '{}'", Escape(command.group)));
    options.group = known->gr_gid;
  }
  plan.shm = std::move(options);
  return OkStatus();
}

Result<ServePlan> Plan(const ServeCommand& command) {
  if (command.listen.empty() && command.shm.empty())
    return Refuse("say how clients come: --listen tcp://127.0.0.1:7700, --shm NAME, or both");
  ServePlan plan;
  if (Status good = PlanMemory(command, plan.memory); !good.ok()) return good.error();
  if (Status good = PlanTcp(command, plan); !good.ok()) return good.error();
  if (Status good = PlanShm(command, plan); !good.ok()) return good.error();
  return plan;
}

// ---- serving -----------------------------------------------------------------------------------------

// Signals that ask for an end, taken by the one thread that waits for them. Blocked before other threads
// begin, which inherit that.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  // Waits for one.
  int Await() const {
    int signal = 0;
    while (::sigwait(&set_, &signal) != 0) continue;
    return signal;
  }
  // Whether one has come that was not awaited yet.
  bool Pending() const {
    sigset_t pending{};
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1;
  }
  // A second signal means that the operator does not want to wait.
  void LetThrough() const { ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr); }

 private:
  sigset_t set_{};
};

// Tells the service manager, if there is one (sd_notify's protocol: a datagram to $NOTIFY_SOCKET).
void Notify(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  const size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  ::close(fd);
}

// A node with its servers. They end in the opposite order.
class Service {
 public:
  static Result<std::unique_ptr<Service>> Start(ServePlan plan, Logger& log) {
    Result<std::unique_ptr<ServedMemory>> memory = ServedMemory::Open(plan.memory, log);
    if (!memory.ok()) return memory.error();
    std::unique_ptr<Service> service(new Service());
    service->memory_ = std::move(*memory);
    std::unique_ptr<fabric::memory::Medium> medium = service->memory_->TakeMedium();
    if (medium != nullptr) service->medium_ = medium->name();
    service->node_ = std::make_unique<ServedNode>(service->memory_->region(), service->memory_->stripes(),
                                                  service->memory_->id(), nullptr, std::move(medium));
    store::RegisterHandlers(service->node_->calls());
    if (plan.tcp.has_value()) {
      plan.tcp->new_reader_guard = pool::GuardReaders(service->memory_->geometry());
      Result<std::unique_ptr<tcp::Server>> server = tcp::Server::Listen(*service->node_, *plan.tcp, log);
      if (!server.ok()) return server.error();
      service->tcp_ = std::move(*server);
      const tcp::Endpoint at{.host = plan.tcp->host, .port = service->tcp_->port()};
      service->urls_.push_back(fmt::format("{}{}", kTcpScheme, at.ToString()));
    }
    if (plan.shm.has_value()) {
      plan.shm->log = &log;
      Result<std::unique_ptr<shm::Server>> server =
          shm::Server::Start(*service->node_, service->memory_->shared(), *plan.shm);
      if (!server.ok()) return server.error();
      service->shm_ = std::move(*server);
      service->urls_.push_back(fmt::format("shm:{}", plan.shm->node));
    }
    return service;
  }

  const std::vector<std::string>& urls() const { return urls_; }
  uint64_t bytes() const { return memory_->geometry().region_bytes; }
  bool made() const { return memory_->made(); }
  // What makes a durable pool durable; empty if the pool is not.
  const std::string& medium() const { return medium_; }

  // Disconnects all clients, and makes what is in a file durable.
  Status Stop() {
    shm_.reset();
    node_->StopWaiting();
    tcp_.reset();
    return memory_->Persist();
  }

 private:
  Service() = default;

  std::unique_ptr<ServedMemory> memory_;
  std::unique_ptr<ServedNode> node_;
  std::unique_ptr<tcp::Server> tcp_;
  std::unique_ptr<shm::Server> shm_;
  std::vector<std::string> urls_;
  std::string medium_;
};

// Of a node that is as full as it lets others make it.
uint64_t DescriptorsOf(const ServePlan& plan, uint64_t client_slots) {
  uint64_t most = kOwnDescriptors;
  if (plan.tcp.has_value()) most += plan.tcp->max_connections + plan.tcp->max_strangers;
  if (plan.shm.has_value()) most += kOfShmClient * (client_slots + kShmStrangers);
  return most;
}

LogLevel LevelOf(const ServeCommand& command) {
  if (command.quiet) return LogLevel::kWarn;
  return command.verbose ? LogLevel::kDebug : LogLevel::kInfo;
}

std::string ReadyLine(const Service& service) {
  std::string line = "ready";
  for (const std::string& url : service.urls()) line += " " + url;
  return line + "\n";
}

}  // namespace

ExitCode Serve(const ServeCommand& command) {
  Result<ServePlan> plan = Plan(command);
  if (!plan.ok()) return WrongUsage(kCalled, plan.error().message());

  const StopSignals signals;
  // Nothing waits for the reader of the log: not the threads that serve, and not the end.
  DroppingSink sink(STDERR_FILENO, std::chrono::system_clock::now);
  Logger log(
      LevelOf(command), [&sink](std::string_view line) { sink.Write(line); }, std::chrono::system_clock::now);
  // Clients that come when there are none left are refused, so this is no reason not to serve.
  if (Status raised = RaiseDescriptorLimit(DescriptorsOf(*plan, command.clients)); !raised.ok())
    log.Warn("{}", raised.error().message());
  if (plan->tcp.has_value() && plan->tcp->insecure && !plan->tcp->tls.has_value()) {
    log.Warn(
        "--insecure: every machine that reaches {} can read and change everything; use --tls-cert, "
        "--tls-key and "
        "--tls-ca unless the network is yours alone",
        command.listen);
  }
  const bool in_file = plan->memory.home.in_file();
  plan->memory.stop_requested = [&signals] { return signals.Pending(); };
  Result<std::unique_ptr<Service>> service = Service::Start(std::move(*plan), log);
  if (!service.ok() && signals.Pending()) {
    log.Info("stopped by a signal before it was ready");
    return kSuccess;
  }
  if (!service.ok()) return CouldNotRun(kCalled, service.error().message());
  log.Info("serving {} of memory, {}", FormatSize((*service)->bytes()),
           !in_file             ? "which is gone when this node stops"
           : (*service)->made() ? "kept in a new file"
                                : "kept in a file that existed");
  if (!(*service)->medium().empty())
    log.Info("the pool is durable, by {}: what was acknowledged survives a power cut", (*service)->medium());
  Print(ReadyLine(**service));
  if (const ExitCode written = FinishOutput(kSuccess); written != kSuccess) return written;
  Notify("READY=1");

  const int signal = signals.Await();
  signals.LetThrough();
  Notify("STOPPING=1");
  log.Info("stopping, as {} asks for", signal == SIGINT ? "SIGINT" : "SIGTERM");
  if (Status stopped = (*service)->Stop(); !stopped.ok())
    return CouldNotRun(kCalled, stopped.error().message());
  log.Info("stopped");
  return kSuccess;
}

}  // namespace farside::tools
