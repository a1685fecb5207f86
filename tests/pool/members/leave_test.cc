// Leaving a pool in which another client holds the epoch back.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "tests/pool/manual_client.h"

namespace farside::pool {
namespace {

TEST(PoolLeave, AnotherBeatsAndNeverMovesOn_TheLeaverGivesUpInTime) {
  // Given a client that owns memory, a death after which it has to sweep, and a reader that goes on beating,
  // with an epoch that is older than all
  // When the client leaves
  // Expect kContended after some dozens of leases: it does not begin one sweep after the other
  PoolRun run(PoolCalm());
  ManualClient leaves(run);
  ManualClient reader(run);
  ASSERT_TRUE(leaves.Join().ok());
  ASSERT_TRUE(reader.Join().ok());
  ASSERT_TRUE(leaves.Publish(0).ok());
  const auto at = [&run](uint64_t offset) { return run.world().memory(ManualClient::kNode).data() + offset; };
  std::byte* const pulse = at(run.geometry().client_slot(reader.self().slot()) + kPulseOffset);
  StoreU64(at(kDeathsOffset), LoadU64(at(kDeathsOffset)) + 1);

  constexpr Nanos kLong = 200 * kTestLease;
  fabric::Op op(leaves.client(), fabric::OpKind::kMaintenance);
  Task<Done> leave = leaves.pool().Leave(op);
  leave.Start();
  const Nanos begun = run.world().Now();
  uint64_t beats = 0;
  while (!leave.done() && run.world().Now() - begun < kLong && run.world().Step()) {
    StoreU64(pulse + offsetof(Pulse, epoch), 0);
    StoreU64(pulse + offsetof(Pulse, heartbeat), ++beats);
  }
  ASSERT_TRUE(leave.done());
  const Result<Done> left = leave.TakeResult();
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().code(), ErrorCode::kContended);
}

}  // namespace
}  // namespace farside::pool
