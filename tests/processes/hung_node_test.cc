// A memory node that hangs: it is there, its connections are open, and it answers nothing. The other nodes,
// and the leases at them, must not suffer from it.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/tcp/tcp.h"
#include "farside/farside.h"
#include "pool/region/layout.h"
#include "pool/region/superblock.h"
#include "tests/processes/binary.h"
#include "tests/support/sanitized.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

constexpr auto kLease = std::chrono::milliseconds(kSanitized ? 6000 : 1500);
constexpr size_t kSessions = 12;
constexpr int kRecords = 40;
constexpr auto kLook = std::chrono::milliseconds(5);
constexpr int kMostLooks = 20'000;

PoolOptions WithLease() {
  PoolOptions options;
  options.lease = kLease;
  return options;
}

std::string KeyOf(int record) { return "key-" + std::to_string(record); }

// Clients that are registered at a node and connected to it, with their heartbeats.
using Clients = std::map<uint32_t, uint64_t>;

Task<Clients> FindClients(fabric::Client& client) {
  const fabric::NodeId node{0};
  fabric::Op op(client, fabric::OpKind::kMaintenance);
  const pool::Superblock superblock = co_await pool::ReadSuperblock(op, node);
  const pool::Geometry geometry = pool::GeometryOf(superblock);
  std::vector<pool::ClientSlot> slots(geometry.client_slots);
  co_await op.InOrder(fabric::ForMaintenance(
      fabric::Read(fabric::FarAddr(node, geometry.registry()), std::as_writable_bytes(std::span(slots)))));
  std::vector<uint32_t> ids;
  Clients clients;
  for (const pool::ClientSlot& slot : slots) {
    if (slot.state.state() != pool::ClientState::kLive) continue;
    ids.push_back(Number(slot.state.fabric_client()));
    clients[ids.back()] = slot.pulse.heartbeat;
  }
  const std::string request(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(uint32_t));
  const std::string gone = co_await op.Call(node, fabric::kGoneClients, request);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (gone[i] != 0) clients.erase(ids[i]);
  }
  co_return clients;
}

Clients ClientsOf(const std::string& address) {
  fabric::tcp::Options options;
  options.addresses = {address};
  const auto fabric = fabric::tcp::TcpFabric::Open(options).value();
  const auto client = fabric->Connect().value();
  return fabric::Run(*client, FindClients(*client)).value();
}

// A process of its own, nearly: a pool with its keeper, and sessions of which the first is used.
struct Party {
  explicit Party(const std::string& url)
      : pool(Pool::Open(url, WithLease()).value()), table(pool.OpenOrCreateTable("shared").value()) {
    for (size_t i = 0; i < kSessions; ++i) sessions.push_back(pool.NewSession().value());
  }
  Pool pool;
  Table table;
  std::vector<Session> sessions;
};

// Which of the two hangs.
class HungNode : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    for (size_t node = 0; node < 2; ++node) {
      Result<Daemon> daemon = Daemon::Start(
          {"--quiet", "--size", "64MiB", "--clients", "64", "--listen", "tcp://127.0.0.1:0"}, BinaryPath());
      ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
      addresses_.push_back(daemon->Url("tcp").substr(std::string("tcp://").size()));
      daemons_.push_back(std::make_unique<Daemon>(std::move(*daemon)));
    }
    url_ = "tcp://" + addresses_[0] + "," + addresses_[1];
  }
  void TearDown() override {
    for (const auto& daemon : daemons_) ::kill(daemon->pid(), SIGCONT);
  }

  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::vector<std::string> addresses_;
  std::string url_;
};
INSTANTIATE_TEST_SUITE_P(Processes, HungNode, testing::Values(0, 1),
                         [](const auto& chosen) { return chosen.param == 0 ? "first" : "second"; });

TEST_P(HungNode, DoesNotCostSessionsTheirLeasesAtOthers) {
  // Given a pool of two nodes and two processes, each with many sessions, most of them idle.
  const size_t hung = GetParam();
  const size_t other = 1 - hung;
  auto one = std::make_unique<Party>(url_);
  auto two = std::make_unique<Party>(url_);
  for (int record = 0; record < kRecords; ++record)
    ASSERT_TRUE(one->sessions[0].Put(one->table, KeyOf(record), "before").ok());
  // (A session that has never used a table has to look into its catalog, which may be at the node that
  // hangs.)
  ASSERT_TRUE(two->sessions[0].Get(two->table, KeyOf(0)).ok());
  const Clients before = ClientsOf(addresses_[other]);
  ASSERT_EQ(before.size(), 2 * (kSessions + 1)) << "each pool has a session of its own";
  // When one of the nodes hangs for some leases, and both go on with keys of the other.
  ::kill(daemons_[hung]->pid(), SIGSTOP);
  const Clients stopped = ClientsOf(addresses_[other]);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Clients> later;
  std::set<int> lost;
  uint64_t served = 0;
  while (std::chrono::steady_clock::now() < begin + 4 * kLease) {
    if (!later.has_value() && std::chrono::steady_clock::now() >= begin + 2 * kLease)
      later = ClientsOf(addresses_[other]);
    for (int record = 0; record < kRecords; ++record) {
      if (lost.contains(record)) continue;
      for (Party* party : {one.get(), two.get()}) {
        const Status put = party->sessions[0].Put(party->table, KeyOf(record), "meanwhile");
        if (put.ok()) {
          ++served;
          continue;
        }
        // Expect errors that name the node that hangs, and only for its keys.
        EXPECT_NE(put.error().message().find(addresses_[hung]), std::string::npos) << put.error().ToString();
        lost.insert(record);
      }
    }
    std::this_thread::sleep_for(kLook);
  }
  // Expect that its keys were lost meanwhile and the others not, and that no client was cut off from the
  // other node.
  EXPECT_GT(lost.size(), 0u);
  EXPECT_LT(lost.size(), size_t{kRecords} * 4 / 5);
  EXPECT_GT(served, 100u);
  Clients after = ClientsOf(addresses_[other]);
  for (const auto& [id, heartbeat] : before) EXPECT_TRUE(after.contains(id)) << id;
  // And that all of them, whether used or idle, have given signs of life there while their leases passed.
  ASSERT_TRUE(later.has_value());
  for (const auto& [id, heartbeat] : stopped) {
    EXPECT_NE((*later)[id], heartbeat) << id;
    EXPECT_NE(after[id], (*later)[id]) << id;
  }
  // When it goes on. Expect that all sessions have it again.
  ::kill(daemons_[hung]->pid(), SIGCONT);
  for (Party* party : {one.get(), two.get()}) {
    for (Session& session : party->sessions) {
      for (const int record : lost) {
        bool found = false;
        for (int look = 0; look < kMostLooks && !found; ++look) {
          found = session.Get(party->table, KeyOf(record)).ok();
          if (!found) std::this_thread::sleep_for(kLook);
        }
        ASSERT_TRUE(found);
      }
    }
  }
}

// Of all threads of this process.
std::chrono::nanoseconds ProcessorTime() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST_P(HungNode, TakesLittleProcessorTimeOfItsClients) {
  // Given a pool of two nodes with some sessions. When one of the nodes hangs for some leases, and the
  // program uses one of its keys after the other, with pauses. Expect that the process waits for most of that
  // time, and does not look again and again: on a machine that is busy it takes even less.
  Party party(url_);
  for (int record = 0; record < kRecords; ++record)
    ASSERT_TRUE(party.sessions[0].Put(party.table, KeyOf(record), "before").ok());
  ::kill(daemons_[GetParam()]->pid(), SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds before = ProcessorTime();
  for (int record = 0; std::chrono::steady_clock::now() < begin + 2 * kLease; ++record) {
    Session& session = party.sessions[static_cast<size_t>(record) % kSessions];
    static_cast<void>(session.Put(party.table, KeyOf(record % kRecords), "meanwhile"));
    std::this_thread::sleep_for(kLook);
  }
  const std::chrono::nanoseconds took = ProcessorTime() - before;
  EXPECT_LT(took, (std::chrono::steady_clock::now() - begin) / 20);
  ::kill(daemons_[GetParam()]->pid(), SIGCONT);
}

}  // namespace
}  // namespace farside::processes
