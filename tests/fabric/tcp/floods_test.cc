// A server that is flooded: by strangers, by clients that take no answers, and by halves of frames. Others go
// on, and what all of them can make the node hold is bounded.
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/limited_log.h"
#include "fabric/tcp/connection.h"
#include "fabric/tcp/server.h"
#include "tests/fabric/tcp/lone_connection.h"
#include "tests/fabric/tcp/world.h"
#include "tests/support/heap_count.h"

namespace {
std::atomic<bool> watches_run_out{false};
}  // namespace

// epoll_ctl of this program (CMakeLists.txt): the system's, unless a test says that there is no room for
// another socket.
extern "C" int __real_epoll_ctl(int epoll, int operation, int fd, epoll_event* event);
extern "C" int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  if (operation != EPOLL_CTL_ADD || !watches_run_out) return __real_epoll_ctl(epoll, operation, fd, event);
  errno = ENOSPC;
  return -1;
}

namespace farside::fabric::tcp {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kRegion = 4096;
constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;

// With so much memory for large requests and answers.
ServerOptions WithBuffers(size_t bytes) {
  ServerOptions options = OneThread();
  options.max_buffered = bytes;
  return options;
}

wire::Hello HelloOfTheFuture() {
  wire::Hello hello = HelloAs(5);
  hello.version = 99;
  return hello;
}

Bytes ReadFrame(uint64_t bytes) {
  return FrameOf({Read(At(0), {static_cast<std::byte*>(nullptr), bytes}).Lower()});
}

Task<Done> ReadInto(Client& client, std::span<std::byte> into, uint64_t offset = 0) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read(At(offset), into));
  co_return Done{};
}

Task<Done> WriteFrom(Client& client, std::span<const std::byte> from) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Write(At(4 * kMiB), from));
  co_return Done{};
}

// ---- strangers that send

TEST(TcpFloods, StrangerThatIsRefusedAndGoesOnSending_IsHungUpOn) {
  // Given a peer that was refused.
  TestNode node;
  Bystander bystander(node);
  RawPeer peer(node.port());
  EXPECT_NE(peer.Greet(HelloOfTheFuture()).welcome.status, 0);
  // When it sends without end. Expect that the node does not read all of it; sockets hold some of it.
  const Bytes some(kMiB);
  size_t sent = 0;
  while (sent < 64 * kMiB) {
    const ssize_t moved = send(peer.fd(), some.data(), some.size(), MSG_NOSIGNAL);
    if (moved <= 0) break;
    sent += static_cast<size_t>(moved);
  }
  EXPECT_LT(sent, 64 * kMiB);
  bystander.ExpectServed();
}

TEST(TcpFloods, ATurnReadsLittleOfAPeerThatIsLeaving) {
  // Given a peer that was refused, and has sent as much as there is room for.
  PlainConnection connection;
  connection.Send(BytesOf(HelloOfTheFuture()));
  connection.Advance();
  ASSERT_EQ(connection->state(), Connection::State::kLeaving);
  connection.Fill();
  const int before = connection.Unread();
  ASSERT_GT(before, 128 * 1024);
  // When it has its turn. Expect that others need not wait until all of that is read.
  connection.Advance();
  ASSERT_EQ(connection->state(), Connection::State::kLeaving);
  EXPECT_GE(connection.Unread(), before - 64 * 1024);
}

TEST(TcpFloods, ConnectionsThatCannotBeServed_AreNotALineEach) {
  // Given a node whose threads can watch no other socket.
  constexpr size_t kMany = 1000;
  TestNode node;
  watches_run_out = true;
  // When many peers connect, one after the other.
  for (size_t i = 0; i < kMany; ++i) {
    RawPeer peer(node.port());
    ASSERT_TRUE(peer.NodeHungUp());
  }
  watches_run_out = false;
  // Expect that the log has some lines about it, and not one for each.
  const size_t lines = node.log().Count("a connection cannot be served");
  EXPECT_GE(lines, size_t{LimitedLog::kBurst});
  EXPECT_LT(lines, kMany);
  // Expect that others are served when there is room.
  Bystander bystander(node);
  bystander.ExpectServed();
}

// ---- strangers that wait

TEST(TcpFloods, IdleStrangersMakeRoom_OldestFirst) {
  // Given a node for two clients, and one client.
  ServerOptions options = OneThread();
  options.max_connections = 2;
  options.max_strangers = 8;
  TestNode node(kRegion, options);
  Bystander first(node);
  // When 300 peers connect and say nothing.
  std::vector<std::unique_ptr<RawPeer>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<RawPeer>(node.port()));
  // Expect that another client comes in, that the first is served, and that the oldest strangers went.
  Bystander second(node, 4080);
  second.ExpectServed();
  first.ExpectServed();
  EXPECT_TRUE(idle.front()->NodeHungUp());
  while (node.server().connections() > 2 + 8) std::this_thread::yield();
  // Expect that a stranger which is still there can come in, or at least be told why not.
  EXPECT_EQ(idle.back()->Greet(HelloAs(7)).welcome.status, wire::StatusOf(ErrorCode::kUnavailable));
}

TEST(TcpFloods, OneAddressCannotHaveTheRoomOfAllClients) {
  // Given a node with room for two clients of an address, and two clients.
  ServerOptions options = OneThread();
  options.max_clients_of_address = 2;
  TestNode node(kRegion, options);
  auto first = std::make_unique<Bystander>(node);
  Bystander second(node, 4080);
  // When a third client comes from there. Expect that it is told why not.
  const auto third = TcpFabric::Open(node.ClientOptions());
  ASSERT_TRUE(third.ok()) << "it looks first";
  const auto refused = (*third)->Connect();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("one address"), std::string::npos) << refused.error().message();
  // When a client comes from elsewhere. Expect that it is welcome.
  RawPeer elsewhere(node.port(), "127.0.0.2");
  EXPECT_EQ(elsewhere.Greet(HelloAs(9)).welcome.status, 0);
  // When the first client has gone. Expect that there is room.
  first.reset();
  node.log().Await("left: it disconnected");
  EXPECT_TRUE((*third)->Connect().ok());
}

TEST(TcpFloods, RefusalsAreNotALineEach_AndTheRestIsCounted) {
  constexpr size_t kMany = 1000;
  // Given a node that logs as it does by default.
  TestNode node(kRegion, OneThread(), {1, 2}, LogLevel::kInfo);
  // When it refuses many peers.
  for (size_t i = 0; i < kMany; ++i) {
    RawPeer peer(node.port());
    peer.Send(std::string(8, 'x'));
    EXPECT_TRUE(peer.NodeHungUp());
  }
  node.server().Stop();
  // Expect few lines, and one that counts the others.
  EXPECT_LT(node.log().Count("was refused"), kMany / 2);
  EXPECT_GE(node.log().Count("lines like these were left out"), 1u);
}

// ---- clients that stall

TEST(TcpFloods, ClientThatTakesNoAnswersIsClosed) {
  // Given a node that is not patient, and a client that asks for much and reads nothing.
  ServerOptions options = OneThread();
  options.stall_timeout = 1ms;
  TestNode node(16 * kMiB, options);
  Bystander bystander(node);
  RawPeer peer(node.port());
  ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
  peer.Send(ReadFrame(16 * kMiB));
  // Expect that it is closed with a line, and that its memory is there again.
  node.log().Await("client 5 at");
  node.log().Await("it takes no answers");
  while (node.server().buffered() != 0) std::this_thread::yield();
  bystander.ExpectServed();
}

// A patience of ten seconds, and 64 MiB for large requests.
ServerOptions TenSeconds() {
  ServerOptions options = WithBuffers(64 * kMiB);
  options.stall_timeout = 10s;
  return options;
}

TEST(TcpFloods, ClientIsLateWhenItMakesNoProgress) {
  // Given a client that is served.
  ServedConnection connection(TenSeconds());
  // When it is idle. Expect that nothing is wrong with that.
  EXPECT_FALSE(connection->HasDeadline());
  EXPECT_FALSE(connection->IsLate(0s));
  EXPECT_FALSE(connection->IsLate(1000s));
  // When it has sent a part of a request. Expect that it has ten seconds from the first look on, and again
  // after each part.
  const Bytes frame = ReadFrame(8);
  connection.Send({frame.begin(), frame.begin() + 8});
  connection.Advance();
  EXPECT_TRUE(connection->HasDeadline());
  EXPECT_FALSE(connection->IsLate(2000s));
  EXPECT_FALSE(connection->IsLate(2009s));
  connection.Send({frame.begin() + 8, frame.begin() + 9});
  connection.Advance();
  EXPECT_FALSE(connection->IsLate(2015s));
  EXPECT_FALSE(connection->IsLate(2024s));
  EXPECT_TRUE(connection->IsLate(2025s));
  // When the memory for large requests is more than half in use by others. Expect that it has as long as
  // before, since it holds none of it.
  BufferShare others(connection.state().buffer_budget);
  others.Update({40 * kMiB});
  EXPECT_FALSE(connection->IsLate(2024s));
  others.Update({});
  // When the request is complete. Expect that it can take its time with the next.
  connection.Send({frame.begin() + 9, frame.end()});
  connection.Advance();
  EXPECT_FALSE(connection->HasDeadline());
  EXPECT_FALSE(connection->IsLate(9000s));
}

TEST(TcpFloods, ClientThatHoldsMuchHasToMoveMuch) {
  // Given a client that holds memory for a frame of which a part has come.
  ServedConnection connection(TenSeconds());
  const Bytes frame = FrameOf({Write(At(0), Bytes(512 * kKiB)).Lower()});
  connection.Send({frame.begin(), frame.begin() + 150 * kKiB});
  while (connection.Unread() != 0) connection.Advance();
  ASSERT_GE(connection.state().buffer_budget.in_use(), 150 * kKiB);
  EXPECT_FALSE(connection->IsLate(100s));
  // When a byte comes now and then. Expect that this is no progress; a large part is.
  connection.Send({std::byte{0}});
  connection.Advance();
  EXPECT_TRUE(connection->IsLate(110s));
  connection.Send(Bytes(64 * kKiB));
  connection.Advance();
  EXPECT_FALSE(connection->IsLate(110s));
  EXPECT_FALSE(connection->IsLate(119s));
  // When others need memory. Expect that it has a tenth of the time.
  BufferShare others(connection.state().buffer_budget);
  others.Update({40 * kMiB});
  EXPECT_FALSE(connection->IsLate(110s + 900ms));
  EXPECT_TRUE(connection->IsLate(111s));
  others.Update({});
}

TEST(TcpFloods, ClientThatSendsHalfARequestIsClosed) {
  // Given a node that is not patient, and a client that sends the half of a frame.
  ServerOptions options = OneThread();
  options.stall_timeout = 1ms;
  TestNode node(kRegion, options);
  Bystander bystander(node);
  RawPeer peer(node.port());
  ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
  const Bytes frame = ReadFrame(8);
  peer.Send(std::span(frame).first(frame.size() / 2));
  // Expect that it is closed with a line; one that is idle is not.
  EXPECT_TRUE(peer.NodeHungUp());
  EXPECT_EQ(node.log().Count("has sent half a request"), 1u);
  bystander.ExpectServed();
}

TEST(TcpFloods, ClientsThatTakeNoAnswersLeaveMemoryForOthers) {
  // Given 65 MiB for large answers, and clients that ask for more than that together and read nothing.
  ServerOptions options = WithBuffers(65 * kMiB);
  options.stall_timeout = 1h;
  TestNode node(8 * kMiB, options);
  Bystander bystander(node);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (uint32_t id = 1; id <= 15; ++id) {
    peers.push_back(std::make_unique<RawPeer>(node.port()));
    ASSERT_EQ(peers.back()->Greet(HelloAs(id)).welcome.status, 0);
    peers.back()->Send(ReadFrame(8 * kMiB));
    EXPECT_EQ(peers.back()->Receive(1).size(), 1u) << "so it was executed, or refused";
  }
  EXPECT_GT(node.server().buffered(), 32 * kMiB);
  // When another client asks for a large answer. Expect that it gets it.
  Bytes into(2 * kMiB, std::byte{1});
  const Result<Done> read = fabric::Run(bystander.client(), ReadInto(bystander.client(), into));
  EXPECT_TRUE(read.ok()) << read.error().ToString();
}

TEST(TcpFloods, HalvesOfFramesAreCounted) {
  // Given 8 MiB for large requests, and clients that send nearly a mebibyte of a larger frame.
  constexpr size_t kPeers = 64;
  constexpr size_t kUncounted = 256 * kKiB;  // of each client
  ServerOptions options = WithBuffers(8 * kMiB);
  TestNode node(4 * kMiB, options);
  Bystander bystander(node);
  const Bytes payload(2 * kMiB);
  const Bytes frame = FrameOf({Write(At(0), payload).Lower()});
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (uint32_t id = 1; id <= kPeers; ++id) {
    peers.push_back(std::make_unique<RawPeer>(node.port()));
    ASSERT_EQ(peers.back()->Greet(HelloAs(id)).welcome.status, 0);
  }
  const uint64_t before = HeapBytes();
  for (const auto& peer : peers) peer->Send(std::span(frame).first(1000 * kKiB));
  // Expect that these clients never hold more than the bound, and that small requests are served.
  for (int i = 0; i < 200; ++i) {
    bystander.ExpectServed();
    EXPECT_LE(node.server().buffered(), options.max_buffered);
    EXPECT_LE(HeapBytes(), before + options.max_buffered + kPeers * kUncounted);
  }
}

TEST(TcpFloods, SmallRequestsAreServedWithoutLargeBuffers) {
  // Given a node that has no memory for large answers at all, and a client with many small requests.
  constexpr size_t kMany = 400;
  ServerOptions options = WithBuffers(0);
  TestNode node(kRegion, options);
  RawPeer peer(node.port());
  ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
  Bytes stream;
  for (size_t i = 0; i < kMany; ++i) Append(stream, ReadFrame(4096));
  peer.Send(stream);
  // Expect an answer to each.
  for (size_t i = 0; i < kMany; ++i) {
    const Bytes reply = peer.Receive(sizeof(wire::ReplyHeader) + 4096);
    ASSERT_EQ(reply.size(), sizeof(wire::ReplyHeader) + 4096);
    ASSERT_EQ(wire::Load<wire::ReplyHeader>(reply.data()).kind, wire::ReplyKind::kAnswers);
  }
}

TEST(TcpFloods, SmallAnswersThatGrowAreServedWithoutLargeBuffers) {
  // Given a node that has no memory for large answers at all, and a client that has had a small one.
  ServerOptions options = WithBuffers(0);
  TestNode node(kMiB, options);
  RawPeer peer(node.port());
  ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
  // When the next are a little larger each. Expect an answer to each, up to what is small.
  for (const size_t bytes : {70 * kKiB, 80 * kKiB, 100 * kKiB, 120 * kKiB}) {
    peer.Send(ReadFrame(bytes));
    const Bytes reply = peer.Receive(sizeof(wire::ReplyHeader) + bytes);
    ASSERT_EQ(reply.size(), sizeof(wire::ReplyHeader) + bytes);
    ASSERT_EQ(wire::Load<wire::ReplyHeader>(reply.data()).kind, wire::ReplyKind::kAnswers) << bytes;
  }
}

TEST(TcpFloods, RefusalsThatAreNotReadAreCounted) {
  // Given a node that has no memory for large replies, and a client that may only read.
  ServerOptions options = WithBuffers(0);
  options.plain_access = wire::Access::kReadOnly;
  ServedConnection connection(options);
  connection.NarrowTheWayBack();
  // When it sends writes, and does not read that it may not.
  Bytes writes;
  for (int i = 0; i < 1000; ++i) Append(writes, FrameOf({Faa(At(0), 1).Lower()}));
  for (int i = 0; i < 10; ++i) {
    connection.Send(writes);
    connection.AdvanceToRest();
  }
  // Expect that the node stops to serve it before it needs a large buffer.
  EXPECT_GT(connection.Unread(), 0);
  EXPECT_EQ(connection.state().buffer_budget.in_use(), 0u);
}

TEST(TcpFloods, AnswersThatWaitForAFenceAreCountedAsTheyWillBeSent) {
  // Given a client that asks for a large answer and a fence.
  ServedConnection connection(WithBuffers(16 * kMiB));
  connection.NarrowTheWayBack();
  Bytes into(kMiB);
  connection.Send(FrameOf({Read(At(0), into).Lower(), FenceVerb(NodeId{0}, ClientId{77}).Lower()}));
  connection.Advance();
  // When it waits for the fence. Expect that all that it will take is counted, so that others do not take it.
  ASSERT_EQ(connection->state(), Connection::State::kParked);
  const size_t promised = connection.state().buffer_budget.in_use();
  EXPECT_GE(promised, 2 * kMiB);
  // When the fence is done. Expect that it takes no more.
  connection->OnFenceDone();
  connection.Advance();
  EXPECT_GE(connection.state().buffer_budget.in_use(), kMiB);
  EXPECT_LE(connection.state().buffer_budget.in_use(), promised);
}

// A client that stays in the middle of a trip.
class NeverStill final : public memory::ServedClient {
 public:
  void CutOff() override {}
  bool IsStill() override { return false; }
};

TEST(TcpFloods, ClientsThatDoNotWaitForTheirFenceLeaveLittleBehind) {
  // Given a client that cannot be fenced for now.
  constexpr uint32_t kPeers = 200;
  constexpr uint64_t kRemembered = 512;  // of each: the fence, and that its id was used
  TestNode node(kRegion, OneThread(), {1, 2}, LogLevel::kError);
  ASSERT_TRUE(node.node().Admit(ClientId{7777}, std::make_shared<NeverStill>()).ok());
  uint64_t before = 0;
  // When others fence it, and leave before that is done.
  for (uint32_t id = 1; id <= 2 * kPeers; ++id) {
    if (id == kPeers) before = HeapBytes();
    RawPeer peer(node.port());
    ASSERT_EQ(peer.Greet(HelloAs(id)).welcome.status, 0);
    peer.Send(FrameOf({FenceVerb(NodeId{0}, ClientId{7777}).Lower()}));
    peer.Hangup();
    while (node.server().connections() != 0) std::this_thread::yield();
  }
  // Expect that nothing of their connections stays.
  EXPECT_LE(HeapBytes(), before + kPeers * kRemembered);
  node.node().Depart(ClientId{7777});
}

TEST(TcpFloods, ToSendAClientAwayTakesNoMemory) {
  // Given a client with a large answer that it does not read.
  ServedConnection connection(WithBuffers(16 * kMiB));
  connection.NarrowTheWayBack();
  connection.Send(ReadFrame(kMiB));
  connection.Advance();
  const size_t before = connection.state().buffer_budget.in_use();
  ASSERT_GE(before, kMiB);
  // When it is fenced. Expect that what it is told has room.
  connection->OnCutOff();
  ASSERT_EQ(connection->state(), Connection::State::kLeaving);
  EXPECT_EQ(connection.state().buffer_budget.in_use(), before);
}

TEST(TcpFloods, ATurnExecutesABoundedNumberOfVerbs) {
  // Given a client that has sent many requests at once.
  constexpr size_t kVerbs = 64;
  constexpr size_t kFrames = 256;
  size_t executed = 0;
  ServerOptions options = OneThread();
  options.loses_answer = [&executed](std::span<const Verb> verbs) {
    executed += verbs.size();
    return false;
  };
  ServedConnection connection(options);
  uint64_t word = 0;
  const Verb read = Read(At(0), std::as_writable_bytes(std::span(&word, 1))).Lower();
  const Bytes frame = FrameOf(std::vector<Verb>(kVerbs, read));
  Bytes stream;
  for (size_t i = 0; i < kFrames; ++i) Append(stream, frame);
  connection.Send(stream);
  // When it has its turn. Expect that others have theirs before all of that is done, and that it says so.
  EXPECT_TRUE(connection.Advance());
  EXPECT_LE(executed, 128 + kVerbs);
  // Expect that all is done in the end.
  while (connection.Advance()) continue;
  EXPECT_EQ(executed, kVerbs * kFrames);
}

TEST(TcpFloods, ATurnTakesInLittleOfALargeRequest) {
  // Given a client that has sent a part of a large request.
  ServedConnection connection(OneThread());
  const Bytes frame = FrameOf({Write(At(0), Bytes(512 * kKiB)).Lower()});
  const size_t part = 200 * kKiB;
  connection.Send({frame.begin(), frame.begin() + part});
  // When it has its turn. Expect that others have theirs before all of that is taken in, and that it says so.
  EXPECT_TRUE(connection.Advance());
  EXPECT_GE(static_cast<size_t>(connection.Unread()), part - 64 * kKiB);
  EXPECT_TRUE(connection->IsReceivingLarge());
  // When the rest has come. Expect that it is a client with small requests again.
  connection.AdvanceToRest();
  connection.Send({frame.begin() + part, frame.end()});
  connection.AdvanceToRest();
  EXPECT_FALSE(connection->IsReceivingLarge());
}

TEST(TcpFloods, LargeRequestsEndWhileSmallOnesComeClosely) {
  // Given a node with one thread, and a client that asks for little without a pause.
  TestNode node(8 * kMiB, OneThread());
  Bystander large(node);
  std::atomic<bool> ended = false;
  std::thread small([&node, &ended] {
    Bystander bystander(node, 4080);
    while (!ended) bystander.ExpectServed();
  });
  // When another client writes much. Expect that all of it arrives.
  Bytes from(4 * kMiB);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 / 64);
  Bytes into(from.size());
  for (int i = 0; i < 4; ++i) {
    const Result<Done> wrote = fabric::Run(large.client(), WriteFrom(large.client(), from));
    EXPECT_TRUE(wrote.ok()) << wrote.error().ToString();
  }
  const Result<Done> read = fabric::Run(large.client(), ReadInto(large.client(), into, 4 * kMiB));
  ended = true;
  small.join();
  EXPECT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_TRUE(from == into);
}

TEST(TcpFloods, ClientThatWaitsForItsTurnIsNotLate) {
  // Given a client that has sent half a request, which the node has not gone on with.
  ServedConnection connection(TenSeconds());
  const Bytes frame = ReadFrame(8);
  connection.Send({frame.begin(), frame.begin() + 8});
  connection.Advance();
  EXPECT_FALSE(connection->IsLate(100s));
  connection->has_turn_ahead = true;
  // When it has waited for a long time. Expect that the node does not blame the client; from its turn on, it
  // does.
  EXPECT_FALSE(connection->IsLate(200s));
  connection->has_turn_ahead = false;
  EXPECT_FALSE(connection->IsLate(300s));
  EXPECT_TRUE(connection->IsLate(310s));
}

// A client that has always sent more than its node can execute, and another one that asks once. All is sent
// from inside of the node's thread, between two frames of the first: so it does not matter how busy the
// machine is.
class FullSocket {
 public:
  static constexpr size_t kVerbs = 64;  // in a frame

  // With one frame. Each that is executed is followed by two, as long as there is room.
  void Begin(int full, int other) {
    const std::scoped_lock lock(mutex_);
    full_ = full;
    other_ = other;
    EXPECT_TRUE(SendMore());
  }
  // When the node has stopped: the verbs of the first that were executed while the other waited.
  size_t waited() const { return waited_; }

  bool OnFrame(std::span<const Verb> verbs) {
    const std::scoped_lock lock(mutex_);
    if (verbs[0].kind == VerbKind::kFaa) {
      waited_ = executed_ - asked_at_;
      ended_ = true;
      return false;
    }
    executed_ += verbs.size();
    while (recv(full_, taken_.data(), taken_.size(), MSG_DONTWAIT) > 0) continue;
    for (int i = 0; i < 2 && !ended_; ++i) SendMore();
    if (asked_at_ == 0 && executed_ >= kAskAfter) {
      asked_at_ = executed_;
      Ask();
    }
    return false;
  }

 private:
  static constexpr size_t kAskAfter = size_t{1} << 18;  // verbs

  // When it returns, the node could read it.
  void Ask() const {
    const Bytes ask = FrameOf({Faa(At(0), 1).Lower()});
    EXPECT_EQ(send(other_, ask.data(), ask.size(), MSG_NOSIGNAL), static_cast<ssize_t>(ask.size()));
    for (int underway = 1; underway > 0;) ASSERT_EQ(ioctl(other_, TIOCOUTQ, &underway), 0);
  }
  // False: the sockets take no more.
  bool SendMore() {
    const ssize_t sent =
        send(full_, frame_.data() + begin_, frame_.size() - begin_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return false;
    begin_ = (begin_ + static_cast<size_t>(sent)) % frame_.size();
    return true;
  }

  const uint64_t word_ = 0;
  const Bytes frame_ =
      FrameOf(std::vector<Verb>(kVerbs, Write(At(64), std::as_bytes(std::span(&word_, 1))).Lower()));
  std::mutex mutex_;  // of what follows
  size_t begin_ = 0;  // of what is sent next
  std::array<std::byte, 4096> taken_;
  int full_ = -1;
  int other_ = -1;
  size_t executed_ = 0;
  size_t asked_at_ = 0;
  size_t waited_ = 0;
  bool ended_ = false;
};

TEST(TcpFloods, ClientWhoseSocketIsAlwaysFull_HasOneTurnARound) {
  // Given a client that sends without end, for many turns.
  constexpr size_t kMostOfATurn = 128 + FullSocket::kVerbs;
  FullSocket flood;
  ServerOptions options = OneThread();
  options.loses_answer = [&flood](std::span<const Verb> verbs) { return flood.OnFrame(verbs); };
  TestNode node(kRegion, options);
  RawPeer full(node.port());
  RawPeer other(node.port());
  ASSERT_EQ(full.Greet(HelloAs(5)).welcome.status, 0);
  ASSERT_EQ(other.Greet(HelloAs(6)).welcome.status, 0);
  // When another one asks for something. Expect that it waits for the turn that has begun, and at most for
  // the next.
  flood.Begin(full.fd(), other.fd());
  EXPECT_EQ(other.Receive(sizeof(wire::ReplyHeader) + sizeof(uint64_t)).size(), 16u);
  node.server().Stop();
  EXPECT_LE(flood.waited(), 2 * kMostOfATurn);
}

}  // namespace
}  // namespace farside::fabric::tcp
