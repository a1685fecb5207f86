// Processes that fork while they have a pool open: what the child may do, which is nothing but to open a pool
// of its own, and that the parent notices nothing of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "farside/farside.h"
#include "tests/processes/binary.h"
#include "tests/processes/forked.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tools/common/daemon.h"
#include "tools/fsck/fsck.h"

namespace farside::processes {
namespace {

using tools::Daemon;

constexpr int kRecords = 500;

std::string KeyOf(int record) { return "key-" + std::to_string(record); }
std::string ValueOf(int record) { return "value-" + std::to_string(record); }

// A pool of one of the backends, and what it takes to have one.
class World {
 public:
  explicit World(const std::string& backend) : backend_(backend) {
    const std::string size = "64MiB";
    if (backend == "embedded") url_ = "embedded:?size=" + size;
    if (backend == "file") url_ = "file:" + folder_.path() + "/pool?size=" + size;
    if (!url_.empty()) return;
    Result<Daemon> daemon = Daemon::Start(
        {"--quiet", "--size", size, "--listen", "tcp://127.0.0.1:0", "--shm", folder_.path() + "/node.sock"},
        BinaryPath());
    daemon_ = std::make_unique<Daemon>(std::move(daemon.value()));
    url_ = daemon_->Url(backend);
  }

  const std::string& url() const { return url_; }
  // Of a pool that a child can open while its parent has this one open.
  std::string other_url() const {
    return backend_ == "file" ? "file:" + folder_.path() + "/other?size=16MiB" : url_;
  }
  // Whether no other process can open the pool while this one has it open.
  bool is_exclusive() const { return backend_ == "file"; }
  // A pool that has ended with its process cannot be checked.
  bool can_be_checked() const { return backend_ != "embedded"; }
  std::string url_to_check() const { return url_.substr(0, url_.find("?size")); }

 private:
  const std::string backend_;
  const TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  std::string url_;
};

// What a program has when it forks.
struct Handles {
  explicit Handles(const std::string& url)
      : pool(Pool::Open(url).value()),
        table(pool.CreateTable("table").value()),
        ordered(pool.CreateTable("ordered", {.engine = "chime"}).value()),
        session(pool.NewSession().value()) {}
  Pool pool;
  Table table;
  Table ordered;
  Session session;
};

// ---- what a child does ---------------------------------------------------------------------------------

struct Child {
  World& world;
  std::unique_ptr<Handles> handles;
};

// Handles that end when a process returns from main.
std::optional<Pool> static_pool;
std::optional<Table> static_table;
std::unique_ptr<Handles> static_handles;

bool DoesNothing(Child& child) {
  static_handles = std::move(child.handles);
  return true;
}

bool EndsItsHandles(Child& child) {
  child.handles.reset();
  return true;
}

bool PoolIsRefused(Pool& pool) {
  return IsRefused("CreateTable", pool.CreateTable("new")) &&
         IsRefused("OpenTable", pool.OpenTable("table")) &&
         IsRefused("OpenOrCreateTable", pool.OpenOrCreateTable("table")) &&
         IsRefused("DropTable", pool.DropTable("table")) && IsRefused("ListTables", pool.ListTables()) &&
         IsRefused("NewSession", pool.NewSession());
}

bool OperationsAreRefused(Session& session, const Table& table) {
  std::string value;
  Cursor cursor;
  std::vector<Record> page;
  return IsRefused("Get", session.Get(table, KeyOf(0))) &&
         IsRefused("Get into a string", session.Get(table, KeyOf(0), value)) &&
         IsRefused("Put", session.Put(table, KeyOf(0), "of the child")) &&
         IsRefused("Insert", session.Insert(table, "new", "of the child")) &&
         IsRefused("Update", session.Update(table, KeyOf(0), "of the child")) &&
         IsRefused("Delete", session.Delete(table, KeyOf(0))) &&
         IsRefused("CompareAndSet", session.CompareAndSet(table, KeyOf(0), ValueOf(0), "of the child")) &&
         IsRefused("Increment", session.Increment(table, "counter")) &&
         IsRefused("Next", session.Next(table, cursor, page)) && IsRefused("Stats", session.Stats(table));
}

bool ScansAreRefused(Session& session, const Table& ordered) {
  RangeCursor cursor;
  RangeCursor at_end{.at_end = true};
  std::vector<Record> page;
  return IsRefused("Scan", session.Scan(ordered, KeyRange::All(), 10)) &&
         IsRefused("a long Scan", session.Scan(ordered, KeyRange::All(), 10'000, page)) &&
         IsRefused("Next of a range", session.Next(ordered, cursor, page)) &&
         IsRefused("Next at the end of a range", session.Next(ordered, at_end, page)) &&
         IsRefused("First", session.First(ordered)) && IsRefused("Last", session.Last(ordered));
}

bool BatchesAreRefused(Session& session, const Table& table) {
  const std::string first = KeyOf(0);
  const std::string second = KeyOf(1);
  std::vector<GetItem> gets = {{.key = first}, {.key = second}};
  std::vector<PutItem> puts = {{.key = first, .value = "of the child"},
                               {.key = second, .value = "of the child"}};
  std::vector<DeleteItem> deletes = {{.key = first}, {.key = second}};
  return IsRefused("MultiGet", session.MultiGet(table, gets)) &&
         IsRefused("MultiPut", session.MultiPut(table, puts)) &&
         IsRefused("MultiDelete", session.MultiDelete(table, deletes));
}

bool TasksAreRefused(Session& session, const Table& table, const Table& ordered) {
  const AsyncSession async = session.Async();
  const std::string key = KeyOf(0);
  const KeyRange all;
  Record record;
  Task<Done> started = async.Put(table, key, "of the child");
  started.Start();  // as an executor of the program's own would
  return IsRefused("Run(Put)", session.Run(async.Put(table, key, "of the child"))) &&
         IsRefused("Run(Last)", session.Run(async.Last(ordered, all, record))) && started.done() &&
         IsRefused("a task outside of Run", started.TakeResult());
}

bool UsesItsHandles(Child& child) {
  Handles& handles = *child.handles;
  static_cast<void>(handles.session.traffic());
  if (handles.table.name() != "table" || handles.table.ordered()) return false;
  const bool refused = PoolIsRefused(handles.pool) && OperationsAreRefused(handles.session, handles.table) &&
                       ScansAreRefused(handles.session, handles.ordered) &&
                       BatchesAreRefused(handles.session, handles.table) &&
                       TasksAreRefused(handles.session, handles.table, handles.ordered) &&
                       IsRefused("Session::Close", handles.session.Close()) &&
                       IsRefused("Pool::Close", handles.pool.Close());
  child.handles.reset();
  return refused;
}

bool UsesItsOwnPool(Child& child) {
  if (child.world.is_exclusive()) {
    const Result<Pool> same = Pool::Open(child.world.url());
    if (same.ok() || same.error().code() != ErrorCode::kUnavailable) return false;
  }
  {
    Result<Pool> pool = Pool::Open(child.world.other_url());
    if (!IsDone("Open", pool)) return false;
    Result<Table> table = pool->CreateTable("of child " + std::to_string(::getpid()));
    if (!IsDone("CreateTable", table)) return false;
    Result<Session> session = pool->NewSession();
    if (!IsDone("NewSession", session)) return false;
    for (int record = 0; record < kRecords; ++record) {
      if (!IsDone("Put", session->Put(*table, KeyOf(record), "of the child"))) return false;
    }
    const Result<std::optional<std::string>> got = session->Get(*table, KeyOf(7));
    if (!IsDone("Get", got) || *got != "of the child") return false;
    // What it has inherited is still of no use.
    if (!PoolIsRefused(child.handles->pool)) return false;
    if (!OperationsAreRefused(child.handles->session, child.handles->table)) return false;
    if (!IsDone("Session::Close", session->Close())) return false;
    if (!IsDone("DropTable", pool->DropTable(table->name()))) return false;
    if (!IsDone("Pool::Close", pool->Close())) return false;
  }
  child.handles.reset();
  return true;
}

struct Scenario {
  std::string name;
  Ending ending;
  bool (*body)(Child&);
  int times = 12;  // while other threads work
};
std::ostream& operator<<(std::ostream& out, const Scenario& scenario) { return out << scenario.name; }

const std::array kScenarios = {
    Scenario{"LeavesAtOnce", Ending::kAtOnce, DoesNothing},
    Scenario{"ReturnsWithItsHandles", Ending::kReturn, DoesNothing},
    Scenario{"EndsItsHandles", Ending::kReturn, EndsItsHandles},
    Scenario{"UsesItsHandles", Ending::kReturn, UsesItsHandles},
    Scenario{"UsesItsOwnPool", Ending::kReturn, UsesItsOwnPool, 2},
};

// ---- the parent ----------------------------------------------------------------------------------------

void PutAll(Handles& handles) {
  for (int record = 0; record < kRecords; ++record) {
    const Status put = handles.session.Put(handles.table, KeyOf(record), ValueOf(record));
    ASSERT_TRUE(put.ok()) << put.error().ToString();
  }
}

void ExpectAll(Handles& handles) {
  for (int record = 0; record < kRecords; ++record) {
    const Result<std::optional<std::string>> got = handles.session.Get(handles.table, KeyOf(record));
    ASSERT_TRUE(got.ok()) << got.error().ToString();
    ASSERT_EQ(*got, ValueOf(record));
  }
}

class AForkedChild : public testing::TestWithParam<std::tuple<std::string, Scenario>> {
 protected:
  void SetUp() override {
    handles_ = std::make_unique<Handles>(world_.url());
    PutAll(*handles_);
    static_pool = handles_->pool;
    static_table = handles_->table;
  }
  void TearDown() override {
    static_pool.reset();
    static_table.reset();
  }

  // The child's exit code.
  int ForkChild() {
    const Scenario& scenario = std::get<1>(GetParam());
    return AwaitEndOf(Fork(scenario.ending, [&] {
      Child child{world_, std::move(handles_)};
      return scenario.body(child);
    }));
  }

  // The parent has what it had, can go on, and leaves a pool in good order.
  void ExpectAnUnharmedParent() {
    ExpectAll(*handles_);
    PutAll(*handles_);
    ExpectAll(*handles_);
    TearDown();
    const Status left = handles_->session.Close();
    EXPECT_TRUE(left.ok()) << left.error().ToString();
    const Status closed = handles_->pool.Close();
    EXPECT_TRUE(closed.ok()) << closed.error().ToString();
    handles_.reset();
    if (!world_.can_be_checked()) return;
    const Result<tools::PoolReport> report = tools::CheckPool(world_.url_to_check());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_TRUE(report->ok());
    EXPECT_EQ(report->notes(), 0u) << "no client was lost";
  }

  World world_{std::get<0>(GetParam())};
  std::unique_ptr<Handles> handles_;
};
INSTANTIATE_TEST_SUITE_P(Processes, AForkedChild,
                         testing::Combine(testing::Values("embedded", "file", "shm", "tcp"),
                                          testing::ValuesIn(kScenarios)),
                         [](const auto& chosen) {
                           return std::get<0>(chosen.param) + "_" + std::get<1>(chosen.param).name;
                         });

TEST_P(AForkedChild, OfAQuietProcess_HarmsNothing) {
  // Given a pool with records. When the process forks, and the child does what the scenario says.
  // Expect that the child is told what it may not do, and ends; and that the parent is unharmed.
  EXPECT_EQ(ForkChild(), 0);
  ExpectAnUnharmedParent();
}

TEST_P(AForkedChild, OfAProcessWhoseThreadsAreInsideOfCalls_HarmsNothing) {
  if (kSanitized)
    GTEST_SKIP() << "in a child, the allocator of a sanitizer may wait for a thread that is gone";
  // Given a thread that writes, and one that makes and drops tables, which makes all idle sessions sync.
  std::atomic<bool> stop{false};
  std::atomic<int> steps{0};
  std::thread writer([&] {
    Session session = handles_->pool.NewSession().value();
    const Table table = static_table.value();
    for (int step = 0; !stop.load(); ++step, ++steps) {
      const int record = step % kRecords;
      const Status put = session.Put(table, KeyOf(record), ValueOf(record));
      EXPECT_TRUE(put.ok()) << put.error().ToString();
    }
  });
  std::thread maker([&, pool = handles_->pool]() mutable {
    while (!stop.load()) {
      EXPECT_TRUE(pool.CreateTable("short-lived").ok());
      EXPECT_TRUE(pool.DropTable("short-lived").ok());
      ++steps;
    }
  });
  // When a third thread forks again and again, at moments that the test does not choose.
  // Expect the same.
  std::thread([&] {
    for (int i = 0; i < std::get<1>(GetParam()).times && !HasFailure(); ++i) {
      const int before = steps.load();
      EXPECT_EQ(ForkChild(), 0) << "fork " << i;
      while (steps.load() == before && !HasFailure()) std::this_thread::yield();
    }
  }).join();
  stop = true;
  writer.join();
  maker.join();
  ExpectAnUnharmedParent();
}

// ---- forks inside of a task ----------------------------------------------------------------------------

class AForkInATask : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Processes, AForkInATask, testing::Values("embedded", "file", "shm", "tcp"),
                         [](const auto& chosen) { return chosen.param; });

Task<Done> Write(AsyncSession session, const Table& table, int first) {
  for (int record = first; record < kRecords; record += 10) {
    const std::string key = KeyOf(record);
    const std::string value = ValueOf(record);
    co_await session.Put(table, key, value);
  }
  co_return Done{};
}

// The process has one more from here on. The fork comes long before the end of tasks that write.
Task<Done> WriteAndFork(AsyncSession session, const Table& table, pid_t& pid) {
  const std::string key = KeyOf(0);
  const std::string value = ValueOf(0);
  co_await session.Put(table, key, value);
  pid = ::fork();
  if (pid == 0) ::alarm(kPatience);
  co_await Write(session, table, 0);
  co_return Done{};
}

TEST_P(AForkInATask, EndsTheTasksOfTheChild_AndNoneOfTheParent) {
  // Given ten tasks of a session that run together.
  World world(GetParam());
  auto handles = std::make_unique<Handles>(world.url());
  PutAll(*handles);
  const AsyncSession async = handles->session.Async();
  pid_t pid = -1;
  std::vector<Task<Done>> tasks;
  for (int first = 1; first < 10; ++first) tasks.push_back(Write(async, handles->table, first));
  tasks.push_back(WriteAndFork(async, handles->table, pid));
  std::fflush(nullptr);
  // When one of them forks in the middle.
  const Status ran = handles->session.RunAll(std::span(tasks));
  if (pid == 0) {
    // Expect that the child is told, and can destroy everything.
    bool refused = IsRefused("RunAll", ran) && IsRefused("Get", handles->session.Get(handles->table, "a"));
    if (tasks.back().done()) refused = refused && IsRefused("the task", tasks.back().TakeResult());
    tasks.clear();
    handles.reset();
    std::exit(refused ? 0 : 1);
  }
  // Expect that the parent's tasks go on.
  ASSERT_TRUE(ran.ok()) << ran.error().ToString();
  for (Task<Done>& task : tasks) EXPECT_TRUE(task.TakeResult().ok());
  EXPECT_EQ(AwaitEndOf(pid), 0);
  ExpectAll(*handles);
  tasks.clear();
  EXPECT_TRUE(handles->session.Close().ok());
  EXPECT_TRUE(handles->pool.Close().ok());
  handles.reset();
  if (!world.can_be_checked()) return;
  const Result<tools::PoolReport> report = tools::CheckPool(world.url_to_check());
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_TRUE(report->ok());
}

// ---- children that live longer than their parent -------------------------------------------------------

class AChildThatOutlivesItsParent : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Processes, AChildThatOutlivesItsParent, testing::Values("file", "shm", "tcp"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(AChildThatOutlivesItsParent, KeepsNothingOfItsPool) {
  // Given a process that takes all client slots of a pool, and a child of it that waits until a pipe ends.
  const TemporaryFolder folder;
  std::unique_ptr<Daemon> daemon;
  std::string url = "file:" + folder.path() + "/pool";
  if (GetParam() != "file") {
    daemon =
        std::make_unique<Daemon>(Daemon::Start({"--quiet", "--size", "16MiB", "--clients", "2", "--listen",
                                                "tcp://127.0.0.1:0", "--shm", folder.path() + "/node.sock"},
                                               BinaryPath())
                                     .value());
    url = daemon->Url(GetParam());
  }
  std::array<int, 2> pipe{};
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t parent = Fork(Ending::kAtOnce, [&] {
    ::close(pipe[1]);
    Pool pool = Pool::Open(url + (daemon ? "" : "?size=16MiB"), {.client_slots = 2}).value();
    const Session session = pool.NewSession().value();
    char byte = 0;
    if (::fork() == 0) {
      static_cast<void>(::write(ready[1], "c", 1));
      static_cast<void>(::read(pipe[0], &byte, 1));
      ::_exit(0);
    }
    while (::read(pipe[0], &byte, 1) < 0) continue;
    return true;
  });
  ::close(ready[1]);  // so that the read ends if the process does
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  // When the process is killed, and the child is not.
  ::kill(parent, SIGKILL);
  EXPECT_EQ(AwaitEndOf(parent), -SIGKILL);
  // Expect that the pool can be opened without waiting for a lease, which here is longer than a test may
  // take. (To leave it again may take a lease.)
  EXPECT_EQ(AwaitEndOf(Fork(Ending::kAtOnce,
                            [&url]() -> bool {
                              const Result<Pool> pool = Pool::Open(url, {.lease = std::chrono::minutes(10)});
                              ::_exit(IsDone("Open", pool) ? 0 : 1);
                            })),
            0);
  for (const int end : {pipe[0], pipe[1], ready[0]}) ::close(end);
}

}  // namespace
}  // namespace farside::processes
