// Membership of a node that knows its connections: which clients have died, and which have only left.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "fabric/run.h"
#include "pool/members/membership.h"
#include "tests/fabric/tcp/world.h"

namespace farside::pool {
namespace {

using fabric::ClientId;
using fabric::Op;
using fabric::OpKind;
using fabric::Verb;
using fabric::tcp::TestNode;

const Geometry kGeometry{
    .region_bytes = 256 * 1024, .client_slots = 8, .table_slots = 16, .chunk_bytes = 16 * 1024};
constexpr uint32_t kSlot = 5;

// A node with a client in a slot that is not connected, and a member that looks around.
class ServedMembership : public testing::Test {
 protected:
  void Join(const fabric::tcp::ServerOptions& options) {
    node_ = std::make_unique<TestNode>(kGeometry.region_bytes, options);
    ChangeSlot(0, there_.word());
    fabric_ = node_->Open();
    client_ = fabric::tcp::ConnectTo(*fabric_);
    member_ = std::make_unique<Membership>(*client_, fabric::NodeId{0}, kGeometry, LeaseOptions{});
    Op op(*client_, OpKind::kMaintenance);
    ASSERT_TRUE(fabric::Run(*client_, member_->Join(op)).ok());
  }
  // As a client does it; from any thread.
  void ChangeSlot(uint64_t from, uint64_t to) {
    Verb cas =
        fabric::Cas(fabric::FarAddr(fabric::NodeId{0}, kGeometry.client_slot(kSlot)), from, to).Lower();
    node_->node().memory().Execute(cas);
    EXPECT_EQ(cas.old, from);
  }
  RegistryView LookAround() {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_->LookAround(op)).value();
  }
  uint64_t deaths() { return node_->Word(kDeathsOffset); }

  const ClientWord there_{ClientState::kLive, 3, static_cast<ClientId>(777)};
  const ClientWord left_{ClientState::kFree, 3, ClientId::kNone};
  std::unique_ptr<TestNode> node_;
  std::unique_ptr<fabric::tcp::TcpFabric> fabric_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<Membership> member_;
};

TEST_F(ServedMembership, NotConnectedAndStillInItsSlot_HasDied) {
  Join(fabric::tcp::OneThread());
  EXPECT_EQ(LookAround().fenced.size(), 1u);
  EXPECT_EQ(deaths(), 1u);
}

TEST_F(ServedMembership, LeavesWhileAnotherLooks_IsNotCountedAsADeath) {
  // Given a client that leaves in good order, and hangs up, right after another has read the registry.
  fabric::tcp::ServerOptions options = fabric::tcp::OneThread();
  std::atomic<bool> looks{false};
  std::atomic<bool> has_left{false};
  options.loses_answer = [&](std::span<const Verb> verbs) {
    const bool registry_was_read = verbs[0].kind == fabric::VerbKind::kRead &&
                                   verbs[0].size == kGeometry.client_slots * sizeof(ClientSlot);
    if (looks && registry_was_read && !has_left) {
      ChangeSlot(there_.word(), left_.word());
      has_left = true;
    }
    return false;
  };
  Join(options);
  // When the other asks the node which clients are gone. Expect that no client has died, so that no client
  // has to sweep.
  looks = true;
  EXPECT_TRUE(LookAround().fenced.empty());
  EXPECT_TRUE(has_left);
  EXPECT_EQ(deaths(), 0u);
  EXPECT_EQ(node_->Word(kGeometry.client_slot(kSlot)), left_.word());
}

}  // namespace
}  // namespace farside::pool
