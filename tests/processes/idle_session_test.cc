// Sessions of other processes that are idle, and a pool that is nearly full.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tests/processes/binary.h"
#include "tests/processes/worker.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

// The life of a process that uses a session once and then only keeps it, until it is killed.
int StayIdle(const std::string& url) {
  Result<Pool> pool = Pool::Open(url);
  if (!pool.ok()) return 1;
  Result<Table> table = pool->OpenTable(kTable);
  Result<Session> session = pool->NewSession();
  if (!table.ok() || !session.ok() || !session->Put(*table, "idle", "yes").ok()) return 1;
  while (true) ::pause();
}

TEST(IdleSession, OfAnotherProcess_DoesNotMakeAPutFail) {
  // Given a pool with a process that has a session and does not use it.
  // When another process deletes records and puts others, again and again, with more bytes in all than the
  // pool has.
  // Expect that no put fails: memory comes back although the idle session does nothing.
  UrlPipe pipe;
  Child child([&pipe] { return StayIdle(pipe.Read()); });
  Result<Daemon> daemon =
      Daemon::Start({"--quiet", "--size", "8MiB", "--listen", "tcp://127.0.0.1:0"}, BinaryPath());
  ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
  const std::string url = daemon->Url("tcp");
  Result<Pool> pool = Pool::Open(url);
  ASSERT_TRUE(pool.ok()) << pool.error().ToString();
  Result<Table> table = pool->CreateTable(kTable);
  ASSERT_TRUE(table.ok()) << table.error().ToString();
  Result<Session> session = pool->NewSession();
  ASSERT_TRUE(session.ok()) << session.error().ToString();
  pipe.Tell(url);
  while (true) {
    const Result<std::optional<std::string>> there = session->Get(*table, "idle");
    ASSERT_TRUE(there.ok()) << there.error().ToString();
    if (there->has_value()) break;
  }
  const std::string value(4000, 'v');
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 1000; ++i) {
      const Status put = session->Put(*table, "key-" + std::to_string(i), value);
      ASSERT_TRUE(put.ok()) << "round " << round << ", record " << i << ": " << put.error().ToString();
    }
    for (int i = 0; i < 1000; ++i) {
      const Result<bool> deleted = session->Delete(*table, "key-" + std::to_string(i));
      ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
    }
  }
}

}  // namespace
}  // namespace farside::processes
