// A thousand clients of one memory node at the same time, over TCP and over shared memory.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "farside/farside.h"
#include "tests/processes/binary.h"
#include "tests/support/sanitized.h"
#include "tools/common/daemon.h"
#include "tools/common/descriptor_limit.h"

namespace farside::processes {
namespace {

using tools::Daemon;

// A sanitizer makes each of them several times as large and as slow.
constexpr size_t kClients = kSanitized ? 100 : 1000;
constexpr size_t kThreads = 8;
constexpr int kKeys = 3;  // of each client
constexpr auto kLook = std::chrono::milliseconds(10);

size_t DescriptorsOf(pid_t process) {
  const std::filesystem::directory_iterator open(fmt::format("/proc/{}/fd", process));
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

std::string KeyOf(size_t client, int i) { return fmt::format("client {} key {}", client, i); }

Status WriteAndRead(Session& session, const Table& table, size_t client) {
  std::string value;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = KeyOf(client, i);
    if (Status put = session.Put(table, key, "of " + key); !put.ok()) return put;
    const Result<bool> found = session.Get(table, key, value);
    if (!found.ok()) return found.error();
    if (!*found || value != "of " + key)
      return Error(ErrorCode::kCorrupt, fmt::format("{} has the value '{}'", key, value));
  }
  return OkStatus();
}

// Runs `work` for every client, on a few threads; returns the first error.
template <class Work>
Status ForAll(const Work& work) {
  std::mutex mutex;
  Status outcome = OkStatus();
  {
    std::vector<std::jthread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (size_t client = thread; client < kClients; client += kThreads) {
          Status worked = work(client);
          const std::scoped_lock lock(mutex);
          if (!worked.ok() && outcome.ok()) outcome = std::move(worked);
        }
      });
    }
  }
  return outcome;
}

class ManyClients : public testing::TestWithParam<std::string> {};

// Given a node. When a thousand clients connect, write and read while all of them are there, and go. Expect
// that every client finds what it wrote, that the first of them finds what all wrote, and that the node has
// no client left.
TEST_P(ManyClients, AllComeWorkAndGo) {
  const Status raised = tools::RaiseDescriptorLimit(kClients + 64);
  if (!raised.ok()) GTEST_SKIP() << raised.error().message();
  Result<Daemon> daemon =
      Daemon::Start({"--quiet", "--size", "4GiB", "--clients", std::to_string(kClients + 8), "--listen",
                     "tcp://127.0.0.1:0", "--shm", fmt::format("many-{}", ::getpid())},
                    BinaryPath());
  ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
  const size_t before = DescriptorsOf(daemon->pid());
  {
    Result<Pool> pool = Pool::Open(daemon->Url(GetParam()));
    ASSERT_TRUE(pool.ok()) << pool.error().ToString();
    Result<Table> table = pool->CreateTable("table");
    ASSERT_TRUE(table.ok()) << table.error().ToString();
    std::vector<std::optional<Session>> sessions(kClients);
    const Status came = ForAll([&](size_t client) -> Status {
      Result<Session> session = pool->NewSession();
      if (!session.ok()) return session.error();
      sessions[client].emplace(std::move(*session));
      return OkStatus();
    });
    ASSERT_TRUE(came.ok()) << came.error().ToString();
    EXPECT_GE(DescriptorsOf(daemon->pid()), before + kClients);
    const Status worked =
        ForAll([&](size_t client) { return WriteAndRead(*sessions[client], *table, client); });
    EXPECT_TRUE(worked.ok()) << worked.error().ToString();
    std::string value;
    for (size_t client = 0; client < kClients; ++client) {
      const Result<bool> found = sessions[0]->Get(*table, KeyOf(client, 0), value);
      ASSERT_TRUE(found.ok() && *found) << client;
    }
    const Status gone = ForAll([&](size_t client) -> Status {
      sessions[client].reset();
      return OkStatus();
    });
    EXPECT_TRUE(gone.ok());
    const Status closed = pool->Close();
    EXPECT_TRUE(closed.ok()) << closed.error().ToString();
  }
  while (DescriptorsOf(daemon->pid()) > before) std::this_thread::sleep_for(kLook);
}

INSTANTIATE_TEST_SUITE_P(Over, ManyClients, testing::Values("tcp", "shm"),
                         [](const auto& way) { return way.param; });

}  // namespace
}  // namespace farside::processes
