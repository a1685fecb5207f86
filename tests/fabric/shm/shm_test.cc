#include "fabric/shm/shm.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/limited_log.h"
#include "base/random.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/socket.h"
#include "tests/fabric/shm/daemon.h"
#include "tests/support/heap_count.h"
#include "tests/support/landlock.h"
#include "tests/support/sanitized.h"

namespace farside::fabric::shm {
namespace {

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class ShmTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/node";
};

// ---- opening

// Given no daemon, a name that cannot be one, a socket that no daemon serves, or no nodes at all. Expect
// errors that say what to do.
TEST_F(ShmTest, OpeningWhatIsNotThere_SaysSo) {
  EXPECT_EQ(ShmFabric::Open({}).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ShmFabric::Open({.nodes = {path_}}).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(ShmFabric::Open({.nodes = {"no-such-node-of-ours"}}).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(ShmFabric::Open({.nodes = {"what is this"}}).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ShmFabric::Open({.nodes = {std::string(200, '/')}}).error().code(), ErrorCode::kInvalidArgument);
}

// Given two daemons. Expect that a fabric has the regions of both in its order, and refuses one that is named
// twice.
TEST_F(ShmTest, OpensSeveralNodes) {
  const Daemon one(path_);
  const Daemon two(path_ + "2");
  const auto fabric = std::move(*ShmFabric::Open({.nodes = {path_ + "2", path_}}));
  EXPECT_EQ(fabric->region_bytes().size(), 2u);
  EXPECT_EQ(fabric->region_ids()[0], two.memory->region_id());
  EXPECT_EQ(fabric->region_ids()[1], one.memory->region_id());
  EXPECT_TRUE(fabric->Connect().ok());
  EXPECT_EQ(ShmFabric::Open({.nodes = {path_, path_}}).error().code(), ErrorCode::kInvalidArgument);
}

// Given a daemon that was stopped, and another with other memory, or with the same, in its slot. Expect that
// a fabric that was opened before connects only to the same memory.
TEST_F(ShmTest, ConnectingToOtherMemory_IsRefused) {
  const memory::RegionId id = NewRegionId();
  auto daemon = std::make_unique<Daemon>(path_, ServerOptions{}, id);
  const auto fabric = OpenAt(path_);
  const auto old = std::move(*fabric->Connect());
  daemon.reset();
  daemon = std::make_unique<Daemon>(path_, ServerOptions{}, NewRegionId());
  const auto refused = fabric->Connect();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message().find("open the pool again"), std::string::npos);
  daemon.reset();
  daemon = std::make_unique<Daemon>(path_, ServerOptions{}, id);
  const auto client = std::move(*fabric->Connect());
  EXPECT_TRUE(fabric::Run(*client, Add(*client, 0, 1)).ok());
  EXPECT_EQ(daemon->node->memory().Load(0), 1u);
  EXPECT_EQ(fabric::Run(*old, ReadWord(*old, 0)).error().code(), ErrorCode::kUnavailable);
}

// Given fabrics whose clients draw the same ids. Expect that each client gets one of its own all the same.
TEST_F(ShmTest, IdsThatAreTaken_AreNotUsedAgain) {
  const Daemon daemon(path_);
  const auto first = std::move(*ShmFabric::Open({.nodes = {path_}, .seed = 5}));
  const auto second = std::move(*ShmFabric::Open({.nodes = {path_}, .seed = 5}));
  const auto one = std::move(*first->Connect());
  const auto two = std::move(*second->Connect());
  EXPECT_NE(one->id(), two->id());
}

// ---- the socket

// Given a path that is served, one with a socket that a dead daemon left, and one with a file. Expect that
// only the second is taken, and that a daemon cleans up after itself.
TEST_F(ShmTest, SocketsAreNotStolen_AndStaleOnesAreReplaced) {
  auto daemon = std::make_unique<Daemon>(path_);
  const auto again = Server::Start(*daemon->node, *daemon->memory, {.node = path_});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), ErrorCode::kAlreadyExists);
  EXPECT_TRUE(ShmFabric::Open({.nodes = {path_}}).ok());
  daemon.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".lock"));

  {
    const Descriptor stale(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ASSERT_EQ(::bind(stale.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_EQ(ShmFabric::Open({.nodes = {path_}}).error().code(), ErrorCode::kUnavailable);
  daemon = std::make_unique<Daemon>(path_);
  EXPECT_TRUE(ShmFabric::Open({.nodes = {path_}}).ok());

  const std::string file = path_ + ".file";
  Descriptor(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const auto refused = Server::Start(*daemon->node, *daemon->memory, {.node = file});
  EXPECT_EQ(refused.error().code(), ErrorCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(file));
}

// Runs `body` in a child of another user, and returns its exit code.
int AsNobody(gid_t group, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setgroups(0, nullptr) != 0 || ::setgid(group) != 0 || ::setuid(kNobody) != 0) ::_exit(99);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Given a socket for its owner, and one for a group. Expect the modes, that another user is refused by the
// kernel, and by the daemon even if the socket was opened to all, and that a member of the group gets in.
TEST_F(ShmTest, PermissionsAreKept) {
  constexpr gid_t kGroup = 54321;
  struct stat status {};
  {
    const Daemon daemon(path_);
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ::chmod(folder_.path().c_str(), 0755);
  const Daemon daemon(path_, {.group = kGroup});
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660u);
  EXPECT_EQ(status.st_gid, kGroup);
  const auto denied = [this] {
    const auto fabric = ShmFabric::Open({.nodes = {path_}});
    return !fabric.ok() && fabric.error().code() == ErrorCode::kPermissionDenied ? 0 : 1;
  };
  EXPECT_EQ(AsNobody(kGroup + 1, denied), 0);
  ::chmod(path_.c_str(), 0666);
  EXPECT_EQ(AsNobody(kGroup + 1, denied), 0);
  EXPECT_EQ(AsNobody(kGroup, [this] { return ShmFabric::Open({.nodes = {path_}}).ok() ? 0 : 1; }), 0);
}

// ---- what comes over the socket

// Given a client of another version. Expect a refusal that says so.
TEST_F(ShmTest, AnotherVersion_IsRefused) {
  const Daemon daemon(path_);
  const Descriptor socket = std::move(*ConnectTo(path_));
  const Hello hello{.magic = kMagic, .version = kVersion + 1, .client = 1};
  ASSERT_TRUE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes));
  std::array<std::byte, sizeof(Welcome) + kMaxText> buffer;
  const Received received = Receive(socket.get(), buffer, Wait::kYes);
  ASSERT_EQ(received.kind, Received::Kind::kMessage);
  Welcome welcome;
  std::memcpy(&welcome, buffer.data(), sizeof welcome);
  EXPECT_EQ(welcome.status, ToWire(ErrorCode::kVersionMismatch));
  EXPECT_GT(welcome.text_bytes, 0u);
  EXPECT_TRUE(received.descriptors.empty());
}

// Given connections that send bytes of any kind, as strangers and as clients, and many that say nothing.
// Expect that the daemon goes on serving others, and that what was given to them comes back.
TEST_F(ShmTest, NonsenseOnTheSocket_HarmsNoOtherClient) {
  const Daemon daemon(path_, {.max_clients = 2});
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  Random random(1);
  const uint64_t rounds = 400 / kFewer;
  for (uint64_t round = 0; round < rounds; ++round) {
    const Descriptor socket = std::move(*ConnectTo(path_));
    if (round % 2 == 0) {
      const Hello hello{.magic = kMagic, .version = kVersion, .client = static_cast<uint32_t>(round + 1)};
      ASSERT_TRUE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes));
    }
    for (int message = 0; message < 3; ++message) {
      std::vector<std::byte> bytes(1 + random.LogUniform(kMaxMessage + 100));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Chance(1, 2) ? 0 : random.Next());
      if (bytes.size() >= sizeof(Request) && random.Chance(1, 2)) {
        const Request request{.kind = static_cast<RequestKind>(random.Below(4)),
                              .payload_bytes = static_cast<uint32_t>(bytes.size() - sizeof(Request)),
                              .engine = 0,
                              .operation = 0,
                              .victim = static_cast<uint32_t>(random.Next())};
        std::memcpy(bytes.data(), &request, sizeof request);
      }
      static_cast<void>(Send(socket.get(), bytes, {}, Wait::kNo));
    }
    Await([&] { return round % 2 != 0 || daemon.server->clients() <= 2; });
  }
  std::vector<Descriptor> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(std::move(*ConnectTo(path_)));
  EXPECT_TRUE(fabric::Run(*client, Add(*client, 0, 1)).ok());
  // The last of the others may still be on their way in and out.
  Await([&] { return fabric->Connect().ok(); });
}

// Given a daemon with slots for two clients. Expect that a third is refused politely, and served when one has
// left.
TEST_F(ShmTest, WhenAllSlotsAreTaken_ClientsAreRefused) {
  const Daemon daemon(path_, {.max_clients = 2});
  const auto fabric = OpenAt(path_);
  auto one = std::move(*fabric->Connect());
  const auto two = std::move(*fabric->Connect());
  const auto refused = fabric->Connect();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  one.reset();
  Await([&] { return daemon.server->clients() == 1; });
  EXPECT_TRUE(fabric->Connect().ok());
}

// Given ten thousand clients that come and go (fewer under a sanitizer, where each costs several times as
// much). Expect that no slot, no client and no descriptor is lost, and no memory but what it takes to
// remember that an id was used.
TEST_F(ShmTest, TenThousandClientsThatComeAndGo_LeaveNothingBehind) {
  constexpr uint64_t kFirst = 500 / kFewer;
  constexpr uint64_t kClients = 10'000 / kFewer;
  constexpr uint64_t kRememberedBytes = 128;
  const Daemon daemon(path_, {.max_clients = 8}, NewRegionId(), LogLevel::kError);
  const auto fabric = OpenAt(path_);
  const auto stays = std::move(*fabric->Connect());
  const auto one_is_there = [&] { return daemon.server->clients() == 1 && daemon.node->clients() == 1; };
  size_t descriptors = 0;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < kClients; ++i) {
    if (i == kFirst) {
      Await(one_is_there);
      descriptors = OpenDescriptors();
      bytes = HeapBytes();
    }
    const auto client = fabric->Connect();
    ASSERT_TRUE(client.ok()) << client.error().ToString();
    ASSERT_TRUE(fabric::Run(**client, Add(**client, 0, 1)).ok());
    Await([&] { return daemon.server->clients() <= 4; });
  }
  Await(one_is_there);
  Await([&] { return OpenDescriptors() <= descriptors; });
  EXPECT_EQ(fabric::Run(*stays, ReadWord(*stays, 0)).value(), kClients);
  EXPECT_LE(HeapBytes(), bytes + kClients * kRememberedBytes);
}

// Given threads that connect and hang up without end. Expect that clients come in meanwhile, and that the
// daemon stops when it is told to.
TEST_F(ShmTest, ConnectionsWithoutEnd_DoNotKeepClientsOut) {
  auto daemon = std::make_unique<Daemon>(path_, ServerOptions{}, NewRegionId(), LogLevel::kError);
  std::atomic<bool> stop = false;
  std::vector<std::jthread> flood;
  for (int i = 0; i < 3; ++i) {
    flood.emplace_back([&] {
      while (!stop) static_cast<void>(ConnectTo(path_));
    });
  }
  for (int i = 0; i < 10; ++i) {
    const auto fabric = ShmFabric::Open(Options{.nodes = {path_}});
    EXPECT_TRUE(fabric.ok() && (*fabric)->Connect().ok());
  }
  daemon.reset();
  stop = true;
}

// Given a client that stays in the middle of a trip. When others come, fence it, and leave before that is
// done. Expect that nothing of them stays.
TEST_F(ShmTest, ClientsThatDoNotWaitForTheirFence_LeaveNothingBehind) {
  constexpr uint32_t kClients = 20;
  const Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto victim = std::move(*fabric->Connect());
  daemon.slot(0).gate.Enter();
  const size_t descriptors = OpenDescriptors();
  for (uint32_t id = 1; id <= kClients; ++id) {
    const Descriptor socket = std::move(*ConnectTo(path_));
    const Hello hello{.magic = kMagic, .version = kVersion, .client = id};
    ASSERT_TRUE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes));
    const Request fence{.kind = RequestKind::kFence,
                        .payload_bytes = 0,
                        .engine = 0,
                        .operation = 0,
                        .victim = Number(victim->id())};
    // Its welcome: from now on the node counts it. A socket that is closed with something unread is reset,
    // and then the other side loses what it has not read either: the fence.
    ASSERT_TRUE(AwaitMessage(socket.get(), 60'000));
    std::array<std::byte, kMaxMessage> welcome;
    ASSERT_EQ(Receive(socket.get(), welcome, Wait::kNo).kind, Received::Kind::kMessage);
    ASSERT_TRUE(Send(socket.get(), BytesOf(fence), {}, Wait::kYes));
  }
  Await([&] { return daemon.server->clients() == 1 && OpenDescriptors() <= descriptors; });
  EXPECT_EQ(daemon.node->fences(), 1u);
  daemon.slot(0).gate.Leave();
}

// Given a region with something in it. When it is put into huge pages, as far as the kernel does that. Expect
// that clients find what was there.
TEST_F(ShmTest, HugePagesHoldWhatWasThere) {
  const Daemon daemon(path_, std::move(*memory::Region::Shareable(uint64_t{8} << 20)), {}, NewRegionId());
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*client, Add(*client, 4096, 5)).ok());
  static_cast<void>(daemon.memory->UseHugePages());
  EXPECT_EQ(fabric::Run(*client, Add(*client, 4096, 5)).value(), 5u);
  EXPECT_EQ(daemon.node->memory().Load(4096), 10u);
}

// Given a region of several pieces. When it is put into huge pages, and told to stop at the second piece.
// Expect that it has been asked before each piece, and ends there.
TEST_F(ShmTest, HugePages_AreMadePieceByPiece_AndStopWhenTold) {
  Result<memory::Region> region = memory::Region::Shareable(uint64_t{256} << 20);
  ASSERT_TRUE(region.ok());
  const auto memory = std::move(*SharedMemory::Create(std::move(*region), NewRegionId()));
  EXPECT_FALSE(memory->UseHugePages([](uint64_t) { return false; }));
  std::vector<uint64_t> asked;
  static_cast<void>(memory->UseHugePages([&asked](uint64_t done) {
    asked.push_back(done);
    return asked.size() < 2;
  }));
  // A kernel that cannot make them says so at the first piece.
  EXPECT_THAT(asked, testing::AnyOf(testing::ElementsAre(0), testing::ElementsAre(0, uint64_t{64} << 20)));
}

// Given lines that are held in the names of clients that are not there, or cannot be: a process has written
// that to the control memory. When some time has passed. Expect that clients and the node use these lines
// again, and that the log says so.
TEST_F(ShmTest, LinesThatNoClientHolds_AreFreed) {
  Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  auto& sequences = daemon.memory->stripes().sequences;
  sequences[1] = HolderOf(3000);
  sequences[2] = HolderOf(kClientSlots);
  sequences[3] = memory::kTheNode - 1;
  daemon.clock.Advance(std::chrono::seconds(1));
  for (const uint64_t line : {1, 2}) {
    EXPECT_EQ(fabric::Run(*client, Add(*client, line * kLineBytes, line)).value(), 0u);
  }
  EXPECT_EQ(daemon.node->memory().Load(3 * kLineBytes), 0u);
  // The daemon tells it after it has freed them.
  while (!daemon.log.Contains("3 lines were held by no client")) std::this_thread::yield();
}

// The same with all lines, in the name of the node. Expect that they are used again, and none of them taken
// away from the node.
TEST_F(ShmTest, LinesThatAreHeldInTheNodesName_AreFreed) {
  Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  auto& sequences = daemon.memory->stripes().sequences;
  for (memory::Sequence& sequence : sequences) sequence = memory::kTheNode;
  daemon.clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(fabric::Run(*client, Add(*client, kLineBytes, 1)).value(), 0u);
  EXPECT_EQ(daemon.node->memory().Load(kLineBytes), 1u);
  while (!daemon.log.Contains("4096 lines were held by no client")) std::this_thread::yield();
}

// Given a line that is held in the name of a slot without a client. When a client gets that slot. Expect that
// the line is free at once.
TEST_F(ShmTest, ANewClientHoldsNothing) {
  const Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  daemon.memory->stripes().sequences[1] = HolderOf(0);
  const auto client = std::move(*fabric->Connect());
  EXPECT_FALSE(daemon.node->memory().Holds(HolderOf(0)));
  EXPECT_EQ(fabric::Run(*client, ReadWord(*client, kLineBytes)).value(), 0u);
}

// Given a line whose holder lives and does not go on, and a handler of a Call that loads it. Expect that the
// Call ends when the node has waited long enough, with an outcome that is unknown.
TEST_F(ShmTest, AHandlerDoesNotWaitForEver) {
  Daemon daemon(path_);
  daemon.node->calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
    return Result<std::string>(std::to_string(memory.Load(kLineBytes)));
  });
  const auto fabric = OpenAt(path_);
  const auto holder = std::move(*fabric->Connect());
  const auto caller = std::move(*fabric->Connect());
  daemon.memory->stripes().sequences[1] = HolderOf(0);
  std::atomic<bool> ended = false;
  std::jthread thread([&] {
    EXPECT_EQ(fabric::Run(*caller, CallIt(*caller, CallId(1, 1), "")).error().code(),
              ErrorCode::kOutcomeUnknown);
    ended = true;
  });
  Await([&] {
    daemon.clock.Advance(std::chrono::milliseconds(100));
    return ended.load();
  });
  EXPECT_TRUE(fabric::Run(*caller, CallIt(*caller, CallId(1, 2), "")).error().code() !=
              ErrorCode::kOutcomeUnknown);
}

// ---- trips

Task<Done> SomeTrips(Client& client) {
  Op op(client, OpKind::kUpdate);
  const std::array<uint64_t, 20> payload{};
  for (int i = 0; i < 100; ++i) {
    co_await op.InOrder(WriteObject(At(0), payload), Faa(At(512), 1));
    co_await op.InOrder(Read<std::array<uint64_t, 20>>(At(0)), Read<uint64_t>(At(512)));
  }
  co_return Done{};
}

// Given a client that has run some trips. Expect that more of them allocate nothing on the heap.
TEST_F(ShmTest, TripsAllocateNothing) {
  const Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*client, SomeTrips(*client)).ok());
  const uint64_t before = HeapAllocations();
  const bool ran = fabric::Run(*client, SomeTrips(*client)).ok();
  const uint64_t after = HeapAllocations();
  EXPECT_TRUE(ran);
  EXPECT_EQ(after, before);
  if (!kHeapIsCounted) GTEST_SKIP() << "the sanitizer owns operator new: allocations are not counted";
}

// ---- Calls

// Given handlers that answer, refuse and answer too much. Expect their replies and errors, and a client that
// goes on.
TEST_F(ShmTest, CallsOfAllSizes_AreAnswered) {
  const Daemon daemon(path_);
  daemon.node->calls().Set(CallId(1, 1), [](NodeMemory&, ClientId, std::string_view request) {
    return Result<std::string>(std::string(request));
  });
  daemon.node->calls().Set(CallId(1, 2), [](NodeMemory&, ClientId, std::string_view) {
    return Result<std::string>(std::string(kMaxPayload + 1, 'x'));
  });
  daemon.node->calls().Set(CallId(1, 4), [](NodeMemory&, ClientId, std::string_view) {
    return Result<std::string>(Error(ErrorCode::kCorrupt, "\x1b[2J\n" + std::string(kMaxPayload, 'z')));
  });
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  const std::string most(kMaxPayload, 'y');
  EXPECT_EQ(fabric::Run(*client, CallIt(*client, CallId(1, 1), most)).value(), most);
  EXPECT_EQ(fabric::Run(*client, CallIt(*client, CallId(1, 1), most + "y")).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(fabric::Run(*client, CallIt(*client, CallId(1, 2), "")).error().code(),
            ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(fabric::Run(*client, CallIt(*client, CallId(1, 3), "")).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(fabric::Run(*client, CallIt(*client, CallId(1, 1), "")).value(), "");
  // What a daemon says is escaped, and bounded.
  const Error said = fabric::Run(*client, CallIt(*client, CallId(1, 4), "")).error();
  EXPECT_EQ(said.code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(said.message().starts_with("\\x1b[2J\\x0azzz")) << said.message();
  EXPECT_LT(said.message().size(), 2 * kMaxText);
}

// ---- the end of a daemon

// Given a region that is a file, and a client of a daemon that has stopped. Expect that the client is told at
// its next trip, and that no other process can have the file until the client has let go of it.
TEST_F(ShmTest, AFileStaysLocked_WhileAClientMapsIt) {
  const std::string file = folder_.path() + "/pool";
  memory::Region region = std::move(
      *memory::Region::CreateFile(file, Daemon::kRegionBytes, [](memory::Region&) { return OkStatus(); }));
  auto daemon = std::make_unique<Daemon>(path_, std::move(region), ServerOptions{}, NewRegionId());
  const auto fabric = OpenAt(path_);
  const auto client = std::move(*fabric->Connect());
  EXPECT_TRUE(fabric::Run(*client, Add(*client, 8, 7)).ok());
  daemon.reset();
  const auto locked = memory::Region::OpenFile(file, memory::Region::Access::kShared);
  ASSERT_FALSE(locked.ok());
  EXPECT_EQ(locked.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric::Run(*client, Add(*client, 8, 7)).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fabric::Run(*client, ReadWord(*client, 8)).error().code(), ErrorCode::kUnavailable);
  const auto free = memory::Region::OpenFile(file, memory::Region::Access::kShared);
  ASSERT_TRUE(free.ok()) << free.error().ToString();
  EXPECT_EQ(free->bytes()[8], std::byte{7});
}

// Given a peer that sends the daemon a descriptor, which no client does. Expect that the kernel refuses,
// where it can: to close what a stranger has opened may take as long as the stranger likes.
TEST_F(ShmTest, TheDaemonTakesNoDescriptors) {
  const Daemon daemon(path_);
  const Descriptor socket = std::move(*ConnectTo(path_));
  constexpr int kPassRights = 83;  // SO_PASSRIGHTS of Linux 6.16
  int passes = 0;
  socklen_t bytes = sizeof passes;
  if (::getsockopt(socket.get(), SOL_SOCKET, kPassRights, &passes, &bytes) != 0)
    GTEST_SKIP() << "this kernel cannot refuse";
  const Hello hello{.magic = kMagic, .version = kVersion, .client = 0};
  const std::array<int, 1> descriptors = {socket.get()};
  EXPECT_FALSE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes, descriptors));
  EXPECT_EQ(errno, EPERM);
  // When it says the same without. Expect that it is welcome.
  EXPECT_TRUE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes));
  EXPECT_TRUE(AwaitMessage(socket.get(), 60'000));
}

// Given a client that comes, sends what is no request, is cut off, and comes again, a thousand times. Expect
// few lines in the log, and one that counts the others, when it is time for it and when the daemon stops.
TEST_F(ShmTest, ClientsThatAreCutOff_AreNotALineEach_AndTheRestIsCounted) {
  constexpr size_t kMany = 1000;
  constexpr auto kBurst = static_cast<size_t>(LimitedLog::kBurst);
  Daemon daemon(path_);
  uint32_t id = 0;
  const auto come_often = [&] {
    for (size_t i = 0; i < kMany; ++i) {
      const Descriptor socket = std::move(*ConnectTo(path_));
      const Hello hello{.magic = kMagic, .version = kVersion, .client = ++id};
      ASSERT_TRUE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes));
      ASSERT_TRUE(AwaitMessage(socket.get(), 60'000));
      ASSERT_TRUE(Send(socket.get(), AsBytes("rubbish"), {}, Wait::kYes));
      std::array<std::byte, kMaxMessage> buffer;
      while (Receive(socket.get(), buffer, Wait::kYes).kind == Received::Kind::kMessage) continue;
    }
  };
  come_often();
  EXPECT_EQ(daemon.log.Count("sent a message that is too short: cut off"), kBurst);
  EXPECT_EQ(daemon.log.Count("lines like these were left out"), 0u);
  daemon.clock.Advance(LimitedLog::kReportEvery);
  Await([&] { return daemon.log.Contains("shm: of clients: 900 lines like these were left out"); });
  come_often();
  daemon.server.reset();
  EXPECT_EQ(daemon.log.Count("sent a message that is too short: cut off"), 2 * kBurst);
  EXPECT_EQ(daemon.log.Count("900 lines like these were left out"), 2u);
}

// Given a region that is a file, and what a client gets of it over the socket. When the client truncates it.
// Expect that it cannot, where the kernel has a way to forbid it, and that the daemon still has its memory.
TEST_F(ShmTest, AClientCannotCutTheFileShort) {
  if (!KernelForbidsTruncation()) GTEST_SKIP() << "this kernel cannot forbid it";
  const std::string file = folder_.path() + "/pool";
  const auto nothing = [](memory::Region&) { return OkStatus(); };
  memory::Region region = std::move(
      *memory::Region::CreateFile(file, Daemon::kRegionBytes, nothing, memory::Region::Access::kServed));
  const Daemon daemon(path_, std::move(region), ServerOptions{}, NewRegionId());
  const Descriptor socket = std::move(*ConnectTo(path_));
  const Hello hello{.magic = kMagic, .version = kVersion, .client = 0};
  ASSERT_TRUE(Send(socket.get(), BytesOf(hello), {}, Wait::kYes));
  std::array<std::byte, sizeof(Welcome) + kMaxText> buffer;
  const Received received = Receive(socket.get(), buffer, Wait::kYes);
  ASSERT_EQ(received.descriptors.size(), 2u);
  for (const Descriptor& descriptor : received.descriptors) {
    EXPECT_EQ(::ftruncate(descriptor.get(), 0), -1);
  }
  EXPECT_EQ(std::filesystem::file_size(file), Daemon::kRegionBytes);
  EXPECT_EQ(daemon.node->memory().Load(Daemon::kRegionBytes - 8), 0u);
}

// Given a process that forks. Expect that its child may not use the client, and that the parent goes on.
TEST_F(ShmTest, InAChildOfFork_ClientsAreRefused) {
  const Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  auto client = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*client, Add(*client, 0, 1)).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr ErrorCode kDead = ErrorCode::kInvalidArgument;
    const bool refused = fabric::Run(*client, Add(*client, 0, 1)).error().code() == kDead;
    const bool still = fabric::Run(*client, ReadWord(*client, 0)).error().code() == kDead;
    client.reset();
    ::_exit(refused && still && !fabric->Connect().ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(fabric::Run(*client, Add(*client, 0, 1)).value(), 1u);
  EXPECT_EQ(daemon.server->clients(), 1u);
}

}  // namespace
}  // namespace farside::fabric::shm
