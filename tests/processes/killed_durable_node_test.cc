// A memory node of a durable pool that is killed again and again under load: what was acknowledged is there
// when it serves its file again. That shows restarts alone: the kernel keeps what was stored when a process
// is killed. What a power cut leaves is shown by the simulator (docs/persistence.md).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
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

// In memory that outlives the clients. Counters: how often they were incremented.
struct KeyState {
  std::atomic<uint64_t> acknowledged;
  std::atomic<uint64_t> begun;  // differs from it while a change is under way
};
struct Shared {
  std::array<std::array<KeyState, kKeys>, kClients> keys;
  std::array<KeyState, kClients> counters;
  std::array<std::atomic<uint64_t>, kClients> changes_of;  // acknowledged, of each client
  std::atomic<uint64_t> changes;                           // of all
};

bool Complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return false;
}

std::string CounterOf(size_t client) { return fmt::format("client-{}-counter", client); }
std::string CounterText(uint64_t number) {
  std::string text(sizeof number, '\0');
  StoreU64(reinterpret_cast<std::byte*>(text.data()), number);
  return text;
}

// What a key must hold when its client has put this; 0 is absent.
using Expected = std::function<std::optional<std::string>(uint64_t number)>;
std::optional<std::string> AsValue(uint64_t number) {
  return number == 0 ? std::nullopt : std::optional(ValueOf(number));
}
std::optional<std::string> AsCounter(uint64_t number) {
  return number == 0 ? std::nullopt : std::optional(CounterText(number));
}

// Whether a key has what was acknowledged last, or what the change made that was under way when the node was
// killed; from then on that counts.
bool Has(Session& session, const Table& table, const std::string& key, KeyState& state,
         const Expected& expected) {
  const Result<std::optional<std::string>> found = session.Get(table, key);
  if (!found.ok()) return Complain(found.error().ToString());
  const uint64_t begun = state.begun.load();
  const uint64_t acknowledged = state.acknowledged.load();
  if (*found != expected(acknowledged) && *found != expected(begun))
    return Complain(fmt::format("{} is not what {} or {} has put", key, acknowledged, begun));
  state.acknowledged.store(*found == expected(begun) ? begun : acknowledged);
  state.begun.store(state.acknowledged.load());
  return true;
}

bool HasAll(Session& session, const Table& table, size_t client, Shared& shared) {
  for (uint32_t key = 0; key < kKeys; ++key) {
    if (!Has(session, table, KeyOf(client, key), shared.keys[client][key], AsValue)) return false;
  }
  return Has(session, table, CounterOf(client), shared.counters[client], AsCounter);
}

// How a client's operation has ended.
enum class Ended { kDone, kNodeLost, kWrong };

// Every other error would be one of the table.
Ended EndOf(const Error& error) {
  if (error.code() == ErrorCode::kOutcomeUnknown || error.code() == ErrorCode::kUnavailable ||
      error.code() == ErrorCode::kFenced)
    return Ended::kNodeLost;
  Complain(error.ToString());
  return Ended::kWrong;
}

// One change of a key of this client, which no other client changes, or a look at it.
Ended Operate(Session& session, const Table& table, size_t client, Random& random, Shared& shared) {
  const auto number = static_cast<uint32_t>(random.Below(kKeys));
  const std::string key = KeyOf(client, number);
  KeyState& state = shared.keys[client][number];
  const uint64_t before = state.acknowledged.load();
  const auto change = [&](KeyState& changed, uint64_t after, const auto& make) {
    changed.begun.store(after);
    const Status made = make();
    if (!made.ok()) return EndOf(made.error());
    changed.acknowledged.store(after);
    return Ended::kDone;
  };
  // Whether something was there is known, too.
  const auto expect = [](const Result<bool>& applied, bool expected) -> Status {
    if (!applied.ok()) return applied.error();
    if (*applied != expected)
      return Error(ErrorCode::kCorrupt, "a key was there, or not, against expectation");
    return OkStatus();
  };
  const uint64_t after = shared.changes.load() * kClients + client + 1;
  const std::string value = ValueOf(after);
  const bool present = before != 0;
  switch (random.Below(8)) {
    case 0: {
      const Result<std::optional<std::string>> found = session.Get(table, key);
      if (!found.ok()) return EndOf(found.error());
      if (*found == AsValue(before)) return Ended::kDone;
      Complain(fmt::format("{} is not what {} has put", key, before));
      return Ended::kWrong;
    }
    case 1: return change(state, 0, [&] { return expect(session.Delete(table, key), present); });
    case 2:
      return change(state, present ? after : 0,
                    [&] { return expect(session.Update(table, key, value), present); });
    case 3:
      return change(state, present ? after : 0, [&] {
        return expect(session.CompareAndSet(table, key, ValueOf(before), value), present);
      });
    case 4:
      return change(state, present ? before : after,
                    [&] { return expect(session.Insert(table, key, value), !present); });
    case 5: {
      KeyState& counter = shared.counters[client];
      const uint64_t next = counter.acknowledged.load() + 1;
      return change(counter, next, [&]() -> Status {
        const Result<uint64_t> now = session.Increment(table, CounterOf(client));
        if (!now.ok()) return now.error();
        if (*now != next) return Error(ErrorCode::kCorrupt, "a counter was incremented twice, or not");
        return OkStatus();
      });
    }
    default: return change(state, after, [&] { return session.Put(table, key, value); });
  }
}

// Looks at all keys, and then works until the node is gone. False: something is wrong with them.
bool RunClient(const std::string& url, size_t client, uint64_t seed, Shared& shared) {
  Result<Pool> pool = Pool::Open(url);
  if (!IsDone("Open", pool)) return false;
  Result<Table> table = pool->OpenTable(kTable);
  if (!IsDone("OpenTable", table)) return false;
  Result<Session> session = pool->NewSession();
  if (!IsDone("NewSession", session) || !HasAll(*session, *table, client, shared)) return false;
  Random random(seed);
  while (true) {
    const Ended ended = Operate(*session, *table, client, random, shared);
    if (ended != Ended::kDone) return ended == Ended::kNodeLost;
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
  // Given a table of a durable pool in a file, and two processes that read and change it, one over shared
  // memory and one over TCP. When its node is killed and started again. Expect each time that every key is as
  // it was acknowledged; and in the end that fsck finds nothing.
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
      while (shared_->changes_of[client].load() < goals[client]) {
        ASSERT_FALSE(HasEnded(clients[client])) << "before kill " << kill << ": it met an error, see above";
        std::this_thread::yield();
      }
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
  const Result<TableStats> stats = session->Stats(*table);
  ASSERT_TRUE(stats.ok()) << stats.error().ToString();
  EXPECT_GT(stats->slots, 20u) << "the table has grown from one pair";
  ASSERT_TRUE(session->Close().ok());
  ASSERT_TRUE(pool->Close().ok());
  // What the killed clients had is free when a client was there for a few leases.
  const std::string fsck = BinaryPath() + " fsck '" + daemon_->Url("tcp") + "' >/dev/null";
  bool clean = false;
  constexpr std::chrono::milliseconds kLease(kSanitized ? 2000 : 400);
  for (int lease = 0; lease < 50 && !clean; ++lease) {
    Result<Pool> sweeper = Pool::Open(daemon_->Url("tcp"), {.lease = kLease});
    ASSERT_TRUE(sweeper.ok()) << sweeper.error().ToString();
    clean = sweeper->Close().ok() && std::system(fsck.c_str()) == 0;
  }
  EXPECT_TRUE(clean) << "something is leaked or damaged: " << fsck;
  RecordProperty("acknowledged changes", static_cast<int>(shared_->changes.load()));
}

}  // namespace
}  // namespace farside::processes
