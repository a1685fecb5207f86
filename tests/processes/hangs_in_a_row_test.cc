// Memory nodes that begin to hang one after the other, while an operation waits for the one before: what an
// operation waits for all of them has a bound.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "farside/farside.h"
#include "tests/processes/binary.h"
#include "tests/support/sanitized.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

// Long, so that what a busy machine adds hardly counts.
constexpr auto kLease = std::chrono::milliseconds(kSanitized ? 8000 : 4000);
constexpr size_t kNodes = 4;
constexpr int kRecords = 64;

std::string KeyOf(int record) { return "key-" + std::to_string(record); }

// How long the longest of some operations took.
struct Longest {
  void Time(const std::function<void()>& operation) {
    const auto begin = std::chrono::steady_clock::now();
    operation();
    took = std::max(took, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin));
  }
  double leases() const { return took / kLease; }
  std::chrono::duration<double> took{0};
};

class HangsInARow : public testing::Test {
 protected:
  void SetUp() override {
    std::string addresses;
    for (size_t node = 0; node < kNodes; ++node) {
      Result<Daemon> daemon = Daemon::Start(
          {"--quiet", "--size", "32MiB", "--clients", "32", "--listen", "tcp://127.0.0.1:0"}, BinaryPath());
      ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
      addresses += (node == 0 ? "" : ",") + daemon->Url("tcp").substr(std::string("tcp://").size());
      daemons_.push_back(std::make_unique<Daemon>(std::move(*daemon)));
    }
    url_ = "tcp://" + addresses;
  }
  void TearDown() override {
    for (const auto& daemon : daemons_) ::kill(daemon->pid(), SIGCONT);
  }

  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::string url_;
};
TEST_F(HangsInARow, CostAnOperationAtMostOneAndAHalfLeases) {
  // Given a pool of four nodes, and threads that put, get many records, and make and drop tables.
  PoolOptions options;
  options.lease = kLease;
  Pool pool = Pool::Open(url_, options).value();
  const Table table = pool.CreateTable("t").value();
  Session puts = pool.NewSession().value();
  Session gets = pool.NewSession().value();
  std::vector<std::string> keys;
  for (int record = 0; record < kRecords; ++record) {
    keys.push_back(KeyOf(record));
    ASSERT_TRUE(puts.Put(table, keys.back(), "before").ok());
  }
  std::vector<GetItem> items(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) items[i].key = keys[i];
  std::atomic<bool> ended{false};
  Longest put;
  Longest get;
  Longest drop;
  std::thread putting([&] {
    for (int record = 0; !ended; ++record) {
      put.Time(
          [&] { static_cast<void>(puts.Put(table, keys[static_cast<size_t>(record % kRecords)], "x")); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::thread getting([&] {
    while (!ended) {
      get.Time([&] { static_cast<void>(gets.MultiGet(table, items)); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::thread dropping([&] {
    while (!ended) {
      drop.Time([&] { static_cast<void>(pool.CreateTable("passing")); });
      drop.Time([&] { static_cast<void>(pool.DropTable("passing")); });
    }
  });
  // When the nodes begin to hang one after the other, and go on later.
  std::this_thread::sleep_for(kLease / 4);
  for (const auto& daemon : daemons_) {
    ::kill(daemon->pid(), SIGSTOP);
    std::this_thread::sleep_for(kLease / 3);
  }
  std::this_thread::sleep_for(2 * kLease);
  for (const auto& daemon : daemons_) ::kill(daemon->pid(), SIGCONT);
  ended = true;
  putting.join();
  getting.join();
  dropping.join();
  // Expect that no operation has waited for longer.
  EXPECT_LE(put.leases(), 1.5);
  EXPECT_LE(get.leases(), 1.5);
  EXPECT_LE(drop.leases(), 1.5);
}

}  // namespace
}  // namespace farside::processes
