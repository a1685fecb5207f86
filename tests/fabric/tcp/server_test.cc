// A server and its clients: refused, hostile and slow ones, and others that go on undisturbed.
#include "fabric/tcp/server.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "fabric/tcp/host_visits.h"
#include "tests/fabric/tcp/hostile_frames.h"
#include "tests/fabric/tcp/world.h"
#include "tests/support/heap_count.h"
#include "tests/support/sanitized.h"

namespace farside::fabric::tcp {
namespace {

constexpr uint64_t kRegion = 4096;

// ---- coming in

TEST(TcpServer, AnotherProtocolIsClosedWithOneLine) {
  // Given a node and a client of it.
  TestNode node;
  Bystander bystander(node);
  // When a client sends what is no Hello: text, noise, and the start of a TLS handshake.
  const std::array<std::string, 3> strange = {
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", std::string(100, '\xa5'),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)};
  for (const std::string& text : strange) {
    RawPeer peer(node.port());
    peer.Send(text);
    // Expect that it is closed, and that the client notices nothing.
    EXPECT_TRUE(peer.NodeHungUp());
    bystander.ExpectServed();
  }
  EXPECT_EQ(node.log().Count("it is no client of Farside"), strange.size());
}

TEST(TcpServer, AnotherVersionIsRefusedNamingBoth) {
  // Given a client of version 99.
  TestNode node;
  RawPeer peer(node.port());
  wire::Hello hello = HelloAs(5);
  hello.version = 99;
  // Expect a refusal that names both versions.
  const RawPeer::Answer answer = peer.Greet(hello);
  EXPECT_EQ(answer.welcome.status, wire::StatusOf(ErrorCode::kVersionMismatch));
  EXPECT_EQ(answer.welcome.version, wire::kVersion);
  EXPECT_NE(answer.message.find("version 1"), std::string::npos) << answer.message;
  EXPECT_NE(answer.message.find("version 99"), std::string::npos) << answer.message;
  EXPECT_TRUE(peer.NodeHungUp());
}

TEST(TcpServer, IdsThatAreTakenOrImpossibleAreRefused) {
  // Given a client 5.
  TestNode node;
  RawPeer first(node.port());
  EXPECT_EQ(first.Greet(HelloAs(5)).welcome.status, 0);
  // When another says to be 5, too, or 0. Expect that it is refused.
  for (const uint32_t id : {5, 0}) {
    RawPeer second(node.port());
    EXPECT_EQ(second.Greet(HelloAs(id)).welcome.status, wire::StatusOf(ErrorCode::kAlreadyExists));
    EXPECT_TRUE(second.NodeHungUp());
  }
  // When the first has gone. Expect that its id stays refused.
  first.Hangup();
  node.log().Await("client 5 at");
  RawPeer third(node.port());
  EXPECT_EQ(third.Greet(HelloAs(5)).welcome.status, wire::StatusOf(ErrorCode::kAlreadyExists));
}

TEST(TcpServer, UnknownFlagsAreRefused) {
  // Given a Hello with a flag of the future. Expect a refusal.
  TestNode node;
  RawPeer peer(node.port());
  wire::Hello hello = HelloAs(5);
  hello.flags = 2;
  EXPECT_EQ(peer.Greet(hello).welcome.status, wire::StatusOf(ErrorCode::kInvalidArgument));
}

TEST(TcpServer, AHelloMayComeInPieces) {
  // Given a Hello that comes byte by byte. Expect that it is understood.
  TestNode node;
  RawPeer peer(node.port());
  const Bytes hello = BytesOf(HelloAs(5));
  for (size_t i = 0; i + 1 < hello.size(); ++i) peer.Send(std::span(hello).subspan(i, 1));
  peer.Send(std::span(hello).last(1));
  const Bytes welcome = peer.Receive(sizeof(wire::Welcome));
  ASSERT_EQ(welcome.size(), sizeof(wire::Welcome));
  EXPECT_EQ(wire::Load<wire::Welcome>(welcome.data()).region_bytes, kRegion);
}

TEST(TcpServer, SilentClientIsNotWaitedForLong) {
  // Given a node that is not patient.
  ServerOptions options = OneThread();
  options.greeting_timeout = std::chrono::milliseconds(1);
  TestNode node(kRegion, options);
  // When a client connects and says nothing. Expect that it is closed.
  RawPeer peer(node.port());
  EXPECT_TRUE(peer.NodeHungUp());
  EXPECT_EQ(node.log().Count("did not say Hello in time"), 1u);
}

TEST(TcpServer, TooManyAreRefusedPolitely) {
  // Given a node for two clients, and two clients.
  ServerOptions options = OneThread();
  options.max_connections = 2;
  TestNode node(kRegion, options);
  const auto fabric = node.Open();
  auto first = ConnectTo(*fabric);
  const auto second = ConnectTo(*fabric);
  // When a third comes. Expect that it is told why it cannot.
  const auto third = fabric->Connect();
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(third.error().message().find("its limit"), std::string::npos) << third.error().message();
  // When one leaves. Expect that there is room.
  first.reset();
  node.log().Await("left: it disconnected");
  EXPECT_TRUE(fabric->Connect().ok());
}

TEST(TcpServer, ConnectionsOfAHostOneAfterTheOther_AreNotALineEach) {
  // Given a node that logs as it does by default.
  TestNode node(kRegion, OneThread(), {1, 2}, LogLevel::kInfo);
  // When a host opens and closes several connections. Expect one line for the host that came.
  const auto fabric = node.Open();
  for (int i = 0; i < 5; ++i) ConnectTo(*fabric).reset();
  EXPECT_EQ(node.log().Count("tcp: 127.0.0.1 came"), 1u);
  EXPECT_LE(node.log().Count("tcp: "), 2u);
}

TEST(TcpHostVisits, AHostThatIsBackSoonHasNotLeft) {
  using namespace std::chrono_literals;
  HostVisits visits;
  // Given a host that comes with one connection after the other. Expect one visit, also of two at the same
  // time.
  EXPECT_TRUE(visits.Come("a", 100s));
  EXPECT_FALSE(visits.Leave("a", 101s));
  EXPECT_FALSE(visits.Come("a", 102s));
  EXPECT_FALSE(visits.Come("a", 103s));
  EXPECT_TRUE(visits.Come("b", 104s)) << "another host has a visit of its own";
  EXPECT_FALSE(visits.Leave("a", 120s)) << "one connection is left";
  EXPECT_TRUE(visits.Leave("a", 121s)) << "a long visit has an end";
  EXPECT_TRUE(visits.Come("a", 122s)) << "and then another one begins";
  // Given a short visit. Expect that the next one begins when the host was away for long enough.
  EXPECT_FALSE(visits.Leave("a", 123s));
  EXPECT_TRUE(visits.Come("a", 133s));
}

TEST(TcpHostVisits, HostsThatComeAndGo_AreForgottenInTime) {
  using namespace std::chrono_literals;
  HostVisits visits;
  // Given one host that stays, and crowds of others that come for a moment. Expect that only the last of them
  // are remembered, and that the one that stays is still there.
  EXPECT_TRUE(visits.Come("stays", 100s));
  constexpr int kHosts = 3 * HostVisits::kMostAway;
  for (int i = 0; i < kHosts; ++i) {
    EXPECT_TRUE(visits.Come(std::to_string(i), 101s));
    EXPECT_FALSE(visits.Leave(std::to_string(i), 101s));
    ASSERT_LE(visits.size(), HostVisits::kMostAway + 2);
  }
  EXPECT_FALSE(visits.Come("stays", 102s));
  // Given that they have been away for long. Expect that the next one that comes finds nothing of them.
  EXPECT_TRUE(visits.Come("late", 111s));
  EXPECT_EQ(visits.size(), 2u);
  EXPECT_FALSE(visits.Leave("stays", 112s));
  EXPECT_TRUE(visits.Leave("stays", 113s));
}

TEST(TcpServer, TenThousandClientsThatComeAndGo_LeaveNothingBehind) {
  // Given a node that has seen some clients, and how many descriptors and bytes there are while it has none.
  // (Under a sanitizer a connection costs eight times as much, so there are fewer; it finds leaks by itself.)
  constexpr uint64_t kFirst = 500 / kFewer;
  constexpr uint64_t kClients = 10'000 / kFewer;
  // That a client was there is remembered for a while, so that its id is not used again. All else must be
  // gone.
  constexpr uint64_t kRememberedBytes = 128;
  TestNode node(kRegion, OneThread(), {1, 2}, LogLevel::kError);
  const auto fabric = node.Open();
  size_t descriptors = 0;
  uint64_t bytes = 0;
  // When they come and go, some in the middle of something.
  for (uint64_t i = 0; i < kClients; ++i) {
    if (i == kFirst) {
      while (node.server().connections() != 0) std::this_thread::yield();
      descriptors = OpenDescriptors();
      bytes = HeapBytes();
    }
    const auto client = ConnectTo(*fabric);
    if (i % 4 == 0) {
      ASSERT_TRUE(fabric::Run(*client, AddTo(*client, At(0), 1)).ok());
    } else if (i % 4 == 1) {
      Op op(*client, OpKind::kUpdate);
      op.Detach(Order::kInOrder, Faa(At(0), 1));
    }
  }
  // Expect no client, and no more descriptors than before.
  while (node.server().connections() != 0) std::this_thread::yield();
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(node.node().clients(), 0u);
  EXPECT_LE(HeapBytes(), bytes + kClients * kRememberedBytes);
}

// ---- hostile frames

TEST(TcpServer, HostileFramesCloseTheirConnectionAndChangeNothing) {
  // Given a node and a client of it.
  TestNode node;
  Bystander bystander(node);
  uint32_t id = 100;
  for (const HostileFrame& hostile : HostileFrames(kRegion)) {
    SCOPED_TRACE(hostile.name);
    // When a peer sends a frame that begins well and has one thing wrong.
    RawPeer peer(node.port());
    ASSERT_EQ(peer.Greet(HelloAs(++id)).welcome.status, 0);
    peer.Send(hostile.bytes);
    // Expect that it is closed with one line that says why, that nothing was changed, and that others go on.
    EXPECT_TRUE(peer.NodeHungUp());
    EXPECT_EQ(node.log().Count("client " + std::to_string(id) + " at"), 1u);
    EXPECT_GE(node.log().Count(hostile.expected), 1u);
    EXPECT_EQ(node.Word(0), 0u);
    bystander.ExpectServed();
  }
}

TEST(TcpServer, AnnouncedBytesCostNothingUntilTheyCome) {
  // Given peers that announce the largest frame and send a part of it.
  TestNode node;
  Bystander bystander(node);
  wire::FrameHeader header;
  header.body_bytes = static_cast<uint32_t>(wire::kMaxBodyBytes);
  header.verbs = 1;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (uint32_t id = 1; id <= 20; ++id) {
    peers.push_back(std::make_unique<RawPeer>(node.port()));
    ASSERT_EQ(peers.back()->Greet(HelloAs(id)).welcome.status, 0);
    peers.back()->Send(BytesOf(header));
    peers.back()->Send(std::string(1000, 'x'));
  }
  // Expect that others go on, and that it ends when they hang up.
  bystander.ExpectServed();
  for (auto& peer : peers) peer->Hangup();
  node.log().Await("left:", 20);
  bystander.ExpectServed();
}

Task<Done> ReadMany(Client& client, std::span<std::byte> into) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read(At(0), into));
  co_return Done{};
}

TEST(TcpServer, AllConnectionsTogetherHaveABoundOnMemory) {
  // Given a node with 13 MiB for large requests and answers, and a peer that has sent the larger part of one
  // of 6 MiB.
  constexpr size_t kMiB = size_t{1} << 20;
  ServerOptions options = OneThread();
  options.max_buffered = 13 * kMiB;
  TestNode node(8 * kMiB, options);
  Bystander bystander(node);
  std::vector<std::byte> payload(6 * kMiB, std::byte{7});
  const Bytes frame = FrameOf({Write(At(0), payload).Lower()});
  const std::span<const std::byte> most = std::span(frame).first(3 * kMiB);
  RawPeer first(node.port());
  ASSERT_EQ(first.Greet(HelloAs(1)).welcome.status, 0);
  first.Send(most);
  while (node.server().buffered() < 4 * kMiB) std::this_thread::yield();
  // When another sends as much. Expect that it is told why not, and that nothing was changed.
  RawPeer second(node.port());
  ASSERT_EQ(second.Greet(HelloAs(2)).welcome.status, 0);
  second.Send(most);
  const Bytes head = second.Receive(sizeof(wire::ReplyHeader));
  ASSERT_EQ(head.size(), sizeof(wire::ReplyHeader));
  const auto goodbye = wire::Load<wire::ReplyHeader>(head.data());
  EXPECT_EQ(goodbye.kind, wire::ReplyKind::kGoodbye);
  EXPECT_EQ(wire::CodeOf(goodbye.status), ErrorCode::kUnavailable);
  const Bytes text = second.Receive(goodbye.body_bytes);
  const std::string message(reinterpret_cast<const char*>(text.data()), text.size());
  EXPECT_NE(message.find("the node has 13 MiB for large requests and answers"), std::string::npos) << message;
  EXPECT_EQ(node.log().Count("client 2 at"), 1u);
  // When a client asks for an answer that is too large by now. Expect that it is told, and that small ones
  // are served.
  const Result<Done> read = fabric::Run(bystander.client(), ReadMany(bystander.client(), payload));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), ErrorCode::kContended);
  EXPECT_NE(read.error().message().find("try again later"), std::string::npos) << read.error().message();
  bystander.ExpectServed();
  // When the first one has gone. Expect that all memory is there again.
  first.Hangup();
  while (node.server().buffered() != 0) std::this_thread::yield();
  EXPECT_TRUE(fabric::Run(bystander.client(), ReadMany(bystander.client(), payload)).ok());
  EXPECT_EQ(payload[0], std::byte{0});
  bystander.ExpectServed();
  while (node.server().buffered() != 0) std::this_thread::yield();
}

TEST(TcpServer, MutatedStreamsDoNoHarm) {
  // Given peers that send good frames and then one that was mutated.
  TestNode node(kRegion);
  Bystander bystander(node, 8);
  for (uint64_t seed = 1; seed <= 400 / kFewer; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RawPeer peer(node.port());
    ASSERT_EQ(peer.Greet(HelloAs(static_cast<uint32_t>(1000 + seed))).welcome.status, 0);
    Bytes stream;
    for (uint64_t i = random.Below(4); i > 0; --i) Append(stream, RandomFrame(random, kRegion));
    Bytes last = RandomFrame(random, kRegion);
    Mutate(random, last);
    Append(stream, last);
    peer.Send(stream);
    shutdown(peer.fd(), SHUT_WR);
    // Expect that the node goes on, and closes this one.
    EXPECT_TRUE(peer.NodeHungUp());
    if (seed % 20 == 0) {
      const Result<uint64_t> read = fabric::Run(bystander.client(), ReadFrom(bystander.client(), At(0)));
      ASSERT_TRUE(read.ok()) << read.error().ToString();
    }
  }
}

// ---- slow readers

TEST(TcpServer, ClientThatDoesNotReadItsAnswersIsNotServedAndOthersAre) {
  // Given a region of a mebibyte, and a peer that asks for all of it again and again, and reads nothing.
  constexpr uint64_t kLarge = uint64_t{1} << 20;
  constexpr size_t kMany = 2000;
  TestNode node(kLarge);
  Bystander bystander(node);
  RawPeer peer(node.port());
  ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
  const Bytes frame = FrameOf({Read(At(0), {static_cast<std::byte*>(nullptr), kLarge}).Lower()});
  Bytes stream;
  for (size_t i = 0; i < kMany; ++i) Append(stream, frame);
  fcntl(peer.fd(), F_SETFL, fcntl(peer.fd(), F_GETFL) | O_NONBLOCK);
  // When everything has been sent that the node takes.
  size_t sent = 0;
  size_t received = 0;
  const auto send_more = [&] {
    const ssize_t some = send(peer.fd(), stream.data() + sent, stream.size() - sent, MSG_NOSIGNAL);
    if (some > 0) sent += static_cast<size_t>(some);
  };
  send_more();
  // Expect that others are served.
  for (int i = 0; i < 100; ++i) bystander.ExpectServed();
  // When it reads after all. Expect all its answers.
  const size_t expected = kMany * (sizeof(wire::ReplyHeader) + kLarge);
  Bytes into(kLarge);
  while (received < expected) {
    pollfd waiting{.fd = peer.fd(), .events = POLLIN, .revents = 0};
    if (sent < stream.size()) waiting.events |= POLLOUT;
    ASSERT_GT(poll(&waiting, 1, 60'000), 0);
    if (sent < stream.size()) send_more();
    const ssize_t some = recv(peer.fd(), into.data(), into.size(), 0);
    ASSERT_NE(some, 0);
    if (some > 0) received += static_cast<size_t>(some);
  }
  EXPECT_EQ(received, expected);
  bystander.ExpectServed();
}

// ---- the end

// Adds until it cannot any more.
Task<Done> AddUntilBroken(Client& client, uint64_t& added, std::vector<ErrorCode>& errors) {
  Op op(client, OpKind::kUpdate);
  while (errors.size() < 2) {
    const auto outcome = co_await op.InOrder(Faa(At(0), 1), Read<uint64_t>(At(0))).Outcome();
    if (outcome.ok()) {
      ++added;
    } else {
      errors.push_back(outcome.error().code());
    }
  }
  co_return Done{};
}

TEST(TcpServer, StoppingUnderLoadAnswersWhatWasExecuted) {
  // Given clients that add as fast as they can.
  ServerOptions options;
  options.threads = 2;
  TestNode node(kRegion, options);
  const auto fabric = node.Open();
  std::array<uint64_t, 3> added{};
  std::array<std::vector<ErrorCode>, 3> errors;
  {
    std::vector<std::jthread> threads;
    std::vector<std::unique_ptr<Client>> clients;
    for (size_t i = 0; i < added.size(); ++i) clients.push_back(ConnectTo(*fabric));
    for (size_t i = 0; i < added.size(); ++i) {
      threads.emplace_back([&, i] {
        ASSERT_TRUE(fabric::Run(*clients[i], AddUntilBroken(*clients[i], added[i], errors[i])).ok());
      });
    }
    // When the server stops in the middle of it.
    while (node.Word(0) < 1000) std::this_thread::yield();
    node.server().Stop();
    threads.clear();
  }
  // Expect that each addition was answered, that no client is in doubt, and that no client is left.
  EXPECT_EQ(added[0] + added[1] + added[2], node.Word(0));
  for (const auto& codes : errors) EXPECT_EQ(codes, std::vector<ErrorCode>(2, ErrorCode::kUnavailable));
  EXPECT_EQ(node.node().clients(), 0u);
  EXPECT_EQ(node.server().connections(), 0u);
}

TEST(TcpServer, ListeningInPlainTextToAllMachinesHasToBeMeant) {
  // Given a server for all addresses of this machine, without TLS.
  TestNode node;
  ServerOptions options = OneThread();
  options.host = "0.0.0.0";
  // Expect that it is refused, unless it says that it is meant.
  const auto refused = Server::Listen(node.node(), options, node.log().logger());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message().find("TLS"), std::string::npos);
  options.insecure = true;
  EXPECT_TRUE(Server::Listen(node.node(), options, node.log().logger()).ok());
  // Expect an error for a port that is taken.
  options = OneThread();
  options.port = node.port();
  const auto taken = Server::Listen(node.node(), options, node.log().logger());
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), ErrorCode::kUnavailable);
}

// ---- lines that are not finished

// Verbs of each sort on the line at 128, of which some must not be executed in part and then be answered.
Task<Done> UseTheLine(Client& client, int how) {
  Op op(client, OpKind::kUpdate);
  const uint64_t seven = 7;
  if (how == 0) co_await op.InOrder(Read<uint64_t>(At(0)), Read<uint64_t>(At(128)));
  if (how == 1) co_await op.InOrder(WriteObject(At(0), seven), WriteObject(At(128), seven));
  if (how == 2) co_await op.InOrder(Faa(At(128), 1));
  if (how == 3) co_await op.InOrder(FenceVerb(NodeId{0}, ClientId{9}), WriteObject(At(128), seven));
  co_return Done{};
}

// Given a line that is held and never freed, as a client of shared memory may leave it. When clients use it.
// Expect that the first of them is sent away after a while and is told why, that those after it are sent away
// at once, and that others are served.
TEST(TcpServer, ALineThatIsNeverFree_IsNotWaitedForForEver) {
  ManualClock clock;
  TestNode node(kRegion, OneThread(), {1, 2}, LogLevel::kDebug, &clock);
  Bystander bystander(node);
  node.stripes().sequences[2] = 7;
  for (int how = 0; how < 4; ++how) {
    SCOPED_TRACE(how);
    const auto fabric = node.Open();
    const auto client = ConnectTo(*fabric);
    std::atomic<bool> ended = false;
    std::jthread thread([&] {
      const Result<Done> used = fabric::Run(*client, UseTheLine(*client, how));
      ASSERT_FALSE(used.ok());
      EXPECT_EQ(used.error().code(), how == 0 ? ErrorCode::kUnavailable : ErrorCode::kOutcomeUnknown);
      EXPECT_NE(used.error().message().find("held by a client of shared memory"), std::string::npos)
          << used.error().message();
      ended = true;
    });
    while (!ended) {
      if (how == 0) clock.Advance(std::chrono::milliseconds(10));
      std::this_thread::yield();
    }
    bystander.ExpectServed();
  }
  EXPECT_EQ(node.log().Count("is sent away"), 4u);
  EXPECT_EQ(node.stripes().sequences[2], 7u);
}

// Given a client that waits for such a line, and time that stands still. When the node stops. Expect that it
// does.
TEST(TcpServer, StopsAlthoughAClientWaitsForALine) {
  const ManualClock clock;
  std::optional<TestNode> node;
  node.emplace(kRegion, OneThread(), memory::RegionId{1, 2}, LogLevel::kDebug, &clock);
  node->stripes().sequences[2] = 7;
  const auto fabric = node->Open();
  const auto client = ConnectTo(*fabric);
  std::jthread thread([&] { EXPECT_FALSE(fabric::Run(*client, UseTheLine(*client, 2)).ok()); });
  node->node().StopWaiting();
  node.reset();
}

// ---- reading only

Task<Done> TryEverything(Client& client, std::vector<std::optional<ErrorCode>>& codes) {
  Op op(client, OpKind::kUpdate);
  const uint64_t seven = 7;
  const auto read = co_await op.InOrder(Read<uint64_t>(At(0))).Outcome();
  codes.push_back(read.ok() ? std::nullopt : std::optional(read.error().code()));
  const auto write = co_await op.InOrder(Read<uint64_t>(At(0)), WriteObject(At(0), seven)).Outcome();
  codes.push_back(write.ok() ? std::nullopt : std::optional(write.error().code()));
  const auto cas = co_await op.InOrder(Cas(At(0), 0, 1)).Outcome();
  codes.push_back(cas.ok() ? std::nullopt : std::optional(cas.error().code()));
  const auto fence = co_await op.InOrder(FenceVerb(NodeId{0}, ClientId{9})).Outcome();
  codes.push_back(fence.ok() ? std::nullopt : std::optional(fence.error().code()));
  const auto call = co_await op.Call(NodeId{0}, CallId(1, 1), "").Outcome();
  codes.push_back(call.ok() ? std::nullopt : std::optional(call.error().code()));
  const auto allowed = co_await op.InOrder(Faa(At(64), 1)).Outcome();
  codes.push_back(allowed.ok() ? std::nullopt : std::optional(allowed.error().code()));
  const auto again = co_await op.InOrder(Read<uint64_t>(At(0))).Outcome();
  codes.push_back(again.ok() ? std::nullopt : std::optional(again.error().code()));
  co_return Done{};
}

// Readers may add to one word, and do so twice in a connection.
class TwoAdditions final : public memory::ReaderGuard {
 public:
  explicit TwoAdditions(memory::LineMemory& memory) : memory_(memory) {}
  bool May(const Verb& verb) override {
    return verb.kind == VerbKind::kRead ||
           (verb.kind == VerbKind::kFaa && verb.at.offset == 64 && additions_ < 2);
  }
  void Executed(const Verb& verb) override { additions_ += verb.kind == VerbKind::kFaa ? 1 : 0; }
  void Depart() override { memory_.Store(128, memory_.Load(128) + 1); }
  static Result<std::unique_ptr<ReaderGuard>> Make(memory::LineMemory& memory, ClientId id) {
    if (id == ClientId{13}) return Error(ErrorCode::kAlreadyExists, "the guard has something against it");
    return std::unique_ptr<ReaderGuard>(std::make_unique<TwoAdditions>(memory));
  }

 private:
  memory::LineMemory& memory_;
  int additions_ = 0;
};

ServerOptions ForReaders() {
  ServerOptions options = OneThread();
  options.plain_access = wire::Access::kReadOnly;
  options.new_reader_guard = TwoAdditions::Make;
  return options;
}

TEST(TcpServer, ReadOnlyClientIsRefusedEverythingElse) {
  // Given a node whose clients may only read, but for one word.
  TestNode node(kRegion, ForReaders());
  const auto fabric = node.Open();
  EXPECT_TRUE(fabric->read_only());
  const auto client = ConnectTo(*fabric);
  // When it tries everything. Expect that only READs and the guarded word work, that the rest is refused as a
  // whole, and that the connection stays.
  std::vector<std::optional<ErrorCode>> codes;
  ASSERT_TRUE(fabric::Run(*client, TryEverything(*client, codes)).ok());
  const std::optional<ErrorCode> no = ErrorCode::kPermissionDenied;
  const std::optional<ErrorCode> fine = std::nullopt;
  EXPECT_EQ(codes, (std::vector{fine, no, no, no, no, fine, fine}));
  EXPECT_EQ(node.Word(0), 0u);
  EXPECT_EQ(node.Word(64), 1u);
}

TEST(TcpServer, ReadOnlyClientLosesARightInAFrame_TheRestOfItDoesNotHappen) {
  // Given a reader that may add twice.
  TestNode node(kRegion, ForReaders());
  RawPeer peer(node.port());
  ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
  // When it adds three times in one frame, each of which is allowed as the frame begins. Expect that it adds
  // twice, and is sent away.
  const Verb add = Faa(At(64), 1).Lower();
  peer.Send(FrameOf({add, add, add}));
  EXPECT_TRUE(peer.NodeHungUp());
  EXPECT_EQ(node.Word(64), 2u);
  node.log().Await("gives up the right");
}

TEST(TcpServer, TheGuardOfAReaderIsAskedFirstAndToldLast) {
  // Given a guard that refuses one id. Expect that a reader with that id does not come in, and that another
  // is departed from once.
  TestNode node(kRegion, ForReaders());
  RawPeer refused(node.port());
  EXPECT_EQ(refused.Greet(HelloAs(13)).welcome.status, wire::StatusOf(ErrorCode::kAlreadyExists));
  EXPECT_TRUE(refused.NodeHungUp());
  RawPeer peer(node.port());
  EXPECT_EQ(peer.Greet(HelloAs(14)).welcome.status, 0);
  peer.Hangup();
  node.log().Await("client 14 at");
  node.server().Stop();
  EXPECT_EQ(node.Word(128), 1u);
}

}  // namespace
}  // namespace farside::fabric::tcp
