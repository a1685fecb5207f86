// A client of the tcp fabric whose nodes are slow, gone, other than before, or talk nonsense.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "tests/fabric/tcp/loopback.h"
#include "tests/fabric/tcp/world.h"
#include "tests/support/heap_count.h"

namespace farside::fabric::tcp {
namespace {

using namespace std::chrono_literals;

// A node that does what a test wants: it answers each Hello with the next of its Welcomes, in a thread of its
// own, and leaves the connection to the test.
class FakeNode {
 public:
  // `message` follows every Welcome.
  explicit FakeNode(std::vector<wire::Welcome> welcomes, const std::string& message = {}) {
    thread_ = std::thread([this, welcomes = std::move(welcomes), message] {
      for (const wire::Welcome& welcome : welcomes) {
        Descriptor socket = listener_.Accept();
        wire::Hello hello;
        EXPECT_EQ(recv(socket.get(), &hello, sizeof(hello), MSG_WAITALL),
                  static_cast<ssize_t>(sizeof(hello)));
        EXPECT_EQ(send(socket.get(), &welcome, sizeof(welcome), MSG_NOSIGNAL),
                  static_cast<ssize_t>(sizeof(welcome)));
        if (!message.empty()) {
          EXPECT_EQ(send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL),
                    static_cast<ssize_t>(message.size()));
        }
        ids_.push_back(hello.client);
        sockets_.push_back(std::move(socket));
      }
    });
  }
  ~FakeNode() { AwaitWelcomes(); }

  std::string address() const { return listener_.address(); }
  // All Welcomes were given.
  void AwaitWelcomes() {
    if (thread_.joinable()) thread_.join();
  }
  const std::vector<uint32_t>& ids() const { return ids_; }
  // The last connection.
  int socket() const { return sockets_.back().get(); }
  void Send(const Bytes& bytes) const {
    EXPECT_EQ(send(socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void Hangup() { sockets_.clear(); }

 private:
  const LoopbackListener listener_;
  std::thread thread_;
  std::vector<uint32_t> ids_;
  std::vector<Descriptor> sockets_;
};

wire::Welcome Good() {
  wire::Welcome welcome;
  welcome.region_id = {1, 2};
  welcome.region_bytes = 4096;
  return welcome;
}
wire::Welcome Refusal(ErrorCode code) {
  wire::Welcome welcome;
  welcome.status = wire::StatusOf(code);
  return welcome;
}

struct Opened {
  std::unique_ptr<TcpFabric> fabric;
  std::unique_ptr<Client> client;
};
Opened OpenAndConnect(FakeNode& node, const Clock* clock = nullptr) {
  Options options;
  options.addresses = {node.address()};
  options.clock = clock;
  Opened opened;
  opened.fabric = TestNode::Open(options);
  opened.client = ConnectTo(*opened.fabric);
  node.AwaitWelcomes();
  return opened;
}

// ---- connecting

TEST(TcpClient, AnIdThatIsTakenIsReplacedByAnother) {
  // Given a node that refuses two ids.
  FakeNode node({Good(), Refusal(ErrorCode::kAlreadyExists), Refusal(ErrorCode::kAlreadyExists), Good()});
  // When a client connects. Expect that it came in with a third.
  const Opened opened = OpenAndConnect(node);
  EXPECT_EQ(node.ids().front(), 0u);  // to look only
  EXPECT_EQ(Number(opened.client->id()), node.ids().back());
  EXPECT_NE(node.ids()[1], node.ids()[2]);
  EXPECT_NE(node.ids()[2], node.ids()[3]);
}

TEST(TcpClient, ANodeWithOtherMemoryIsRefused) {
  // Given a node that has another region when a client connects than when the fabric was opened.
  wire::Welcome other = Good();
  other.region_id = {1, 3};
  FakeNode node({Good(), other});
  Options options;
  options.addresses = {node.address()};
  const auto fabric = TestNode::Open(options);
  // Expect an error that says what to do.
  const auto client = fabric->Connect();
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(client.error().message().find(node.address()), std::string::npos);
  EXPECT_NE(client.error().message().find("open the pool again"), std::string::npos);
}

TEST(TcpClient, WelcomesThatMakeNoSenseAreRefused) {
  // Given nodes of another version, of another protocol, and such that talk nonsense.
  const auto expect = [](const wire::Welcome& welcome, ErrorCode code, const std::string& part) {
    FakeNode node({welcome});
    Options options;
    options.addresses = {node.address()};
    const auto fabric = TcpFabric::Open(options);
    ASSERT_FALSE(fabric.ok());
    EXPECT_EQ(fabric.error().code(), code);
    EXPECT_NE(fabric.error().message().find(part), std::string::npos) << fabric.error().message();
    EXPECT_NE(fabric.error().message().find(node.address()), std::string::npos) << fabric.error().message();
  };
  // Expect errors that say so.
  wire::Welcome welcome = Good();
  welcome.version = 7;
  expect(welcome, ErrorCode::kVersionMismatch, "version 7 of the protocol and this client version 1");
  welcome = Good();
  welcome.magic = 1;
  expect(welcome, ErrorCode::kUnavailable, "no memory node of Farside");
  welcome = Good();
  welcome.message_bytes = 1 << 30;
  expect(welcome, ErrorCode::kUnavailable, "makes no sense");
  welcome = Good();
  welcome.status = 99;
  expect(welcome, ErrorCode::kUnavailable, "makes no sense");
  welcome = Good();
  welcome.access = static_cast<wire::Access>(9);
  expect(welcome, ErrorCode::kUnavailable, "makes no sense");
  welcome = Good();
  welcome.region_bytes = 65;
  expect(welcome, ErrorCode::kUnavailable, "makes no sense");
}

TEST(TcpClient, AddressesThatCannotBeAreRefused) {
  // Given addresses that are none, one where no server listens, and one on another machine. Expect errors
  // that say so.
  const auto open = [](const std::string& address) {
    Options options;
    options.addresses = {address};
    const auto fabric = TcpFabric::Open(options);
    EXPECT_FALSE(fabric.ok());
    return fabric.error();
  };
  for (const std::string bad :
       {"", "localhost", "localhost:", ":1", "::1:7", "a:b:1", "host:65536", "host:-1"}) {
    EXPECT_EQ(open(bad).code(), ErrorCode::kInvalidArgument) << bad;
  }
  uint16_t free_port = 0;
  {
    TestNode node;
    free_port = node.port();
  }
  EXPECT_EQ(open("127.0.0.1:" + std::to_string(free_port)).code(), ErrorCode::kUnavailable);
  const Error elsewhere = open("192.0.2.1:7170");
  EXPECT_EQ(elsewhere.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(elsewhere.message().find("TLS"), std::string::npos);
  EXPECT_FALSE(TcpFabric::Open(Options{}).ok());
}

TEST(TcpClient, NamesAndOtherFamiliesWork) {
  // Given a node, and its address by name. Expect that it is found.
  TestNode node;
  Options options;
  options.addresses = {"localhost:" + std::to_string(node.port())};
  EXPECT_TRUE(TcpFabric::Open(options).ok());
  EXPECT_EQ(Endpoint::Parse("[::1]:7170")->ToString(), "[::1]:7170");
  EXPECT_EQ(Endpoint::Parse("[::1]:7170")->host, "::1");
}

TEST(TcpClient, TheFabricKnowsTheIdentityOfEachRegion) {
  // Given two nodes. Expect that the fabric names their regions.
  TestNode first(4096, OneThread(), {1, 1});
  TestNode second(8192, OneThread(), {2, 2});
  Options options;
  options.addresses = {first.address(), second.address()};
  const auto fabric = TestNode::Open(options);
  ASSERT_EQ(fabric->region_ids().size(), 2u);
  EXPECT_EQ(fabric->region_ids()[0], (memory::RegionId{1, 1}));
  EXPECT_EQ(fabric->region_ids()[1], (memory::RegionId{2, 2}));
  EXPECT_EQ(fabric->region_bytes()[1], 8192u);
  EXPECT_FALSE(fabric->read_only());
}

// ---- breaking

TEST(TcpClient, ANodeThatIsSilentForTooLongBreaksTheClient) {
  // Given a node that says nothing after its Welcome.
  FakeNode node({Good(), Good()});
  ManualClock clock;
  const Opened opened = OpenAndConnect(node, &clock);
  Client& client = *opened.client;
  client.set_concurrency(2);
  Task<uint64_t> reads = ReadFrom(client, At(0));
  Task<uint64_t> adds = AddTo(client, At(0), 1);
  reads.Start();
  adds.Start();
  // When it stays silent for almost as long as it may. Expect that both wait.
  ASSERT_TRUE(client.Poll());
  ASSERT_TRUE(client.Poll());
  clock.Advance(29s);
  ASSERT_TRUE(client.Poll());
  EXPECT_FALSE(reads.done() || adds.done());
  // When it stays silent for longer. Expect that both end, each with what is known of it.
  clock.Advance(2s);
  while (client.Poll()) continue;
  ASSERT_TRUE(reads.done() && adds.done());
  const Result<uint64_t> read = reads.TakeResult();
  EXPECT_EQ(read.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(read.error().message().find(node.address()), std::string::npos) << read.error().message();
  EXPECT_EQ(adds.TakeResult().error().code(), ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(fabric::Run(client, AddTo(client, At(0), 1)).error().code(), ErrorCode::kUnavailable);
}

TEST(TcpClient, NodesThatAreSilentAtTheSameTime_AreGivenUpTogether) {
  // Given two nodes that say nothing after their Welcomes.
  FakeNode first({Good(), Good()});
  FakeNode second({Good(), Good()});
  ManualClock clock;
  Options options;
  options.addresses = {first.address(), second.address()};
  options.clock = &clock;
  const auto fabric = TestNode::Open(options);
  const auto client = ConnectTo(*fabric);
  first.AwaitWelcomes();
  second.AwaitWelcomes();
  // When an operation waits for the first one until that is given up, and then asks the second one.
  Task<uint64_t> one = ReadFrom(*client, At(0));
  one.Start();
  for (int second_of_silence = 0; !one.done(); ++second_of_silence) {
    ASSERT_LE(second_of_silence, 31);
    for (int poll = 0; poll < 3 && !one.done(); ++poll) ASSERT_TRUE(client->Poll());
    clock.Advance(1s);
  }
  EXPECT_EQ(one.TakeResult().error().code(), ErrorCode::kUnavailable);
  Task<uint64_t> other = ReadFrom(*client, FarAddr(NodeId{1}, 0));
  other.Start();
  // Expect that it does not wait as long once more, because the silence of both was counted together.
  for (int second_of_silence = 0; !other.done(); ++second_of_silence) {
    ASSERT_LE(second_of_silence, 10);
    for (int poll = 0; poll < 3 && !other.done(); ++poll) ASSERT_TRUE(client->Poll());
    clock.Advance(1s);
  }
  EXPECT_EQ(other.TakeResult().error().code(), ErrorCode::kUnavailable);
}

// While a task waits for a time, and the clock is the test's, no poll sleeps for long.
Task<Done> KeepPollsShort(Client& client) {
  Op op(client, OpKind::kMaintenance);
  co_await op.Pause(10'000h);
  co_return Done{};
}

// Nodes, and a client of them, for which time passes as the test says.
class SilentNodes : public testing::Test {
 protected:
  SilentNodes() {
    Options options;
    for (size_t i = 0; i < kNodes; ++i) {
      nodes_.push_back(std::make_unique<FakeNode>(std::vector<wire::Welcome>{Good(), Good()}));
      options.addresses.push_back(nodes_.back()->address());
    }
    options.clock = &clock_;
    options.answer_timeout = kPatience;
    fabric_ = TestNode::Open(options);
    client_ = ConnectTo(*fabric_);
    for (const auto& node : nodes_) node->AwaitWelcomes();
    short_polls_.emplace(KeepPollsShort(*client_));
    short_polls_->Start();
  }

  // Answers what the client has asked a node so far, be it the READ of a test or a probe.
  void AnswerAll(size_t node) {
    std::array<std::byte, 4096> frames{};
    ssize_t came = 0;
    while ((came = recv(nodes_[node]->socket(), frames.data(), frames.size(), MSG_DONTWAIT)) > 0) {
      size_t at = 0;
      while (at < static_cast<size_t>(came)) {
        const auto header = wire::Load<wire::FrameHeader>(frames.data() + at);
        at += sizeof(header) + header.body_bytes;
        Bytes reply = BytesOf(wire::ReplyHeader{.body_bytes = sizeof(uint64_t)});
        Append(reply, BytesOf(uint64_t{5}));
        nodes_[node]->Send(reply);
      }
    }
  }
  // For how long a READ at the node waits, if that hangs for so long and answers then, while others answer.
  Nanos WaitFor(size_t node, Nanos hangs) {
    const Nanos began = clock_.Now();
    Task<uint64_t> read = ReadFrom(*client_, FarAddr(static_cast<NodeId>(node), 0));
    read.Start();
    while (!read.done()) {
      EXPECT_TRUE(client_->Poll());
      for (size_t other = 0; other < kNodes; ++other) {
        if (other != node && client_->Reaches(static_cast<NodeId>(other))) AnswerAll(other);
      }
      if (clock_.Now() - began >= hangs) AnswerAll(node);
      if (!read.done()) clock_.Advance(kPatience / 48);
    }
    static_cast<void>(read.TakeResult());
    return clock_.Now() - began;
  }

  static constexpr size_t kNodes = 6;
  static constexpr Nanos kPatience = 4800ms;
  static constexpr Nanos kForEver = Nanos::max();
  ManualClock clock_;
  std::vector<std::unique_ptr<FakeNode>> nodes_;
  std::unique_ptr<TcpFabric> fabric_;
  std::unique_ptr<Client> client_;
  std::optional<Task<Done>> short_polls_;
};

TEST_F(SilentNodes, ThatHangOneAfterTheOther_AreWaitedForTwiceAsLongAsForOne_AndALittleForEachOther) {
  // Given nodes of which each hangs when the last one was given up.
  // When an operation visits all of them.
  // Expect that the first two are waited for as long as a node may be silent, and the others for a quarter of
  // that.
  EXPECT_GE(WaitFor(0, kForEver), kPatience);
  EXPECT_GE(WaitFor(1, kForEver), kPatience * 3 / 4);
  Nanos others{0};
  for (size_t node = 2; node < kNodes; ++node) others += WaitFor(node, kForEver);
  EXPECT_LE(others, kPatience * 3 / 2);
  for (size_t node = 0; node < kNodes; ++node) EXPECT_FALSE(client_->Reaches(static_cast<NodeId>(node)));
}

TEST_F(SilentNodes, ThatStopAgainAndAgain_AreGivenUp) {
  // Given nodes that stop whenever they are asked, for a little less than they may.
  // When an operation asks them, again and again.
  // Expect that it waits for about twice as long as a node may be silent, and for a quarter of that at each
  // node then: at none for so long that it would be given up alone.
  Nanos waited{0};
  for (size_t trip = 0; trip < 4 * kNodes; ++trip) {
    const size_t node = trip % kNodes;
    if (client_->Reaches(static_cast<NodeId>(node))) waited += WaitFor(node, kPatience * 9 / 10);
  }
  EXPECT_LE(waited, kPatience * (2 * 4 + kNodes + 1) / 4);
  EXPECT_GT(waited, kPatience * 2);
}

TEST_F(SilentNodes, ThatStopNowAndThen_AreWaitedFor) {
  // Given nodes that stop for a little less than they may, and answer for as long in between.
  // When they are asked. Expect that none is given up.
  for (size_t trip = 0; trip < 2 * kNodes; ++trip) {
    const size_t node = trip % kNodes;
    WaitFor(node, kPatience * 9 / 10);
    ASSERT_TRUE(client_->Reaches(static_cast<NodeId>(node))) << trip;
    clock_.Advance(kPatience);
  }
}

TEST(TcpClient, RepliesThatMakeNoSenseBreakTheClient) {
  // Given nodes that answer an addition with nonsense of all sorts.
  const std::vector<std::pair<std::string, Bytes>> replies = {
      {"an unknown kind", BytesOf(wire::ReplyHeader{.kind = static_cast<wire::ReplyKind>(7)})},
      {"too long", BytesOf(wire::ReplyHeader{.body_bytes = ~uint32_t{0}})},
      {"no answer", BytesOf(wire::ReplyHeader{})},
      {"an unknown error", BytesOf(wire::ReplyHeader{.kind = wire::ReplyKind::kError, .status = 77})},
      {"noise", Bytes(64, std::byte{0xa5})},
  };
  for (const auto& [name, reply] : replies) {
    SCOPED_TRACE(name);
    FakeNode node({Good(), Good()});
    const Opened opened = OpenAndConnect(node);
    Task<uint64_t> adds = AddTo(*opened.client, At(0), 1);
    adds.Start();
    node.Send(reply);
    // Expect that it is in doubt, and that the client is of no use any more.
    while (!adds.done()) ASSERT_TRUE(opened.client->Poll());
    EXPECT_EQ(adds.TakeResult().error().code(), ErrorCode::kOutcomeUnknown);
    EXPECT_EQ(fabric::Run(*opened.client, ReadFrom(*opened.client, At(0))).error().code(),
              ErrorCode::kUnavailable);
  }
}

TEST(TcpClient, WhatANodeSaysIsEscaped) {
  // Given nodes that refuse, answer with an error, and say goodbye, with text that would clear a terminal or
  // fake a line.
  const std::string evil = "good\x1b[2J\nfarside: all is well";
  const std::string escaped = "good\\x1b[2J\\x0afarside: all is well";
  wire::Welcome refusal = Refusal(ErrorCode::kPermissionDenied);
  refusal.message_bytes = static_cast<uint32_t>(evil.size());
  FakeNode refuses({refusal}, evil);
  Options options;
  options.addresses = {refuses.address()};
  const auto refused = TcpFabric::Open(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find(escaped), std::string::npos) << refused.error().message();
  EXPECT_EQ(refused.error().message().find('\n'), std::string::npos);

  for (const wire::ReplyKind kind : {wire::ReplyKind::kError, wire::ReplyKind::kGoodbye}) {
    FakeNode node({Good(), Good()});
    const Opened opened = OpenAndConnect(node);
    Bytes reply = BytesOf(wire::ReplyHeader{.body_bytes = static_cast<uint32_t>(evil.size()),
                                            .kind = kind,
                                            .status = wire::StatusOf(ErrorCode::kUnavailable)});
    const auto text = std::as_bytes(std::span(evil));
    Append(reply, Bytes(text.begin(), text.end()));
    Task<uint64_t> reads = ReadFrom(*opened.client, At(0));
    reads.Start();
    node.Send(reply);
    // Expect that it is told as it was said, but in printable letters.
    while (!reads.done()) ASSERT_TRUE(opened.client->Poll());
    const std::string message = reads.TakeResult().error().message();
    EXPECT_NE(message.find(escaped), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(TcpClient, RepliesToNoRequestBreakTheClient) {
  // Given a node that answers twice.
  FakeNode node({Good(), Good()});
  const Opened opened = OpenAndConnect(node);
  Bytes twice = BytesOf(wire::ReplyHeader{.body_bytes = 8});
  Append(twice, BytesOf(uint64_t{5}));
  Append(twice, Bytes(twice));
  node.Send(twice);
  // Expect that the first is taken, and that the client is of no use afterwards.
  const Result<uint64_t> first = fabric::Run(*opened.client, AddTo(*opened.client, At(0), 1));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, 5u);
  EXPECT_FALSE(fabric::Run(*opened.client, ReadFrom(*opened.client, At(0))).ok());
}

Task<Done> AddToBoth(Client& client, std::optional<ErrorCode>& error) {
  Op op(client, OpKind::kUpdate);
  const auto outcome = co_await op.Together(Faa(At(0, 0), 1), Faa(At(0, 1), 1)).Outcome();
  if (!outcome.ok()) error = outcome.error().code();
  co_return Done{};
}
Task<Done> FenceAt(Client& client, NodeId node, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await op.InOrder(FenceVerb(node, victim));
  co_return Done{};
}

TEST(TcpClient, ClientFencedOnOneOfTwoNodesIsInDoubtAboutATripToBoth) {
  // Given a client of two nodes, which was fenced on the second.
  TestNode first(4096, OneThread(), {1, 1});
  TestNode second(4096, OneThread(), {2, 2});
  Options options;
  options.addresses = {first.address(), second.address()};
  const auto fabric = TestNode::Open(options);
  const auto victim = ConnectTo(*fabric);
  const auto fencer = ConnectTo(*fabric);
  ASSERT_TRUE(fabric::Run(*fencer, FenceAt(*fencer, NodeId{1}, victim->id())).ok());
  // When it changes both. Expect that it is in doubt, that only the first was changed, and that it is refused
  // then, also by the first.
  std::optional<ErrorCode> error;
  ASSERT_TRUE(fabric::Run(*victim, AddToBoth(*victim, error)).ok());
  EXPECT_EQ(error, ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(first.Word(0), 1u);
  EXPECT_EQ(second.Word(0), 0u);
  EXPECT_EQ(fabric::Run(*victim, AddTo(*victim, At(0, 0), 1)).error().code(), ErrorCode::kFenced);
  EXPECT_EQ(first.Word(0), 1u);
  EXPECT_FALSE(victim->HasUnawaited());
  EXPECT_FALSE(victim->Poll());
}

// ---- trips

TEST(TcpClient, WhatWasDetachedIsSentWithoutAPoll) {
  // Given a client that detaches a trip, and is not used any more.
  TestNode node;
  const auto fabric = node.Open();
  const auto client = ConnectTo(*fabric);
  client->set_concurrency(8);
  {
    Op op(*client, OpKind::kUpdate);
    op.Detach(Order::kInOrder, Faa(At(0), 1));
  }
  // Expect that it takes effect.
  while (node.Word(0) == 0) std::this_thread::yield();
  EXPECT_TRUE(client->HasUnawaited());
  while (client->Poll()) continue;
  EXPECT_FALSE(client->HasUnawaited());
}

Task<Done> ReadLarge(Client& client, std::span<std::byte> into) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read(At(0), into));
  co_return Done{};
}
Task<Done> WriteLarge(Client& client, std::span<const std::byte> from) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Write(At(0), from));
  co_return Done{};
}

TEST(TcpClient, LargeTripsWorkUpToTheBound) {
  // Given a region that is larger than a frame.
  TestNode node(uint64_t{128} << 20);
  const auto fabric = node.Open();
  const auto client = ConnectTo(*fabric);
  // When 64 MiB are written and read. Expect the same bytes.
  Bytes written(uint64_t{64} << 20);
  for (size_t i = 0; i < written.size(); i += 4096) written[i] = static_cast<std::byte>(i >> 12);
  ASSERT_TRUE(fabric::Run(*client, WriteLarge(*client, written)).ok());
  Bytes read(written.size());
  ASSERT_TRUE(fabric::Run(*client, ReadLarge(*client, read)).ok());
  EXPECT_TRUE(read == written);
  // When more is asked for than a frame may hold. Expect an error, and that the client goes on.
  read.resize(wire::kMaxBodyBytes + 8);
  EXPECT_EQ(fabric::Run(*client, ReadLarge(*client, read)).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(fabric::Run(*client, WriteLarge(*client, read)).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(fabric::Run(*client, AddTo(*client, At(0), 1)).ok());
}

Task<Done> MixMany(Client& client, uint64_t trips) {
  Op op(client, OpKind::kUpdate);
  const std::array<uint64_t, 16> lines{};
  for (uint64_t i = 0; i < trips; ++i) {
    co_await op.InOrder(WriteObject(At(64), lines), Faa(At(0), 1), Read<uint64_t>(At(8)));
    op.Detach(Order::kInOrder, Faa(At(16), 1));
  }
  co_return Done{};
}

TEST(TcpClient, ASteadyStateAllocatesNothing) {
  // Given a client that has made some trips, at depth 1 and at depth 8.
  TestNode node;
  const auto fabric = node.Open();
  const auto client = ConnectTo(*fabric);
  for (const size_t depth : {size_t{1}, size_t{8}}) {
    std::vector<Task<Done>> warm;
    std::vector<Task<Done>> tasks;
    for (size_t i = 0; i < depth; ++i) warm.push_back(MixMany(*client, 200));
    ASSERT_TRUE(RunAll<Done>(*client, warm).ok());
    while (client->Poll()) continue;
    for (size_t i = 0; i < depth; ++i) tasks.push_back(MixMany(*client, 200));
    // When it makes more of them. Expect that nothing is allocated.
    const uint64_t before = HeapAllocations();
    ASSERT_TRUE(RunAll<Done>(*client, tasks).ok());
    while (client->Poll()) continue;
    if (kHeapIsCounted) {
      EXPECT_EQ(HeapAllocations(), before) << "depth " << depth;
    }
  }
}

}  // namespace
}  // namespace farside::fabric::tcp
