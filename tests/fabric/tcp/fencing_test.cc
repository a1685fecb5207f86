// Fences over tcp that take their time, and clients that are fenced in the middle of something.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/tcp/world.h"

namespace farside::fabric::tcp {
namespace {

// A client that came by another transport, and is not still until it is told to be.
class StubbornClient final : public memory::ServedClient {
 public:
  void CutOff() override { cut_off_ = true; }
  bool IsStill() override { return still_; }

  bool cut_off() const { return cut_off_; }
  void BeStill() { still_ = true; }

 private:
  std::atomic<bool> cut_off_{false};
  std::atomic<bool> still_{false};
};

constexpr ClientId kStubborn{0x5706b};

Task<Done> AddFenceAdd(Client& client, ClientId victim, std::optional<ErrorCode>& error,
                       std::optional<ErrorCode>& later) {
  Op op(client, OpKind::kMaintenance);
  const auto outcome =
      co_await op
          .InOrder(Faa(At(0), 1), FenceVerb(NodeId{0}, victim), Fenced(Faa(At(8), 1)), Read<uint64_t>(At(0)))
          .Outcome();
  if (outcome.ok()) {
    EXPECT_EQ(std::get<0>(*outcome), 0u);
    EXPECT_EQ(std::get<2>(*outcome), 0u);
    EXPECT_EQ(std::get<3>(*outcome), 1u);
  } else {
    error = outcome.error().code();
  }
  const auto next = co_await op.InOrder(Read<uint64_t>(At(0))).Outcome();
  if (!next.ok()) later = next.error().code();
  co_return Done{};
}

Task<Done> Fence(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  co_return Done{};
}

TEST(TcpFencing, AFenceThatTakesItsTimeHoldsUpItsConnectionOnly) {
  // Given a victim that is not still yet, and a trip with a fence of it in the middle.
  TestNode node;
  const auto stubborn = std::make_shared<StubbornClient>();
  ASSERT_TRUE(node.node().Admit(kStubborn, stubborn).ok());
  const auto fabric = node.Open();
  const auto client = ConnectTo(*fabric);
  Bystander bystander(node);
  std::optional<ErrorCode> error;
  std::optional<ErrorCode> later;
  Task<Done> task = AddFenceAdd(*client, kStubborn, error, later);
  task.Start();
  while (!stubborn->cut_off()) client->Poll();
  // Expect that others are served meanwhile, and that what follows the fence has not happened.
  for (int i = 0; i < 10; ++i) bystander.ExpectServed();
  EXPECT_EQ(node.Word(0), 1u);
  EXPECT_EQ(node.Word(8), 0u);
  EXPECT_FALSE(task.done());
  // When the victim is still. Expect that the trip goes on.
  stubborn->BeStill();
  while (!task.done()) ASSERT_TRUE(client->Poll());
  EXPECT_EQ(error, std::nullopt);
  EXPECT_EQ(later, std::nullopt);
  EXPECT_EQ(node.Word(8), 1u);
  node.node().Depart(kStubborn);
}

TEST(TcpFencing, ClientFencedInTheMiddleOfATripIsInDoubt) {
  // Given a client whose trip has changed something and waits for a fence.
  TestNode node;
  const auto stubborn = std::make_shared<StubbornClient>();
  ASSERT_TRUE(node.node().Admit(kStubborn, stubborn).ok());
  const auto fabric = node.Open();
  const auto client = ConnectTo(*fabric);
  Bystander bystander(node);
  std::optional<ErrorCode> error;
  std::optional<ErrorCode> later;
  Task<Done> task = AddFenceAdd(*client, kStubborn, error, later);
  task.Start();
  while (!stubborn->cut_off()) client->Poll();
  // When it is fenced itself. Expect that this does not wait for its own fence.
  ASSERT_TRUE(fabric::Run(bystander.client(), Fence(bystander.client(), client->id())).ok());
  stubborn->BeStill();
  // Expect that the rest of its trip does not happen, that it is in doubt, and that it then knows that it was
  // fenced.
  while (!task.done()) ASSERT_TRUE(client->Poll());
  EXPECT_EQ(error, ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(later, ErrorCode::kFenced);
  EXPECT_EQ(node.Word(0), 1u);
  EXPECT_EQ(node.Word(8), 0u);
  node.node().Depart(kStubborn);
  EXPECT_EQ(node.log().Count("was fenced"), 1u);
}

TEST(TcpFencing, ClientThatFencesItselfIsAnsweredFirst) {
  // Given a client that fences itself.
  TestNode node;
  const auto fabric = node.Open();
  const auto client = ConnectTo(*fabric);
  // Expect that the fence succeeds, and that it is then refused.
  EXPECT_TRUE(fabric::Run(*client, Fence(*client, client->id())).ok());
  const Result<uint64_t> refused = fabric::Run(*client, AddTo(*client, At(0), 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kFenced);
  EXPECT_EQ(node.Word(0), 0u);
}

TEST(TcpFencing, ClientThatDiesWhileItsFenceWaitsIsForgotten) {
  // Given a peer whose frame waits for a fence, and that resets its connection.
  TestNode node;
  const auto stubborn = std::make_shared<StubbornClient>();
  ASSERT_TRUE(node.node().Admit(kStubborn, stubborn).ok());
  {
    RawPeer peer(node.port());
    ASSERT_EQ(peer.Greet(HelloAs(5)).welcome.status, 0);
    peer.Send(FrameOf({FenceVerb(NodeId{0}, kStubborn).Lower()}));
    while (!stubborn->cut_off()) std::this_thread::yield();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(peer.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  // Expect that the node forgets it, though the fence is not done, and that others go on when it is.
  node.log().Await("client 5 at");
  stubborn->BeStill();
  Bystander bystander(node);
  bystander.ExpectServed();
  node.node().Depart(kStubborn);
}

TEST(TcpFencing, AServerMayStopWhileAFenceWaits) {
  // Given a trip that waits for a fence.
  auto node = std::make_unique<TestNode>();
  const auto stubborn = std::make_shared<StubbornClient>();
  ASSERT_TRUE(node->node().Admit(kStubborn, stubborn).ok());
  const auto fabric = node->Open();
  const auto client = ConnectTo(*fabric);
  std::optional<ErrorCode> error;
  std::optional<ErrorCode> later;
  Task<Done> task = AddFenceAdd(*client, kStubborn, error, later);
  task.Start();
  while (!stubborn->cut_off()) client->Poll();
  // When the server stops, and the victim is still only then.
  node->server().Stop();
  // Expect that the client is in doubt about what it had done, and that nothing is left of it.
  while (!task.done()) ASSERT_TRUE(client->Poll());
  EXPECT_EQ(error, ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(later, ErrorCode::kUnavailable);
  EXPECT_EQ(node->node().clients(), 1u);
  stubborn->BeStill();
  node->node().Depart(kStubborn);
  node.reset();
}

}  // namespace
}  // namespace farside::fabric::tcp
