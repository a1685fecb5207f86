// A memory node without a file that is killed: what it served is gone, and no client says otherwise.
#include <gtest/gtest.h>

#include <string>

#include "farside/farside.h"
#include "tests/processes/binary.h"
#include "tests/support/temporary_folder.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

TEST(KilledNode, ShmWithoutAFile_NoOperationThatBeginsLaterIsAcknowledged) {
  // Given a session on the shared memory of a node. When the node was killed, and the kernel says that it has
  // ended. Expect that the next operation fails, whatever it is: its memory is kept by no process that could
  // serve it.
  const TemporaryFolder folder;
  for (int operation = 0; operation < 4; ++operation) {
    const std::string socket = folder.path() + "/node-" + std::to_string(operation) + ".sock";
    Result<Daemon> daemon = Daemon::Start({"--quiet", "--size", "16MiB", "--shm", socket}, BinaryPath());
    ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
    Result<Pool> pool = Pool::Open("shm:" + socket);
    ASSERT_TRUE(pool.ok()) << pool.error().ToString();
    const Result<Table> table = pool->CreateTable("t", {});
    ASSERT_TRUE(table.ok()) << table.error().ToString();
    Result<Session> session = pool->NewSession();
    ASSERT_TRUE(session.ok()) << session.error().ToString();
    ASSERT_TRUE(session->Put(*table, "key", "before").ok());

    daemon->Kill();

    switch (operation) {
      case 0: EXPECT_FALSE(session->Put(*table, "key", "after").ok()); break;
      case 1: EXPECT_FALSE(session->Insert(*table, "other", "after").ok()); break;
      case 2: EXPECT_FALSE(session->Delete(*table, "key").ok()); break;
      default: EXPECT_FALSE(session->Get(*table, "key").ok()); break;
    }
    EXPECT_FALSE(session->Put(*table, "key", "again").ok());
  }
}

}  // namespace
}  // namespace farside::processes
