// farside_floods: what a client notices while a node is attacked. `./dev bench floods` builds and runs it.
//
// For each attack there is a node of its own, and one client that reads and writes small records without a
// pause. The attack is switched on and off again and again, so that whatever else the machine does meets both
// alike. Attackers have a lower priority than node and client: they stand for other machines, and what they
// cost this one is not the node's. Run it as root, so that node and client go before all else. Priorities do
// not rule what the kernel does for a socket, so a third phase shows what the attackers cost the machine by
// themselves: then they attack another node, which has their priority and does not serve the client.
//
// Ends with 1 if the client noticed too much, or the node took more memory, or wrote more log, than it may.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/histogram.h"
#include "bench/floods/attackers.h"
#include "bench/peers/daemons.h"
#include "bench/peers/interrupt.h"
#include "bench/peers/process.h"
#include "fabric/tcp/endpoint.h"
#include "farside/farside.h"
#include "tools/common/descriptor_limit.h"

namespace farside::floods {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 8;
constexpr Nanos kWindow = 1s;
constexpr int kRecords = 1000;
constexpr int kHighPriority = -15;
constexpr int kLowerBy = 15;
constexpr uint64_t kDescriptors = 6000;
constexpr double kPermitted = 2.0;  // times the time without the attack

// What a node may have of the machine (docs/layouts/wire.md, docs/security.md).
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kRegionMiB = 128;
constexpr uint64_t kBuffersMiB = 256;
constexpr uint64_t kBytesOfConnection = 256 << 10;
constexpr uint64_t kBaseBytes = 64 * kMiB;  // the program, its threads, and what its heap does not give back
// Of the log: of strangers and of clients, 100 lines at once and 10 in each second.
constexpr uint64_t kLogs = 2;
constexpr uint64_t kBurst = 100;
constexpr uint64_t kLinesPerSecond = 10;
constexpr uint64_t kBytesOfLine = 256;
constexpr uint64_t kOtherLogBytes = 16 << 10;  // when it starts, and how many lines were left out

// ---- a node

struct Node {
  peers::Process process;
  std::string url;
  std::string log;
  Descriptor stalled;  // holds the pipe open that is its log
  Nanos started{};

  uint16_t port() const { return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))); }
  uint64_t LogBytes() const {
    struct stat status {};
    return stalled.open() || ::stat(log.c_str(), &status) != 0 ? 0 : static_cast<uint64_t>(status.st_size);
  }
  // Of its memory, a line of /proc/PID/status, in bytes.
  uint64_t Memory(std::string_view line) const {
    std::ifstream status(fmt::format("/proc/{}/status", process.id()));
    for (std::string text; std::getline(status, text);) {
      if (text.starts_with(line)) return std::stoull(text.substr(text.find(':') + 1)) << 10;
    }
    return 0;
  }
};

// Fills a pipe that is not read.
Descriptor StalledPipe(const std::string& path) {
  ::mkfifo(path.c_str(), 0600);
  Descriptor pipe(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const std::string some(4096, ' ');
  while (::write(pipe.get(), some.data(), some.size()) > 0) continue;
  return pipe;
}

// A node that is `lower` has the priority of attackers.
Result<Node> StartNode(const std::string& folder, const std::string& program, const Attack& attack,
                       bool lower, peers::Interrupt& interrupt) {
  const std::string name = fmt::format("{}/{}{}", folder, attack.name, lower ? "-elsewhere" : "");
  const std::string log = name + ".log";
  Descriptor stalled;
  if (attack.log_is_stalled) stalled = StalledPipe(log);
  Result<peers::Process> process = peers::Process::Start(
      {"sh", "-c",
       fmt::format(
           "exec nice -n {} '{}' serve --size {}MiB --buffers {}MiB --listen tcp://127.0.0.1:0 2>'{}'",
           lower ? kLowerBy : 0, program, kRegionMiB, kBuffersMiB, log)},
      name + ".out");
  if (!process.ok()) return process.error();
  for (int look = 0; look < 500; ++look) {
    if (const std::optional<std::string> url = peers::ServedAddress(process->Output()))
      return Node{std::move(*process), *url, log, std::move(stalled), SteadyClock().Now()};
    if (Status alive = process->Alive(); !alive.ok()) return alive.error();
    if (Status going_on = interrupt.WaitFor(10ms); !going_on.ok()) return going_on.error();
  }
  return Error(ErrorCode::kUnavailable, "the node does not start; is its log read?");
}

// ---- a client

struct Latencies {
  Histogram nanos;
  Histogram joins;  // of other sessions that come, one in each window
  uint64_t failed = 0;
  uint64_t failed_joins = 0;
};

class HealthyClient {
 public:
  static Result<HealthyClient> Open(const std::string& url) {
    Result<Pool> pool = Pool::Open(url);
    if (!pool.ok()) return pool.error();
    Result<Table> table = pool->CreateTable("floods");
    if (!table.ok()) return table.error();
    Result<Session> session = pool->NewSession();
    if (!session.ok()) return session.error();
    for (int i = 0; i < kRecords; ++i) {
      if (Status put = session->Put(*table, KeyOf(i), "value"); !put.ok()) return put.error();
    }
    return HealthyClient(std::move(*pool), std::move(*table), std::move(*session));
  }

  void Run(Nanos time, Latencies& into) {
    const Nanos begun = clock_.Now();
    for (Nanos now = clock_.Now(); now - begun < time;) {
      const std::string key = KeyOf(static_cast<int>(operations_++ % kRecords));
      const bool writes = operations_ % 10 == 0;
      const bool worked =
          writes ? session_.Put(table_, key, "value").ok() : session_.Get(table_, key, value_).ok();
      const Nanos after = clock_.Now();
      into.nanos.Record(static_cast<uint64_t>((after - now).count()));
      into.failed += worked ? 0 : 1;
      now = after;
    }
    Join(into);
  }

 private:
  HealthyClient(Pool pool, Table table, Session session)
      : pool_(std::move(pool)), table_(std::move(table)), session_(std::move(session)) {}
  static std::string KeyOf(int i) { return fmt::format("key {}", i); }
  void Join(Latencies& into) {
    const Nanos before = clock_.Now();
    const bool joined = pool_.NewSession().ok();
    into.joins.Record(static_cast<uint64_t>((clock_.Now() - before).count()));
    into.failed_joins += joined ? 0 : 1;
  }

  Pool pool_;
  Table table_;
  Session session_;
  SteadyClock clock_;
  uint64_t operations_ = 0;
  std::string value_;
};

// ---- an attack

// Threads that attack while they are told to.
class Onslaught {
 public:
  Onslaught(const Attack& attack, uint16_t port) {
    for (size_t i = 0; i < attack.threads; ++i) attackers_.push_back(attack.make(port));
    for (const std::unique_ptr<Attacker>& each : attackers_)
      threads_.emplace_back([this, &each](const std::stop_token& stop) { Run(*each, stop); });
  }
  void Switch(bool on) { on_.store(on); }
  void End() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
  }
  // When it has ended.
  uint64_t connections() const {
    return std::accumulate(attackers_.begin(), attackers_.end(), uint64_t{0},
                           [](uint64_t sum, const auto& each) { return sum + each->connections(); });
  }
  uint64_t bytes() const {
    return std::accumulate(attackers_.begin(), attackers_.end(), uint64_t{0},
                           [](uint64_t sum, const auto& each) { return sum + each->bytes(); });
  }

 private:
  void Run(Attacker& attacker, const std::stop_token& stop) const {
    const int priority = ::getpriority(PRIO_PROCESS, 0);
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), priority + kLowerBy);
    while (!stop.stop_requested()) {
      if (on_.load()) {
        attacker.Step();
        continue;
      }
      attacker.Stop();
      std::this_thread::sleep_for(1ms);
    }
    attacker.Stop();
  }

  std::vector<std::unique_ptr<Attacker>> attackers_;
  std::atomic<bool> on_{false};
  std::vector<std::jthread> threads_;
};

double Micros(uint64_t nanos) { return static_cast<double>(nanos) / 1000; }
std::string InMiB(uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

void PrintLine(std::string_view when, const Latencies& latencies) {
  const auto at = [&](double quantile) { return Micros(latencies.nanos.ValueAtQuantile(quantile)); };
  fmt::print(
      "  {:<9} {:>8} operations, {} failed; p50 {:.0f} us, p99 {:.0f} us, p99.9 {:.0f} us, worst {:.0f} us; "
      "sessions came within {:.0f} us at worst, {} failed\n",
      when, latencies.nanos.Count(), latencies.failed, at(0.5), at(0.99), at(0.999), at(1),
      Micros(latencies.joins.Max()), latencies.failed_joins);
}

// Says which attack has broken which bound.
bool Holds(const Attack& attack, std::string_view what, double value, double bound, std::string_view unit) {
  if (value <= bound) return true;
  fmt::print("  BROKEN by {}: {}: {:.2f} {}, at most {:.2f}\n", attack.name, what, value, unit, bound);
  return false;
}

bool NodeHolds(const Attack& attack, const Node& node) {
  const uint64_t sockets = attack.threads * attack.sockets + 2;  // and those of the client
  const uint64_t memory = (kRegionMiB + kBuffersMiB) * kMiB + sockets * kBytesOfConnection + kBaseBytes;
  const auto seconds = static_cast<uint64_t>((SteadyClock().Now() - node.started) / 1s) + 1;
  const uint64_t log = kLogs * (kBurst + kLinesPerSecond * seconds) * kBytesOfLine + kOtherLogBytes;
  const auto in = [](uint64_t bytes, uint64_t unit) {
    return static_cast<double>(bytes) / static_cast<double>(unit);
  };
  const uint64_t most = node.Memory("VmHWM");
  const bool known = most != 0 || Holds(attack, "nodes that have ended", 1, 0, "node");
  const bool memory_holds = Holds(attack, "memory of the node", in(most, kMiB), in(memory, kMiB), "MiB");
  const bool log_holds = Holds(attack, "log of the node", in(node.LogBytes(), 1024), in(log, 1024), "KiB");
  return known && memory_holds && log_holds;
}

// True: the client noticed little, and the node has kept its bounds.
Result<bool> Measure(const std::string& folder, const std::string& program, const Attack& attack,
                     peers::Interrupt& interrupt) {
  Result<Node> node = StartNode(folder, program, attack, false, interrupt);
  if (!node.ok()) return node.error();
  Result<Node> other = StartNode(folder, program, attack, true, interrupt);
  if (!other.ok()) return other.error();
  Result<HealthyClient> client = HealthyClient::Open(node->url);
  if (!client.ok()) return client.error();
  Latencies warm_up;
  client->Run(kWindow, warm_up);
  const uint64_t memory_before = node->Memory("VmRSS");
  Latencies quiet;
  Latencies elsewhere;
  Latencies flooded;
  Onslaught on_other(attack, other->port());
  Onslaught onslaught(attack, node->port());
  for (int round = 0; round < kRounds; ++round) {
    client->Run(kWindow / 5, warm_up);  // what was under way ends
    client->Run(kWindow, quiet);
    on_other.Switch(true);
    client->Run(kWindow, elsewhere);
    on_other.Switch(false);
    client->Run(kWindow / 5, warm_up);
    onslaught.Switch(true);
    client->Run(kWindow, flooded);
    onslaught.Switch(false);
    if (Status going_on = interrupt.WaitFor(Nanos{0}); !going_on.ok()) return going_on.error();
  }
  on_other.End();
  onslaught.End();
  const auto p99 = [](const Latencies& of) { return static_cast<double>(of.nanos.ValueAtQuantile(0.99)); };
  const double ratio = p99(flooded) / p99(quiet);
  fmt::print("{}: {}\n", attack.name, attack.what);
  PrintLine("quiet", quiet);
  PrintLine("elsewhere", elsewhere);
  PrintLine("attacked", flooded);
  fmt::print(
      "  p99 is {:.2f} times that without the attack, and {:.2f} times that with the attack on another node; "
      "{} connections, {} sent; memory of the node {}, at most {}; log {} KiB\n",
      ratio, p99(flooded) / p99(elsewhere), onslaught.connections(), InMiB(onslaught.bytes()),
      InMiB(memory_before), InMiB(node->Memory("VmHWM")), node->LogBytes() >> 10);
  const bool fast = Holds(attack, "p99 of the client", ratio, kPermitted, "times that without the attack");
  const auto failed = static_cast<double>(flooded.failed + flooded.failed_joins);
  const bool served = Holds(attack, "what failed", failed, 0, "operations and sessions");
  const bool bounded = NodeHolds(attack, *node);
  fmt::print("\n");
  return fast && served && bounded;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: farside_floods BINARY [ATTACK...]\n");
    return 2;
  }
  ::setpriority(PRIO_PROCESS, 0, kHighPriority);  // of the node, too; not every user may do so
  Result<peers::Interrupt> interrupt = peers::Interrupt::Watch();
  const Result<peers::TemporaryFolder> folder = peers::TemporaryFolder::Make();
  const Status raised = tools::RaiseDescriptorLimit(kDescriptors);
  if (!interrupt.ok() || !folder.ok() || !raised.ok()) {
    fmt::print(stderr, "farside_floods: no signals, no temporary folder, or too few descriptors\n");
    return 3;
  }
  const std::vector<std::string_view> named(argv + 2, argv + argc);
  bool holds = true;
  for (const Attack& attack : Attacks()) {
    if (!named.empty() && std::find(named.begin(), named.end(), attack.name) == named.end()) continue;
    const Result<bool> measured = Measure(folder->path(), argv[1], attack, *interrupt);
    if (!measured.ok()) {
      fmt::print("{}: {}\n\n", attack.name, measured.error().message());
      if (interrupt->came()) return 3;
    }
    std::fflush(stdout);
    holds = holds && measured.ok() && *measured;
  }
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace farside::floods

int main(int argc, char** argv) { return farside::floods::Main(argc, argv); }
