// Real processes that share a pool: a memory node, and clients over shared memory and TCP, of which some are
// killed or stopped in the middle of everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check/linearizability.h"
#include "tests/processes/binary.h"
#include "tests/processes/worker.h"
#include "tests/support/sanitized.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

constexpr size_t kWorkers = 4;
constexpr uint64_t kOperations = kSanitized ? 300 : 1500;  // of each worker
constexpr auto kLook = std::chrono::milliseconds(1);

PoolOptions QuickToReleaseSlots() {
  PoolOptions options;
  options.lease = std::chrono::milliseconds(kSanitized ? 2000 : 400);
  return options;
}

// Over which backends the workers come; by turns.
struct Ways {
  std::string name;
  std::vector<std::string> schemes;
};
std::ostream& operator<<(std::ostream& out, const Ways& ways) { return out << ways.name; }

class SharedPool : public testing::TestWithParam<Ways> {
 protected:
  void SetUp() override {
    for (size_t worker = 0; worker < kWorkers; ++worker) {
      pipes_.push_back(std::make_unique<UrlPipe>());
      children_.emplace_back([this, worker] { return Live(worker); });
    }
    Result<Daemon> daemon =
        Daemon::Start({"--quiet", "--size", "64MiB", "--clients", "64", "--listen", "tcp://127.0.0.1:0",
                       "--shm", "test-" + std::to_string(::getpid()), "--fence", "kill"},
                      BinaryPath());
    ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
    daemon_ = std::make_unique<Daemon>(std::move(*daemon));
    Result<Pool> pool = Pool::Open(UrlOf(0), QuickToReleaseSlots());
    ASSERT_TRUE(pool.ok()) << pool.error().ToString();
    ASSERT_TRUE(pool->CreateTable(kTable).ok());
    ASSERT_TRUE(pool->Close().ok());
    for (size_t worker = 0; worker < kWorkers; ++worker) pipes_[worker]->Tell(UrlOf(worker));
  }

  std::string UrlOf(size_t worker) const {
    return daemon_->Url(GetParam().schemes[worker % GetParam().schemes.size()]);
  }

  // The life of a worker.
  int Live(size_t worker) {
    Result<Pool> pool = Pool::Open(pipes_[worker]->Read(), QuickToReleaseSlots());
    if (!pool.ok()) return Complain(worker, pool.error().ToString());
    Result<Table> table = pool->OpenTable(kTable);
    if (!table.ok()) return Complain(worker, table.error().ToString());
    Result<Session> session = pool->NewSession();
    if (!session.ok()) return Complain(worker, session.error().ToString());
    const std::optional<std::string> failure =
        Work(history_, worker, *session, *table, kOperations, Random(1 + worker));
    if (failure.has_value()) return Complain(worker, *failure);
    return 0;
  }
  static int Complain(size_t worker, const std::string& what) {
    std::fprintf(stderr, "worker %zu: %s\n", worker, what.c_str());
    return 1;
  }

  // Until the worker has so many answers.
  void AwaitAnswers(size_t worker, uint64_t count) {
    while (history_.log(worker).answered.load() < count) std::this_thread::sleep_for(kLook);
  }

  // Reads everything once more, as one more client, and judges.
  void ExpectLinearizable() {
    Result<Pool> pool = Pool::Open(UrlOf(0), QuickToReleaseSlots());
    ASSERT_TRUE(pool.ok()) << pool.error().ToString();
    Result<Table> table = pool->OpenTable(kTable);
    ASSERT_TRUE(table.ok());
    Result<Session> session = pool->NewSession();
    ASSERT_TRUE(session.ok());
    const std::optional<std::string> failure =
        Work(history_, kWorkers, *session, *table, kOperations, Random(99));
    ASSERT_EQ(failure, std::nullopt);
    const std::vector<check::Operation> all = history_.Operations();
    const check::Verdict verdict = check::CheckLinearizable(all);
    EXPECT_TRUE(verdict.ok()) << check::ToString(verdict);
    EXPECT_GT(all.size(), kOperations);
    // A dead client is waited for, but not for longer than a lease; the next one takes over.
    static_cast<void>(session->Close());
    static_cast<void>(pool->Close());
    ExpectAllSlotsToBeReleased();
  }

  // Nothing is damaged, and nothing that the dead had is lost, once a client was there for a few leases.
  void ExpectAllSlotsToBeReleased() {
    constexpr int kLeases = 50;
    const std::string fsck = BinaryPath() + " fsck '" + UrlOf(0) + "' >/dev/null";
    bool clean = false;
    for (int lease = 0; lease < kLeases && !clean; ++lease) {
      Result<Pool> pool = Pool::Open(UrlOf(0), QuickToReleaseSlots());
      ASSERT_TRUE(pool.ok()) << pool.error().ToString();
      clean = pool->Close().ok() && std::system(fsck.c_str()) == 0;
    }
    EXPECT_TRUE(clean) << "something is leaked or damaged: " << fsck;
  }

  SharedHistory history_;
  std::vector<std::unique_ptr<UrlPipe>> pipes_;
  std::vector<Child> children_;
  std::unique_ptr<Daemon> daemon_;
};
INSTANTIATE_TEST_SUITE_P(Processes, SharedPool,
                         testing::Values(Ways{"shm", {"shm"}}, Ways{"tcp", {"tcp"}},
                                         Ways{"both", {"shm", "tcp"}}),
                         [](const auto& chosen) { return chosen.param.name; });

TEST_P(SharedPool, WritersInSeveralProcesses_AreLinearizable) {
  // When several processes change the same few keys. Expect that all end well, and that the history is
  // linearizable.
  for (Child& child : children_) EXPECT_EQ(child.Wait(), 0);
  for (size_t worker = 0; worker < kWorkers; ++worker)
    EXPECT_EQ(history_.log(worker).answered.load(), kOperations);
  ExpectLinearizable();
}

TEST_P(SharedPool, SurvivorsGoOn_WhenProcessesAreKilled) {
  // When two of four processes are killed in the middle of their work. Expect that the others end theirs, and
  // that nothing that was acknowledged is lost.
  AwaitAnswers(0, kOperations / 4);
  children_[0].Signal(SIGKILL);
  AwaitAnswers(1, kOperations / 2);
  children_[1].Signal(SIGKILL);
  children_[0].Wait();
  children_[1].Wait();
  EXPECT_EQ(children_[2].Wait(), 0);
  EXPECT_EQ(children_[3].Wait(), 0);
  for (size_t worker = 2; worker < kWorkers; ++worker)
    EXPECT_EQ(history_.log(worker).answered.load(), kOperations);
  ExpectLinearizable();
}

TEST_P(SharedPool, AProcessThatWasStoppedPastItsLease_JoinsAnew) {
  // When a process is stopped until the others have done their work and more than a lease is over, and then
  // goes on. Expect that the others did not wait for it, and that nothing it does afterwards belongs to the
  // past. (If it was stopped in the middle of a trip over shared memory, the node had to kill it.)
  AwaitAnswers(0, kOperations / 4);
  children_[0].Signal(SIGSTOP);
  for (size_t worker = 1; worker < kWorkers; ++worker) EXPECT_EQ(children_[worker].Wait(), 0);
  std::this_thread::sleep_for(QuickToReleaseSlots().lease * 2);  // what is tested is a lease that ends
  children_[0].Signal(SIGCONT);
  const int ended = children_[0].Wait();
  EXPECT_TRUE(ended == 0 || ended == -SIGKILL) << ended;
  ExpectLinearizable();
}

}  // namespace
}  // namespace farside::processes
