// A memory node of a durable pool that is killed again and again under load: what was acknowledged is there when
// it serves its file again. That shows restarts alone: the kernel keeps what was stored when a process is killed.
// What a power cut leaves is shown by the simulator (docs/persistence.md).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "farside/farside.h"
#include "tests/processes/binary.h"
#include "tests/processes/forked.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

constexpr int kKills = kSanitized ? 10 : 100;
constexpr size_t kClients = 2;
constexpr uint32_t kKeys = 24;  // of each client
constexpr uint64_t kMostChangesUntilKill = 40;
constexpr char kTable[] = "t";

// What a client has put: 0 is absent, n is its n-th value. Large values stand in blocks of their own.
std::string KeyOf(size_t client, uint32_t key) { return fmt::format("client-{}-key-{}", client, key); }
std::string ValueOf(uint64_t number) {
  return number % 3 == 0 ? fmt::format("{:0200}", number) : fmt::format("{}", number);
}

// In memory that outlives the clients.
struct KeyState {
  std::atomic<uint64_t> acknowledged;
  std::atomic<uint64_t> begun;  // differs from it while a change is under way
};
struct Shared {
  std::array<std::array<KeyState, kKeys>, kClients> keys;
  std::array<std::atomic<uint64_t>, kClients> changes_of;  // acknowledged, of each client
  std::atomic<uint64_t> changes;                           // of all
};

// Whether every key of a client has the value that was acknowledged last, or that of the change that was under
// way when the node was killed.
bool HasAll(Session& session, const Table& table, size_t client, Shared& shared) {
  for (uint32_t key = 0; key < kKeys; ++key) {
    KeyState& state = shared.keys[client][key];
    const Result<std::optional<std::string>> found = session.Get(table, KeyOf(client, key));
    if (!found.ok()) {
      std::fprintf(stderr, "%s\n", found.error().ToString().c_str());
      return false;
    }
    const auto is = [&](uint64_t number) {
      return found->has_value() ? number != 0 && **found == ValueOf(number) : number == 0;
    };
    const uint64_t begun = state.begun.load();
    const uint64_t acknowledged = state.acknowledged.load();
    if (!is(acknowledged) && !is(begun)) {
      std::fprintf(stderr, "%s\n",
                   fmt::format("{} is {} instead of {} or {}", KeyOf(client, key), found->value_or("absent"),
                               acknowledged, begun)
                       .c_str());
      return false;
    }
    if (is(begun)) state.acknowledged.store(begun);
    state.begun.store(state.acknowledged.load());
  }
  return true;
}

// Looks at all keys, and then changes them until the node is gone. False: something is wrong with them.
bool RunClient(const std::string& url, size_t client, uint64_t seed, Shared& shared) {
  Result<Pool> pool = Pool::Open(url);
  if (!IsDone("Open", pool)) return false;
  Result<Table> table = pool->OpenTable(kTable);
  if (!IsDone("OpenTable", table)) return false;
  Result<Session> session = pool->NewSession();
  if (!IsDone("NewSession", session) || !HasAll(*session, *table, client, shared)) return false;
  Random random(seed);
  while (true) {
    const auto key = static_cast<uint32_t>(random.Below(kKeys));
    KeyState& state = shared.keys[client][key];
    const bool removes = state.acknowledged.load() != 0 && random.Chance(1, 4);
    const uint64_t after = removes ? 0 : shared.changes.load() * kClients + client + 1;
    state.begun.store(after);
    const bool done = removes ? session->Delete(*table, KeyOf(client, key)).ok()
                              : session->Put(*table, KeyOf(client, key), ValueOf(after)).ok();
    if (!done) return true;
    state.acknowledged.store(after);
    shared.changes_of[client].fetch_add(1);
    shared.changes.fetch_add(1);
  }
}

// Does not take its exit code.
bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

class KilledDurableNode : public testing::Test {
 protected:
  KilledDurableNode() {
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared();
  }
  ~KilledDurableNode() override { ::munmap(shared_, sizeof(Shared)); }

  // The file can be served when the clients of the killed node have let go of it, which they have.
  void Start() {
    Result<Daemon> started =
        Daemon::Start({"--quiet", "--size", "8MiB", "--pmem", folder_.path() + "/pool", "--listen",
                       "tcp://127.0.0.1:0", "--shm", folder_.path() + "/node.sock"},
                      BinaryPath());
    ASSERT_TRUE(started.ok()) << started.error().ToString();
    daemon_ = std::make_unique<Daemon>(std::move(*started));
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  Shared* shared_ = nullptr;
};

TEST_F(KilledDurableNode, AHundredTimesUnderLoad_EveryAcknowledgedChangeIsThere) {
  // Given a table of a durable pool in a file, and two processes that change it, one over shared memory and one
  // over TCP. When its node is killed and started again. Expect each time that every key is as it was
  // acknowledged.
  ASSERT_NO_FATAL_FAILURE(Start());
  {
    Result<Pool> pool = Pool::Open(daemon_->Url("tcp"));
    ASSERT_TRUE(pool.ok()) << pool.error().ToString();
    const Result<Table> table =
        pool->CreateTable(kTable, {.engine = "continuity", .options = {{"pairs", "1"}}});
    ASSERT_TRUE(table.ok()) << table.error().ToString();
    ASSERT_TRUE(pool->Close().ok());
  }
  Random random(11);
  for (int kill = 0; kill < kKills; ++kill) {
    const uint64_t seed = random.Next();
    const std::array<std::string, kClients> urls = {daemon_->Url("shm"), daemon_->Url("tcp")};
    std::array<uint64_t, kClients> goals;
    for (size_t client = 0; client < kClients; ++client)
      goals[client] = shared_->changes_of[client].load() + 1 + random.Below(kMostChangesUntilKill);
    std::vector<pid_t> clients;
    for (size_t client = 0; client < kClients; ++client) {
      clients.push_back(
          Fork(Ending::kAtOnce, [&] { return RunClient(urls[client], client, seed + client, *shared_); }));
    }
    for (size_t client = 0; client < kClients; ++client) {
      while (shared_->changes_of[client].load() < goals[client] && !HasEnded(clients[client]))
        std::this_thread::yield();
    }
    daemon_->Kill();
    daemon_.reset();
    for (const pid_t client : clients) ASSERT_EQ(AwaitEndOf(client), 0) << "after " << kill << " kills";
    ASSERT_NO_FATAL_FAILURE(Start()) << "after " << kill + 1 << " kills";
  }
  Result<Pool> pool = Pool::Open(daemon_->Url("tcp"));
  ASSERT_TRUE(pool.ok()) << pool.error().ToString();
  const Result<Table> table = pool->OpenTable(kTable);
  ASSERT_TRUE(table.ok()) << table.error().ToString();
  Result<Session> session = pool->NewSession();
  ASSERT_TRUE(session.ok()) << session.error().ToString();
  for (size_t client = 0; client < kClients; ++client)
    EXPECT_TRUE(HasAll(*session, *table, client, *shared_));
  RecordProperty("acknowledged changes", static_cast<int>(shared_->changes.load()));
}

}  // namespace
}  // namespace farside::processes
