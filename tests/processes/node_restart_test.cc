// A memory node that is killed and comes back at the same address, with its file or without: what sessions
// see that were open all the time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "farside/farside.h"
#include "tests/processes/binary.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

constexpr int kRecords = 200;
constexpr auto kLook = std::chrono::milliseconds(5);
// How often at most to look for what must come; far more than it takes.
constexpr int kMostLooks = 20'000;

PoolOptions ShortLease() {
  PoolOptions options;
  options.lease = std::chrono::milliseconds(kSanitized ? 2000 : 1000);
  return options;
}

std::string KeyOf(int record) { return "key-" + std::to_string(record); }
std::string ValueOf(int record) { return "value-" + std::to_string(record); }

// A node that can be killed and started again where it was.
class Node {
 public:
  Node(std::string scheme, const std::string& folder, const std::string& name)
      : scheme_(std::move(scheme)), file_(folder + "/" + name + ".pool") {
    where_ = scheme_ == "tcp" ? std::vector<std::string>{"--listen", "tcp://127.0.0.1:0"}
                              : std::vector<std::string>{"--shm", folder + "/" + name + ".sock"};
  }

  // With its file, or with fresh memory. A file can be served when the last client of a killed node has let
  // go of it, so it is tried again.
  void Start(bool with_file) {
    std::vector<std::string> arguments = {"--quiet", "--size", "64MiB", "--clients", "32"};
    arguments.insert(arguments.end(), where_.begin(), where_.end());
    if (with_file) arguments.insert(arguments.end(), {"--file", file_});
    std::string why;
    for (int look = 0; look < kMostLooks && daemon_ == nullptr; ++look) {
      Result<Daemon> started = Daemon::Start(arguments, BinaryPath());
      if (started.ok()) {
        daemon_ = std::make_unique<Daemon>(std::move(*started));
      } else {
        why = started.error().ToString();
        std::this_thread::sleep_for(kLook);
      }
    }
    ASSERT_NE(daemon_, nullptr) << why;
    if (scheme_ == "tcp") where_ = {"--listen", url()};  // from now on, there
  }
  void Kill() {
    daemon_->Kill();
    daemon_.reset();
  }
  std::string url() const { return daemon_->Url(scheme_); }

 private:
  const std::string scheme_;
  const std::string file_;
  std::vector<std::string> where_;
  std::unique_ptr<Daemon> daemon_;
};

struct Opened {
  explicit Opened(const std::string& url)
      : pool(Pool::Open(url, ShortLease()).value()),
        table(pool.OpenOrCreateTable("kept").value()),
        session(pool.NewSession().value()) {}
  Pool pool;
  Table table;
  Session session;
};

void PutAll(Opened& opened) {
  for (int record = 0; record < kRecords; ++record) {
    const Status put = opened.session.Put(opened.table, KeyOf(record), ValueOf(record));
    ASSERT_TRUE(put.ok()) << put.error().ToString();
  }
}

void ExpectAll(Opened& opened) {
  for (int record = 0; record < kRecords; ++record) {
    const Result<std::optional<std::string>> got = opened.session.Get(opened.table, KeyOf(record));
    ASSERT_TRUE(got.ok()) << got.error().ToString();
    EXPECT_EQ(*got, ValueOf(record));
  }
}

class NodeRestart : public testing::TestWithParam<std::string> {
 protected:
  const TemporaryFolder folder_;
  Node node_{GetParam(), folder_.path(), "node"};
};
INSTANTIATE_TEST_SUITE_P(Processes, NodeRestart, testing::Values("tcp", "shm"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(NodeRestart, WithItsFile_IsFoundAgainByOpenSessionsAndHasWhatWasAcknowledged) {
  // Given a session, and records that were acknowledged.
  node_.Start(/*with_file=*/true);
  Opened opened(node_.url());
  PutAll(opened);
  // When the node is killed. Expect that the session is told, sooner or later (a client of shared memory may
  // go on in the file for a while), by an error that names the node, and until then reads what is there.
  node_.Kill();
  std::optional<Error> told;
  for (int look = 0; look < kMostLooks && !told.has_value(); ++look) {
    const Result<std::optional<std::string>> got = opened.session.Get(opened.table, KeyOf(0));
    if (got.ok()) {
      ASSERT_EQ(*got, ValueOf(0));
    } else {
      told = got.error();
    }
  }
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->code(), ErrorCode::kUnavailable);
  EXPECT_NE(told->message().find(GetParam() == "tcp" ? "127.0.0.1:" : "node.sock"), std::string::npos)
      << told->ToString();
  // And that a write says that nothing was changed, again and again.
  for (int i = 0; i < 3; ++i) {
    const Status put = opened.session.Put(opened.table, KeyOf(0), "never");
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().code(), ErrorCode::kUnavailable) << put.error().ToString();
  }
  // When it is back with its file. Expect that the session finds it again by itself, and all that was
  // acknowledged.
  node_.Start(/*with_file=*/true);
  ExpectAll(opened);
  PutAll(opened);
  EXPECT_TRUE(opened.session.Close().ok());
  EXPECT_TRUE(opened.pool.Close().ok());
}

TEST_P(NodeRestart, WithoutItsMemory_IsRefusedAndNotTakenForTheOldOne) {
  // Given a session, and records in memory that goes with the node.
  node_.Start(/*with_file=*/false);
  const std::string url = node_.url();
  {
    Opened opened(url);
    PutAll(opened);
    // When the node is killed, and another is started at its address with new memory.
    node_.Kill();
    node_.Start(/*with_file=*/false);
    // Expect that the session is told so, and that no answer comes from the new memory. (In shared memory it
    // may see the old one for a while.)
    std::optional<Error> told;
    for (int look = 0; look < kMostLooks && !told.has_value(); ++look) {
      const Result<std::optional<std::string>> got = opened.session.Get(opened.table, KeyOf(look % kRecords));
      if (got.ok()) {
        ASSERT_EQ(*got, ValueOf(look % kRecords));
      } else if (got.error().message().find("other memory") != std::string::npos) {
        told = got.error();
      } else {
        EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable) << got.error().ToString();
      }
    }
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->code(), ErrorCode::kUnavailable);
    EXPECT_NE(told->message().find("open the pool again"), std::string::npos) << told->ToString();
    for (int record = 0; record < kRecords; ++record) {
      EXPECT_FALSE(opened.session.Get(opened.table, KeyOf(record)).ok());
      EXPECT_FALSE(opened.session.Put(opened.table, KeyOf(record), "mixed").ok());
    }
  }
  // Expect that a client that opens the pool anew finds a new one, in which the old session has left nothing.
  Result<Pool> anew = Pool::Open(url, ShortLease());
  ASSERT_TRUE(anew.ok()) << anew.error().ToString();
  const Result<std::vector<TableInfo>> tables = anew->ListTables();
  ASSERT_TRUE(tables.ok());
  EXPECT_TRUE(tables->empty());
}

TEST(NodesRestart, OneOfTwo_TakesItsKeysWithItAndBringsThemBack) {
  // Given a pool of two nodes with files, and records on both.
  const TemporaryFolder folder;
  Node first("tcp", folder.path(), "first");
  Node second("tcp", folder.path(), "second");
  first.Start(/*with_file=*/true);
  second.Start(/*with_file=*/true);
  const std::string url = first.url() + "," + second.url().substr(std::string("tcp://").size());
  Opened opened(url);
  PutAll(opened);
  // When the second one is killed. Expect that its keys, and only they, fail with an error that names it.
  const std::string address = second.url().substr(std::string("tcp://").size());
  second.Kill();
  std::set<int> lost;
  for (int record = 0; record < kRecords; ++record) {
    const Result<std::optional<std::string>> got = opened.session.Get(opened.table, KeyOf(record));
    if (got.ok()) {
      EXPECT_EQ(*got, ValueOf(record));
      continue;
    }
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable) << got.error().ToString();
    EXPECT_NE(got.error().message().find(address), std::string::npos) << got.error().ToString();
    lost.insert(record);
  }
  EXPECT_GT(lost.size(), size_t{kRecords} / 5);
  EXPECT_LT(lost.size(), size_t{kRecords} * 4 / 5);
  // When it comes back empty. Expect that its keys go on to fail, and do not look as if they had never been
  // there.
  second.Start(/*with_file=*/false);
  for (int look = 0; look < 100; ++look) {
    for (const int record : lost) EXPECT_FALSE(opened.session.Get(opened.table, KeyOf(record)).ok());
    std::this_thread::sleep_for(kLook);  // the keeper looks for the node several times meanwhile
  }
  // Expect that no client can open such a pool.
  const Result<Pool> mixed = Pool::Open(url, ShortLease());
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(mixed.error().message().find(address + " has new memory"), std::string::npos)
      << mixed.error().ToString();
  // When it comes back with its file. Expect that the session finds it by itself, with all that was
  // acknowledged.
  second.Kill();
  second.Start(/*with_file=*/true);
  bool found = false;
  for (int look = 0; look < kMostLooks && !found; ++look) {
    found = opened.session.Get(opened.table, KeyOf(*lost.begin())).ok();
    if (!found) std::this_thread::sleep_for(kLook);
  }
  EXPECT_TRUE(found);
  ExpectAll(opened);
  EXPECT_TRUE(opened.session.Close().ok());
  EXPECT_TRUE(opened.pool.Close().ok());
}

}  // namespace
}  // namespace farside::processes
