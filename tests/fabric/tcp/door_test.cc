// The thread at the door has the strangers, and others serve the clients that it has let in: they do not wait
// for each other, and a connection goes from one to the other with all that has come of it.
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/tcp/mailbox.h"
#include "fabric/tcp/tls.h"
#include "tests/fabric/tcp/world.h"
#include "tests/support/certificates.h"

namespace farside::fabric::tcp {
namespace {

constexpr uint64_t kRegion = 4096;
// Of an FAA, or of a READ of a word.
constexpr size_t kReplyBytes = sizeof(wire::ReplyHeader) + sizeof(uint64_t);

Bytes AddFrame() { return FrameOf({Faa(At(0), 1).Lower()}); }

// ---- at the same time

TEST(TcpDoor, WhileAStrangerIsSeenOff_ClientsAreServed) {
  // Given a client, and a stranger that is refused by a thread which gets no further.
  TestNode node;
  RawPeer client(node.port());
  ASSERT_EQ(client.Greet(HelloAs(5)).welcome.status, 0);
  node.log().HoldUp("it is no client of Farside");
  RawPeer stranger(node.port());
  stranger.Send(std::string(8, 'x'));
  node.log().Await("it is no client of Farside");
  // When the client asks for something. Expect that it is answered.
  client.Send(AddFrame());
  EXPECT_EQ(client.Receive(kReplyBytes).size(), kReplyBytes);
  node.log().LetGo();
  EXPECT_TRUE(stranger.NodeHungUp());
}

TEST(TcpDoor, WhileAClientIsServed_StrangersAreSeenOff_AndNewClientsWait) {
  // Given a client whose request takes until it is told to end.
  std::promise<void> begun;
  std::promise<void> end;
  std::atomic<int> frames = 0;
  ServerOptions options = OneThread();
  options.loses_answer = [&](std::span<const Verb>) {
    if (frames++ != 0) return false;
    begun.set_value();
    end.get_future().wait();
    return false;
  };
  TestNode node(kRegion, options);
  RawPeer busy(node.port());
  ASSERT_EQ(busy.Greet(HelloAs(5)).welcome.status, 0);
  busy.Send(AddFrame());
  begun.get_future().wait();
  // When a stranger and a new client come. Expect that the stranger is seen off, and that the client comes in
  // when the thread that serves clients has time for it.
  RawPeer newcomer(node.port());
  newcomer.Send(BytesOf(HelloAs(6)));
  RawPeer stranger(node.port());
  stranger.Send(std::string(8, 'x'));
  EXPECT_TRUE(stranger.NodeHungUp());
  EXPECT_EQ(node.node().clients(), 1u);
  end.set_value();
  const Bytes welcome = newcomer.Receive(sizeof(wire::Welcome));
  ASSERT_EQ(welcome.size(), sizeof(wire::Welcome));
  EXPECT_EQ(wire::Load<wire::Welcome>(welcome.data()).status, 0);
}

// The niceness of each thread of this process.
std::vector<int> NicenessOfThreads() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = entry.path().filename();
    id_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    all.push_back(::getpriority(PRIO_PROCESS, thread));
  }
  return all;
}

TEST(TcpDoor, ItsThreadGivesWayToThoseThatServeClients) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  if (own >= 19) GTEST_SKIP() << "there is no lower priority";
  // Given a node, one of whose threads has seen off a stranger.
  TestNode node;
  RawPeer stranger(node.port());
  stranger.Send(std::string(8, 'x'));
  ASSERT_TRUE(stranger.NodeHungUp());
  // Expect one thread of lower priority, and no complaint.
  const std::vector<int> niceness = NicenessOfThreads();
  EXPECT_EQ(std::count_if(niceness.begin(), niceness.end(), [&](int each) { return each > own; }), 1);
  EXPECT_EQ(node.log().Count("setpriority"), 0u);
}

// ---- from one thread to the other

TEST(TcpDoor, WhatComesWithAHelloInOnePiece_IsAnswered) {
  // Given a client that does not wait for its Welcome. Expect that it gets that, and an answer to each frame.
  TestNode node;
  RawPeer peer(node.port());
  Bytes all = BytesOf(HelloAs(5));
  for (int i = 0; i < 3; ++i) Append(all, AddFrame());
  peer.Send(all);
  constexpr size_t kExpected = sizeof(wire::Welcome) + 3 * kReplyBytes;
  EXPECT_EQ(peer.Receive(kExpected).size(), kExpected);
  EXPECT_EQ(node.Word(0), 3u);
}

// One record of TLS: the library has read all of it when the thread at the door has the Hello.
TEST(TcpDoor, WhatComesWithAHelloInOneRecordOfTls_IsAnswered) {
  // Given a client that does not wait for its Welcome. Expect that it gets that, and an answer to each frame.
  Certificates authority;
  ServerOptions options = OneThread();
  options.tls = authority.Server();
  TestNode node(kRegion, options);
  RawPeer peer(node.port());
  const auto context = TlsContext::ForClient(authority.Client());
  ASSERT_TRUE(context.ok());
  const SslPtr tls = context->Dial(peer.fd(), "127.0.0.1");
  ASSERT_EQ(SSL_do_handshake(tls.get()), 1);
  Bytes all = BytesOf(HelloAs(5));
  for (int i = 0; i < 3; ++i) Append(all, AddFrame());
  ASSERT_EQ(SSL_write(tls.get(), all.data(), static_cast<int>(all.size())), static_cast<int>(all.size()));
  constexpr size_t kExpected = sizeof(wire::Welcome) + 3 * kReplyBytes;
  std::array<std::byte, kExpected> answers{};
  size_t have = 0;
  while (have < kExpected) {
    const int read = SSL_read(tls.get(), answers.data() + have, static_cast<int>(kExpected - have));
    ASSERT_GT(read, 0);
    have += static_cast<size_t>(read);
  }
  EXPECT_EQ(node.Word(0), 3u);
}

TEST(TcpDoor, AClientThatWasSentAwayIsAStrangerAgain) {
  // Given a node with room for one stranger, and a client.
  ServerOptions options = OneThread();
  options.max_strangers = 1;
  options.greeting_timeout = std::chrono::hours(1);
  TestNode node(kRegion, options);
  RawPeer client(node.port());
  ASSERT_EQ(client.Greet(HelloAs(5)).welcome.status, 0);
  EXPECT_EQ(node.server().strangers(), 0u);
  // When it is fenced, and does not hang up. Expect that it is told, and counts as a stranger.
  node.node().Fence(ClientId{5}, {}, [] {});
  const Bytes head = client.Receive(sizeof(wire::ReplyHeader));
  ASSERT_EQ(head.size(), sizeof(wire::ReplyHeader));
  EXPECT_EQ(wire::Load<wire::ReplyHeader>(head.data()).kind, wire::ReplyKind::kGoodbye);
  while (node.server().strangers() != 1) std::this_thread::yield();
  EXPECT_EQ(node.node().clients(), 0u);
  // When another client comes. Expect that it makes room, and does not wait for its time to leave.
  RawPeer newcomer(node.port());
  EXPECT_EQ(newcomer.Greet(HelloAs(6)).welcome.status, 0);
  while (node.server().connections() != 1) std::this_thread::yield();
}

// Connects, says Hello and asks for something, as often as it can, and leaves in one of three ways.
void ComeAndGo(uint16_t port, uint32_t first_id, const std::atomic<bool>& stopped) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<Descriptor> open;
  for (uint32_t id = first_id; !stopped; ++id) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) continue;
    Bytes hello = BytesOf(HelloAs(id));
    Append(hello, AddFrame());
    const size_t part = id % 3 == 0 ? hello.size() - 4 : hello.size();
    if (send(socket.get(), hello.data(), part, MSG_NOSIGNAL) < 0) continue;
    std::byte first{};
    if (id % 3 == 1) static_cast<void>(recv(socket.get(), &first, 1, 0));
    if (id % 2 == 0) open.push_back(std::move(socket));
    if (open.size() > 20) open.clear();
  }
}

TEST(TcpDoor, ANodeThatStopsWhileClientsComeIn_LeavesNothing) {
  for (int round = 0; round < 20; ++round) {
    // Given a node to which clients come and from which they go, without a pause.
    ServerOptions options = OneThread();
    options.threads = 2;
    TestNode node(kRegion, options, {1, 2}, LogLevel::kError);
    std::atomic<bool> stopped = false;
    std::vector<std::jthread> peers;
    for (uint32_t peer = 0; peer < 2; ++peer)
      peers.emplace_back(ComeAndGo, node.port(), 1 + peer * 1'000'000, std::cref(stopped));
    while (node.Word(0) < 10) std::this_thread::yield();
    // When it stops. Expect that no connection is left, wherever it was on its way.
    node.server().Stop();
    stopped = true;
    EXPECT_EQ(node.server().connections(), 0u);
    EXPECT_EQ(node.server().strangers(), 0u);
    EXPECT_EQ(node.server().buffered(), 0u);
    EXPECT_EQ(node.node().clients(), 0u);
  }
}

// ---- letters

TEST(TcpMailbox, EveryLetterIsRungFor) {
  // Given threads that write letters, and one that sleeps until the bell rings. Expect that it gets them all.
  constexpr size_t kWriters = 3;
  constexpr size_t kLetters = 20'000;  // of each
  Mailbox mailbox;
  std::vector<std::jthread> writers;
  for (size_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&mailbox] {
      for (size_t i = 0; i < kLetters; ++i) EXPECT_TRUE(mailbox.Send({LetterKind::kFenceDone, nullptr}));
    });
  }
  std::vector<Letter> letters;
  for (size_t taken = 0; taken < kWriters * kLetters; taken += letters.size()) {
    pollfd bell{.fd = mailbox.bell(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&bell, 1, 60'000), 1) << "it sleeps although there are letters";
    mailbox.TakeAll(letters);
  }
  // Expect that the bell falls silent, and that nothing comes after the end.
  writers.clear();
  mailbox.TakeAll(letters);
  EXPECT_TRUE(letters.empty());
  pollfd bell{.fd = mailbox.bell(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&bell, 1, 0), 0);
  EXPECT_TRUE(mailbox.Close().empty());
  EXPECT_FALSE(mailbox.Send({LetterKind::kFenceDone, nullptr}));
}

}  // namespace
}  // namespace farside::fabric::tcp
