#include "tests/fabric/conformance/backend.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <thread>

#include "fabric/embedded/embedded.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "fabric/shm/server.h"
#include "fabric/shm/shared_memory.h"
#include "fabric/shm/shm.h"
#include "fabric/sim/sim.h"
#include "fabric/sim/timed/timed.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/tcp.h"
#include "tests/support/certificates.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace farside::fabric::conformance {
namespace {

// ---- sim ---------------------------------------------------------------------------------------------

sim::SimOptions SimOptionsFor(const WorldOptions& options) {
  sim::SimOptions sim;
  sim.seed = options.seed;
  sim.region_bytes = options.region_bytes;
  sim.chaos = sim::Chaos::ForSeed(options.seed, /*faults=*/false);
  sim.chaos.ordered_reads = true;  // fabric/12 is for fabrics that have it
  if (options.lose_completion_of_verb.has_value()) {
    sim.fault = sim::Fault{.verb = *options.lose_completion_of_verb, .kind = sim::FaultKind::kLoseCompletion};
  }
  return sim;
}

// For fabrics that are one thread and a clock.
template <class SteppedFabric>
std::vector<Result<Done>> PlayInSteps(SteppedFabric& fabric, std::span<const Part> parts) {
  std::vector<Task<Done>> tasks;
  for (const Part& part : parts) tasks.push_back(part.program(*part.client));
  for (Task<Done>& task : tasks) task.Start();
  const auto done = [](const Task<Done>& task) { return task.done(); };
  while (!std::all_of(tasks.begin(), tasks.end(), done) && fabric.Step()) continue;

  std::vector<Result<Done>> results;
  for (Task<Done>& task : tasks) {
    results.push_back(task.done() ? task.TakeResult() : Error(ErrorCode::kUnavailable, "it waits for ever"));
  }
  return results;
}

class SimWorld final : public World {
 public:
  explicit SimWorld(const WorldOptions& options) : fabric_(SimOptionsFor(options)) {}

  Fabric& fabric() override { return fabric_; }
  CallTable& calls() override { return fabric_.calls(); }
  void Restart(NodeId node) override { fabric_.RestartNode(node, /*keep_memory=*/true); }

  std::vector<Result<Done>> Play(std::span<const Part> parts) override { return PlayInSteps(fabric_, parts); }

 private:
  sim::SimFabric fabric_;
};

std::unique_ptr<World> OpenSim(const WorldOptions& options) { return std::make_unique<SimWorld>(options); }

// ---- sim, timed --------------------------------------------------------------------------------------

class TimedWorld final : public World {
 public:
  explicit TimedWorld(const WorldOptions& options) {
    sim::TimedOptions timed;
    timed.seed = options.seed;
    timed.region_bytes = options.region_bytes;
    timed.compute_nodes = 1 + options.seed % 3;
    timed.model.jitter = Nanos(options.seed % 4 * 700);  // none, or enough to mix trips
    fabric_ = std::move(*sim::TimedFabric::Open(timed));
  }

  Fabric& fabric() override { return *fabric_; }
  CallTable& calls() override { return fabric_->calls(); }
  std::vector<Result<Done>> Play(std::span<const Part> parts) override {
    return PlayInSteps(*fabric_, parts);
  }

 private:
  std::unique_ptr<sim::TimedFabric> fabric_;
};

std::unique_ptr<World> OpenTimed(const WorldOptions& options) {
  return std::make_unique<TimedWorld>(options);
}

// ---- backends whose clients have a thread each -------------------------------------------------------

// Runs the parts of one client on this thread.
std::vector<Result<Done>> PlayHere(Client& client, std::span<const Program> programs) {
  const size_t before = client.concurrency();
  client.set_concurrency(std::max(before, programs.size()));
  std::vector<Task<Done>> tasks;
  for (const Program& program : programs) tasks.push_back(program(client));
  for (Task<Done>& task : tasks) task.Start();
  const auto done = [](const Task<Done>& task) { return task.done(); };
  while (!std::all_of(tasks.begin(), tasks.end(), done) && client.Poll()) continue;
  client.set_concurrency(before);

  std::vector<Result<Done>> results;
  for (Task<Done>& task : tasks) {
    results.push_back(task.done() ? task.TakeResult() : Error(ErrorCode::kUnavailable, "it waits for ever"));
  }
  return results;
}

std::vector<Result<Done>> PlayOnThreads(std::span<const Part> parts) {
  struct Player {
    std::vector<Program> programs;
    std::vector<size_t> parts;
    std::vector<Result<Done>> results;
  };
  std::map<uint32_t, std::pair<Client*, Player>> players;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto& [client, player] = players[Number(parts[i].client->id())];
    client = parts[i].client;
    player.programs.push_back(parts[i].program);
    player.parts.push_back(i);
  }
  std::barrier start(static_cast<std::ptrdiff_t>(players.size()));
  {
    std::vector<std::jthread> threads;
    for (auto& [id, entry] : players) {
      threads.emplace_back([&start, client = entry.first, player = &entry.second] {
        start.arrive_and_wait();
        player->results = PlayHere(*client, player->programs);
      });
    }
  }
  std::vector<Result<Done>> results(parts.size(), Result<Done>(Done{}));
  for (const auto& [id, entry] : players) {
    const Player& player = entry.second;
    for (size_t i = 0; i < player.parts.size(); ++i) results[player.parts[i]] = player.results[i];
  }
  return results;
}

class EmbeddedWorld final : public World {
 public:
  EmbeddedWorld(const WorldOptions& options, size_t concurrency) : concurrency_(concurrency) {
    embedded::Options embedded;
    embedded.region_bytes = options.region_bytes;
    fabric_ = std::move(*embedded::EmbeddedFabric::Open(embedded));
  }

  Fabric& fabric() override { return *fabric_; }
  CallTable& calls() override { return fabric_->calls(); }
  std::unique_ptr<Client> Connect() override {
    std::unique_ptr<Client> client = World::Connect();
    client->set_concurrency(concurrency_);
    return client;
  }
  std::vector<Result<Done>> Play(std::span<const Part> parts) override { return PlayOnThreads(parts); }

 private:
  const size_t concurrency_;
  std::unique_ptr<embedded::EmbeddedFabric> fabric_;
};

std::unique_ptr<World> OpenEmbedded(const WorldOptions& options) {
  return std::make_unique<EmbeddedWorld>(options, 1);
}
std::unique_ptr<World> OpenEmbeddedQueued(const WorldOptions& options) {
  return std::make_unique<EmbeddedWorld>(options, 4);
}

// ---- tcp ---------------------------------------------------------------------------------------------

// A node with its server, on threads of this process.
class TcpNode {
 public:
  TcpNode(uint64_t bytes, uint64_t number, tcp::ServerOptions options)
      : region_(*memory::Region::Anonymous(bytes)),
        stripes_(std::make_unique<memory::StripeTable>()),
        number_(number),
        options_(std::move(options)) {
    Restart();
  }

  memory::ServedNode& node() { return *node_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }

  // The memory stays, and everything else is new.
  void Restart() {
    server_.reset();
    node_ = std::make_unique<memory::ServedNode>(region_.bytes(), *stripes_, memory::RegionId{7, number_});
    auto server = tcp::Server::Listen(*node_, options_, log_);
    EXPECT_TRUE(server.ok()) << server.error().ToString();
    server_ = std::move(*server);
    options_.port = server_->port();
  }

 private:
  Logger log_{LogLevel::kError};
  memory::Region region_;
  std::unique_ptr<memory::StripeTable> stripes_;
  const uint64_t number_;
  tcp::ServerOptions options_;
  std::unique_ptr<memory::ServedNode> node_;
  std::unique_ptr<tcp::Server> server_;
};

class TcpWorld final : public World {
 public:
  TcpWorld(const WorldOptions& options, bool secure) {
    tcp::ServerOptions server;
    server.threads = 2;
    tcp::Options client;
    if (secure) {
      certificates_.emplace();
      server.tls = certificates_->Server();
      client.tls = certificates_->Client();
    }
    if (options.lose_completion_of_verb.has_value()) {
      server.loses_answer = [this, lost = *options.lose_completion_of_verb](std::span<const Verb> verbs) {
        const uint64_t first = verbs_seen_.fetch_add(verbs.size());
        return first <= lost && lost < first + verbs.size();
      };
    }
    for (const uint64_t bytes : options.region_bytes) {
      nodes_.push_back(std::make_unique<TcpNode>(bytes, nodes_.size(), server));
      client.addresses.push_back(nodes_.back()->address());
    }
    auto fabric = tcp::TcpFabric::Open(client);
    EXPECT_TRUE(fabric.ok()) << fabric.error().ToString();
    fabric_ = std::move(*fabric);
  }

  Fabric& fabric() override { return *fabric_; }
  CallTable& calls() override { return nodes_[0]->node().calls(); }
  FlushCounts flushed() override { return nodes_[0]->node().flushed(); }
  void Restart(NodeId node) override { nodes_[Index(node)]->Restart(); }
  std::vector<Result<Done>> Play(std::span<const Part> parts) override { return PlayOnThreads(parts); }

 private:
  std::optional<Certificates> certificates_;
  std::atomic<uint64_t> verbs_seen_{0};
  std::vector<std::unique_ptr<TcpNode>> nodes_;
  std::unique_ptr<tcp::TcpFabric> fabric_;
};

std::unique_ptr<World> OpenTcp(const WorldOptions& options) {
  return std::make_unique<TcpWorld>(options, /*secure=*/false);
}
std::unique_ptr<World> OpenTls(const WorldOptions& options) {
  return std::make_unique<TcpWorld>(options, /*secure=*/true);
}

// ---- shm: daemons and clients in this process, with everything between them as between processes --------

class ShmWorld final : public World {
 public:
  ShmWorld(const WorldOptions& options, size_t concurrency) : concurrency_(concurrency) {
    shm::Options shm;
    for (size_t node = 0; node < options.region_bytes.size(); ++node) {
      daemons_.push_back(std::make_unique<Daemon>());
      daemons_[node]->path = folder_.path() + "/" + std::to_string(node);
      Serve(*daemons_[node], std::move(*memory::Region::Shareable(options.region_bytes[node])));
      shm.nodes.push_back(daemons_[node]->path);
    }
    fabric_ = std::move(*shm::ShmFabric::Open(shm));
  }

  Fabric& fabric() override { return *fabric_; }
  CallTable& calls() override { return daemons_[0]->node->calls(); }
  FlushCounts flushed() override { return daemons_[0]->node->flushed(); }
  std::unique_ptr<Client> Connect() override {
    std::unique_ptr<Client> client = World::Connect();
    client->set_concurrency(concurrency_);
    return client;
  }
  std::vector<Result<Done>> Play(std::span<const Part> parts) override { return PlayOnThreads(parts); }
  void Restart(NodeId node) override {
    Daemon& daemon = *daemons_[Index(node)];
    daemon.server.reset();
    daemon.node.reset();
    Serve(daemon, std::move(*daemon.memory).TakeRegion());
  }

 private:
  struct Daemon {
    std::string path;
    memory::RegionId region_id = shm::NewRegionId();
    std::unique_ptr<shm::SharedMemory> memory;
    std::unique_ptr<memory::ServedNode> node;
    std::unique_ptr<shm::Server> server;
  };

  static void Serve(Daemon& daemon, memory::Region region) {
    daemon.memory = std::move(*shm::SharedMemory::Create(std::move(region), daemon.region_id));
    daemon.node = std::make_unique<memory::ServedNode>(daemon.memory->region(), daemon.memory->stripes(),
                                                       daemon.region_id);
    daemon.server =
        std::move(*shm::Server::Start(*daemon.node, *daemon.memory, shm::ServerOptions{.node = daemon.path}));
  }

  const size_t concurrency_;
  const TemporaryFolder folder_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::unique_ptr<shm::ShmFabric> fabric_;
};

std::unique_ptr<World> OpenShm(const WorldOptions& options) { return std::make_unique<ShmWorld>(options, 1); }
std::unique_ptr<World> OpenShmQueued(const WorldOptions& options) {
  return std::make_unique<ShmWorld>(options, 4);
}

}  // namespace

// ---- all of them -------------------------------------------------------------------------------------

std::vector<BackendUnderTest> AllBackends() {
  return {
      {.name = "sim", .open = OpenSim, .simulated = true, .can_lose = true, .can_restart = true},
      {.name = "sim_timed", .open = OpenTimed, .simulated = true},
      {.name = "embedded", .open = OpenEmbedded},
      // Trips wait in a queue until the client is polled, as with several operations at once.
      {.name = "embedded_queued", .open = OpenEmbeddedQueued},
      {.name = "tcp", .open = OpenTcp, .can_lose = true, .can_restart = true, .rounds = 1000},
      {.name = "tls", .open = OpenTls, .can_lose = true, .can_restart = true, .rounds = 1000},
      {.name = "shm", .open = OpenShm, .can_restart = true},
      {.name = "shm_queued", .open = OpenShmQueued, .can_restart = true},
  };
}

uint64_t FabricTest::Rounds() { return GetParam().simulated ? 10 : GetParam().rounds / kFewer; }
uint64_t FabricTest::Worlds() { return GetParam().simulated ? 1000 / kFewer : 2; }

std::unique_ptr<Client> World::Connect() {
  Result<std::unique_ptr<Client>> client = fabric().Connect();
  EXPECT_TRUE(client.ok());
  return std::move(*client);
}

void World::PlayWell(std::span<const Part> parts) {
  const std::vector<Result<Done>> results = Play(parts);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) ADD_FAILURE() << "part " << i << " ended with " << results[i].error().ToString();
  }
}

// ---- single verbs ------------------------------------------------------------------------------------

namespace {

Task<Done> ReadInto(Client& client, FarAddr at, std::span<std::byte> into) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read(at, into));
  co_return Done{};
}
Task<Done> WriteFrom(Client& client, FarAddr at, std::span<const std::byte> from) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Write(at, from));
  co_return Done{};
}

}  // namespace

std::vector<std::byte> ReadBytes(Client& client, FarAddr at, uint64_t bytes) {
  std::vector<std::byte> into(bytes);
  const Result<Done> read = Run(client, ReadInto(client, at, into));
  EXPECT_TRUE(read.ok()) << read.error().ToString();
  return into;
}
uint64_t ReadWord(Client& client, FarAddr at) {
  uint64_t word = 0;
  const Result<Done> read = Run(client, ReadInto(client, at, std::as_writable_bytes(std::span(&word, 1))));
  EXPECT_TRUE(read.ok()) << read.error().ToString();
  return word;
}
void WriteBytes(Client& client, FarAddr at, std::span<const std::byte> bytes) {
  const Result<Done> written = Run(client, WriteFrom(client, at, bytes));
  EXPECT_TRUE(written.ok()) << written.error().ToString();
}
void WriteWord(Client& client, FarAddr at, uint64_t word) {
  WriteBytes(client, at, std::as_bytes(std::span(&word, 1)));
}

}  // namespace farside::fabric::conformance
