#include "fabric/shm/shm.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/socket.h"
#include "tests/fabric/shm/daemon.h"
#include "tests/support/heap_count.h"
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
// much). Expect that no slot, no guest and no descriptor is lost, and no memory but what it takes to remember
// that an id was used.
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

// Given a process that forks. Expect that its child may not use the client, and that the parent goes on.
TEST_F(ShmTest, InAChildOfFork_ClientsAreRefused) {
  const Daemon daemon(path_);
  const auto fabric = OpenAt(path_);
  auto client = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*client, Add(*client, 0, 1)).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = fabric::Run(*client, Add(*client, 0, 1)).error().code() == ErrorCode::kUnavailable;
    const bool still = fabric::Run(*client, ReadWord(*client, 0)).error().code() == ErrorCode::kUnavailable;
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
