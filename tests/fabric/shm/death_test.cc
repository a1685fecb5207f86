// Clients and daemons of the shm fabric that are killed or stopped in the middle of things, as processes.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/shm/daemon.h"
#include "tests/support/stepped_process.h"

namespace farside::fabric::shm {
namespace {

using Line = std::array<uint64_t, 8>;
constexpr uint64_t kLine = 256;  // the offset of the line that every client wants
constexpr size_t kStripe = kLine / kLineBytes;

Task<Done> WriteLine(Client& client, uint64_t number) {
  Op op(client, OpKind::kUpdate);
  Line line;
  line.fill(number);
  co_await op.InOrder(WriteObject(At(kLine), line));
  co_return Done{};
}
Task<Line> ReadLine(Client& client) {
  Op op(client, OpKind::kSearch);
  const Line line = co_await op.InOrder(Read<Line>(At(kLine)));
  co_return line;
}
Line Filled(uint64_t number) {
  Line line;
  line.fill(number);
  return line;
}

// What a victim tells the test.
struct Told {
  std::atomic<uint32_t> id;
  std::atomic<int> second_trip;  // 1 + its error code; 0: it has not ended
};
Told& NewTold() {
  return *static_cast<Told*>(
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

// A process that connects, stops, and then writes the line twice, with 1 and with 2.
class Victim {
 public:
  explicit Victim(const std::string& path)
      : told_(NewTold()), process_([this, path] {
          const auto fabric = OpenAt(path);
          const auto client = std::move(*fabric->Connect());
          told_.id = Number(client->id());
          ::raise(SIGSTOP);
          static_cast<void>(fabric::Run(*client, WriteLine(*client, 1)));
          const Result<Done> second = fabric::Run(*client, WriteLine(*client, 2));
          told_.second_trip = second.ok() ? -1 : 1 + static_cast<int>(second.error().code());
        }) {
    EXPECT_TRUE(process_.RunUntilItStops());
  }
  ~Victim() { ::munmap(&told_, sizeof(Told)); }

  ClientId id() const { return static_cast<ClientId>(told_.id.load()); }
  int second_trip() const { return told_.second_trip; }
  SteppedProcess& process() { return process_; }

  // To the first instruction at which it is so. The memory of a process that is stopped does not change.
  void StepUntil(const std::function<bool()>& condition) {
    while (!condition() && process_.Step()) continue;
    ASSERT_TRUE(process_.running());
  }

 private:
  Told& told_;
  SteppedProcess process_;
};

class ShmDeath : public testing::Test {
 protected:
  void SetUp() override {
    if (!SteppedProcess::Possible()) GTEST_SKIP() << "processes cannot be stepped here";
  }
  static uint64_t Word(const SharedMemory& memory, size_t word) {
    auto& at = *reinterpret_cast<uint64_t*>(memory.region().data() + kLine + word * 8);
    return std::atomic_ref<uint64_t>(at).load();
  }
  static bool Held(const SharedMemory& memory) {
    return !memory::IsFree(memory.stripes().sequences[kStripe].load());
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/node";
};

// Given a client that is killed when it has staged a line, taken it, stored a part of it, or all of it.
// Expect that others find the line as it was or as it should be, and that its slot is free.
TEST_F(ShmDeath, KilledInTheMiddleOfALine_ItIsWholeForOthers) {
  const std::array<std::function<bool(const Daemon&)>, 4> points = {
      [](const Daemon& daemon) { return daemon.slot(0).staging.bytes[7].load() == 1; },
      [](const Daemon& daemon) { return Held(*daemon.memory); },
      [](const Daemon& daemon) { return Word(*daemon.memory, 3) == 1; },
      [](const Daemon& daemon) { return Word(*daemon.memory, 7) == 1; },
  };
  for (size_t point = 0; point < points.size(); ++point) {
    SCOPED_TRACE(point);
    const Daemon daemon(path_);
    Victim victim(path_);
    const auto fabric = OpenAt(path_);
    const auto other = std::move(*fabric->Connect());
    victim.StepUntil([&] { return points[point](daemon); });
    EXPECT_EQ(Held(*daemon.memory), point != 0);
    victim.process().Kill();

    const Line found = fabric::Run(*other, ReadLine(*other)).value();
    EXPECT_EQ(found, Filled(point == 0 ? 0 : 1));
    Await([&] { return daemon.server->clients() == 1 && daemon.node->clients() == 1; });
    EXPECT_TRUE(daemon.log.Contains("died in the middle of a trip"));
    EXPECT_TRUE(fabric::Run(*other, WriteLine(*other, 9)).ok());
    const auto successor = std::move(*fabric->Connect());
    EXPECT_EQ(fabric::Run(*successor, ReadLine(*successor)).value(), Filled(9));
  }
}

// Given a line of a client that was killed, and a handler of a Call that loads it. Expect that the handler
// waits for the daemon to complete the line, which it does meanwhile.
TEST_F(ShmDeath, AHandlerThatNeedsTheLine_DoesNotStopItsRecovery) {
  const Daemon daemon(path_);
  daemon.node->calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
    return Result<std::string>(std::to_string(memory.Load(kLine)));
  });
  Victim victim(path_);
  const auto fabric = OpenAt(path_);
  const auto caller = std::move(*fabric->Connect());
  victim.StepUntil([&] { return Held(*daemon.memory); });
  std::atomic<bool> calls = false;
  std::jthread thread([&] {
    calls = true;
    EXPECT_EQ(fabric::Run(*caller, CallIt(*caller, CallId(1, 1), "")).value(), "1");
  });
  Await([&] { return calls.load(); });
  victim.process().Kill();
}

// Given a client whose process was stopped inside a trip, and a daemon that waits. When it is fenced. Expect
// that the fence does not complete, that the log names the process, and that the fence completes when the
// process goes on, which then is told that it was fenced.
TEST_F(ShmDeath, StoppedInsideATrip_TheFenceWaitsUntilItGoesOn) {
  Daemon daemon(path_, {.fence = FencePolicy::kWait});
  Victim victim(path_);
  const auto fabric = OpenAt(path_);
  const auto fencer = std::move(*fabric->Connect());
  victim.StepUntil([&] { return Word(*daemon.memory, 3) == 1; });

  std::atomic<bool> fenced = false;
  std::jthread thread([&] {
    EXPECT_TRUE(fabric::Run(*fencer, FenceOut(*fencer, victim.id())).ok());
    fenced = true;
  });
  Await([&] {
    daemon.clock.Advance(std::chrono::milliseconds(150));
    return daemon.log.Contains("(pid " + std::to_string(victim.process().pid()) + ") was fenced");
  });
  EXPECT_FALSE(fenced);
  EXPECT_FALSE(victim.process().RunUntilItStops());
  thread.join();
  EXPECT_EQ(victim.second_trip(), 1 + static_cast<int>(ErrorCode::kFenced));
  EXPECT_EQ(fabric::Run(*fencer, ReadLine(*fencer)).value(), Filled(1));
}

// The same with a daemon that kills. Expect that the process is dead, its line whole, and the fence complete.
TEST_F(ShmDeath, StoppedInsideATrip_TheFenceKillsIt) {
  Daemon daemon(path_, {.fence = FencePolicy::kKill});
  Victim victim(path_);
  const auto fabric = OpenAt(path_);
  const auto fencer = std::move(*fabric->Connect());
  victim.StepUntil([&] { return Word(*daemon.memory, 3) == 1; });

  std::atomic<bool> fenced = false;
  std::jthread thread([&] {
    EXPECT_TRUE(fabric::Run(*fencer, FenceOut(*fencer, victim.id())).ok());
    fenced = true;
  });
  Await([&] {
    daemon.clock.Advance(std::chrono::milliseconds(150));
    return daemon.log.Contains("killed");
  });
  victim.process().AwaitEnd();
  thread.join();
  EXPECT_TRUE(fenced);
  EXPECT_EQ(victim.second_trip(), 0);
  EXPECT_EQ(fabric::Run(*fencer, ReadLine(*fencer)).value(), Filled(1));
}

// A daemon in a process of its own, which is killed. The test has its memory too, to look at it.
class DaemonProcess {
 public:
  explicit DaemonProcess(const std::string& path)
      : memory_(
            std::move(*SharedMemory::Create(std::move(*memory::Region::Shareable(4096)), NewRegionId()))) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      memory::ServedNode node(memory_->region(), memory_->stripes(), memory_->region_id());
      const auto server = Server::Start(node, *memory_, {.node = path});
      static_cast<void>(::write(ready[1], "", 1));
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    for (const int end : ready) ::close(end);
  }
  void Kill() const {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }

  const SharedMemory& memory() const { return *memory_; }

 private:
  const std::unique_ptr<SharedMemory> memory_;
  pid_t pid_ = -1;
};

// Given a daemon that was killed. Expect that the first trip that a client begins then fails, whatever it
// does, and that it has changed nothing.
TEST_F(ShmDeath, OfTheDaemon_IsNoticedBeforeTheNextTrip) {
  const DaemonProcess daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto reader = std::move(*fabric->Connect());
  const auto writer = std::move(*fabric->Connect());
  const auto caller = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*writer, Add(*writer, 0, 1)).ok());
  daemon.Kill();
  EXPECT_EQ(fabric::Run(*reader, ReadWord(*reader, 0)).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric::Run(*writer, Add(*writer, 0, 1)).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric::Run(*caller, CallIt(*caller, CallId(1, 1), "")).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(std::to_integer<int>(daemon.memory().region().front()), 1);
}

// Given a daemon that was killed, by a kernel that cuts no lifelines. Expect that clients notice, by trips or
// when they only poll, and are broken from then on, and that a new daemon takes the slot of its socket.
TEST_F(ShmDeath, OfTheDaemon_IsNoticedWithoutALifeline) {
  const DaemonProcess daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto busy = std::move(*fabric->Connect());
  const auto idle = std::move(*fabric->Connect());
  const auto caller = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*busy, Add(*busy, 0, 1)).ok());
  daemon.Kill();
  daemon.memory().control().header.lifeline = 0;

  int trips = 0;
  while (fabric::Run(*busy, ReadWord(*busy, 0)).ok()) ASSERT_LT(++trips, 5000);
  EXPECT_EQ(fabric::Run(*busy, Add(*busy, 0, 1)).error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(fabric::Run(*busy, ReadWord(*busy, 0)).error().message().find(path_), std::string::npos);
  for (int poll = 0; poll < 100; ++poll) EXPECT_FALSE(idle->Poll());
  EXPECT_EQ(fabric::Run(*idle, Add(*idle, 0, 1)).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric::Run(*caller, CallIt(*caller, CallId(1, 1), "")).error().code(),
            ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(fabric::Run(*caller, FenceOut(*caller, busy->id())).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric->Connect().error().code(), ErrorCode::kUnavailable);
  const Daemon next(path_);
  EXPECT_TRUE(ShmFabric::Open({.nodes = {path_}}).ok());
}

// Given a line whose writer was killed, and no daemon that could complete it. Expect that a client that waits
// for it is told, and does not wait for ever. (The lifeline is mended, so that clients begin to wait.)
TEST_F(ShmDeath, OfTheWriterAndTheDaemon_WaitersGiveUp) {
  const DaemonProcess daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto reader = std::move(*fabric->Connect());
  const auto writer = std::move(*fabric->Connect());
  Victim victim(path_);
  victim.StepUntil([&] { return Word(daemon.memory(), 3) == 1; });
  daemon.Kill();
  victim.process().Kill();
  daemon.memory().control().header.lifeline = 0;
  ASSERT_TRUE(Held(daemon.memory()));
  EXPECT_EQ(fabric::Run(*reader, ReadLine(*reader)).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric::Run(*writer, WriteLine(*writer, 5)).error().code(), ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(fabric::Run(*writer, WriteLine(*writer, 5)).error().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace farside::fabric::shm
