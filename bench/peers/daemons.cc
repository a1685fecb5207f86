#include "bench/peers/daemons.h"

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/size.h"

namespace farside::peers {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kPatience = 20s;
constexpr Nanos kPause = 10ms;
constexpr int kAttempts = 5;  // another process may take the port before the server does
constexpr uint64_t kMiB = uint64_t{1} << 20;

// A port of the loopback interface that is free just now; 0 if there is none.
uint16_t FreePort() {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = made >= 0 &&
                     ::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockname(made, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (made >= 0) ::close(made);
  return bound ? ntohs(address.sin_port) : 0;
}

// Waits until the process is ready, has ended, or takes too long.
Status AwaitReady(Process& process, const std::function<bool()>& ready, Interrupt& interrupt) {
  for (Nanos waited{0}; waited < kPatience; waited += kPause) {
    if (Status alive = process.Alive(); !alive.ok()) return alive;
    if (ready()) return OkStatus();
    if (Status going_on = interrupt.WaitFor(kPause); !going_on.ok()) return going_on;
  }
  return Error(ErrorCode::kUnavailable,
               fmt::format("{} does not answer; it said: {}", process.name(), process.Output()));
}

bool Answers(const Endpoint& endpoint) { return Stream::Connect(endpoint).ok(); }

// Tries again with another port where the last one was gone.
template <class Daemon>
Result<Daemon> WithFreePort(const std::function<Result<Daemon>(uint16_t)>& start,
                            const Interrupt& interrupt) {
  for (int attempt = 1;; ++attempt) {
    Result<Daemon> daemon = start(FreePort());
    const bool again = !daemon.ok() && daemon.error().code() == ErrorCode::kUnavailable && !interrupt.came();
    if (!again || attempt == kAttempts) return daemon;
  }
}

}  // namespace

Result<RedisDaemon> StartRedis(const std::string& folder, Interrupt& interrupt) {
  const auto start = [&](uint16_t port) -> Result<RedisDaemon> {
    const Endpoint tcp{.port = port};
    const Endpoint unix_socket{.path = folder + "/redis.sock"};
    Result<Process> process = Process::Start(
        {"redis-server", "--bind", "127.0.0.1", "--port", std::to_string(port), "--unixsocket",
         unix_socket.path, "--dir", folder, "--save", "", "--appendonly", "no", "--daemonize", "no"},
        folder + "/redis.log");
    if (!process.ok()) return process.error();
    const auto ready = [&] { return Answers(tcp) && Answers(unix_socket); };
    if (Status up = AwaitReady(*process, ready, interrupt); !up.ok()) return up.error();
    return RedisDaemon{std::move(*process), tcp, unix_socket};
  };
  return WithFreePort<RedisDaemon>(start, interrupt);
}

Result<MemcachedDaemon> StartMemcached(const std::string& folder, bool unix_socket, unsigned threads,
                                       uint64_t memory_bytes, Interrupt& interrupt) {
  const auto start = [&](uint16_t port) -> Result<MemcachedDaemon> {
    const std::string name = fmt::format("memcached-{}-{}", unix_socket ? "unix" : "tcp", threads);
    const Endpoint endpoint =
        unix_socket ? Endpoint{.path = folder + "/" + name + ".sock"} : Endpoint{.port = port};
    std::vector<std::string> words = {
        "memcached", "-U", "0", "-t", std::to_string(threads), "-m", std::to_string(memory_bytes / kMiB + 1)};
    if (::geteuid() == 0) words.insert(words.end(), {"-u", "root"});  // it wants to be told
    if (unix_socket) {
      words.insert(words.end(), {"-s", endpoint.path});
    } else {
      words.insert(words.end(), {"-l", "127.0.0.1", "-p", std::to_string(port)});
    }
    Result<Process> process = Process::Start(words, folder + "/" + name + ".log");
    if (!process.ok()) return process.error();
    if (Status up = AwaitReady(
            *process, [&] { return Answers(endpoint); }, interrupt);
        !up.ok())
      return up.error();
    return MemcachedDaemon{std::move(*process), endpoint};
  };
  return WithFreePort<MemcachedDaemon>(start, interrupt);
}

Result<FarsideDaemon> StartFarside(const std::string& folder, const std::string& program,
                                   uint64_t memory_bytes, Interrupt& interrupt) {
  const std::string shm = fmt::format("farside-peers-{}", ::getpid());
  Result<Process> process =
      Process::Start({program, "serve", "--size", FormatSize(memory_bytes / kMiB * kMiB + kMiB), "--listen",
                      "tcp://127.0.0.1:0", "--shm", shm},
                     folder + "/farside.log");
  if (!process.ok()) return process.error();
  std::optional<std::string> address;
  const auto ready = [&] {
    address = ServedAddress(process->Output());
    return address.has_value();
  };
  if (Status up = AwaitReady(*process, ready, interrupt); !up.ok()) return up.error();
  return FarsideDaemon{std::move(*process), *address, "shm:" + shm};
}

std::optional<std::string> ServedAddress(std::string_view output) {
  constexpr std::string_view kScheme = "tcp://";
  for (size_t at = output.find(kScheme); at != std::string_view::npos; at = output.find(kScheme, at + 1)) {
    const std::string_view rest = output.substr(at);
    if (rest.find('\n') == std::string_view::npos) return std::nullopt;  // more of the line may come
    const std::string_view address = rest.substr(0, rest.find_first_of(" ,;\t\r\n"));
    if (!address.ends_with(":0")) return std::string(address);
  }
  return std::nullopt;
}

}  // namespace farside::peers
