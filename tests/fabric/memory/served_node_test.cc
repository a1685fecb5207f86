// Fences of a node, and how long its threads wait for lines.
#include "fabric/memory/served_node.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "fabric/memory/region.h"

namespace farside::fabric::memory {
namespace {

class Victim final : public ServedClient {
 public:
  void CutOff() override { cut_off = true; }
  bool IsStill() override { return still; }

  std::atomic<bool> cut_off = false;
  std::atomic<bool> still = false;
};

class ServedNodeTest : public testing::Test {
 protected:
  Region region_ = *Region::Anonymous(4096);
  std::unique_ptr<StripeTable> stripes_ = std::make_unique<StripeTable>();
  ManualClock clock_;
  ServedNode node_{region_.bytes(), *stripes_, {1, 2}, &clock_};
};

TEST_F(ServedNodeTest, AnAskerThatIsGone_IsForgottenBeforeItsVictimIsStill) {
  // Given a victim whose process is stopped, and two clients that have asked for its fence
  const auto victim = std::make_shared<Victim>();
  ASSERT_TRUE(node_.Admit(ClientId{7}, victim).ok());
  const auto stays = std::make_shared<int>();
  auto leaves = std::make_shared<int>();
  std::atomic<int> told = 0;
  node_.Fence(ClientId{7}, stays, [&told] { told += 1; });
  auto kept = std::make_shared<int>();
  const std::weak_ptr<int> remembered = kept;
  node_.Fence(ClientId{7}, leaves, [&told, kept = std::move(kept)] { told += 100; });
  ASSERT_TRUE(victim->cut_off);
  ASSERT_FALSE(remembered.expired());
  // When one of them leaves
  leaves.reset();
  // Expect that the node keeps nothing of it, although the victim is not still
  while (!remembered.expired()) std::this_thread::yield();
  // Expect that the other one is told when the victim is
  victim->still = true;
  while (told == 0) std::this_thread::yield();
  EXPECT_EQ(told, 1);
  node_.Depart(ClientId{7});
}

TEST_F(ServedNodeTest, ManyLinesThatAreHeldForAWhile_AreWaitedForNoLongerThanOne) {
  // Given a thread of the node that waits for one line after the other, each held for three quarters of what
  // it may wait
  std::atomic<bool> ended = false;
  StuckLines stuck(*stripes_);
  LinePatience patience(clock_, ended, stuck);
  const Sequence& sequence = stripes_->sequences[0];
  const auto wait_for_a_line = [&] {
    std::optional<Nanos> since;
    const bool goes_on = patience.MayBeFinished(sequence, since);
    clock_.Advance(LinePatience::kLongest * 3 / 4);
    return goes_on && patience.MayBeFinished(sequence, since);
  };
  // When they belong to one piece of work. Expect that it is given up, and stays given up
  EXPECT_TRUE(wait_for_a_line());
  EXPECT_FALSE(wait_for_a_line());
  EXPECT_FALSE(wait_for_a_line());
  EXPECT_TRUE(patience.gave_up());
  // When another one begins. Expect that time between its waits does not count
  patience.Restart();
  EXPECT_FALSE(patience.gave_up());
  EXPECT_TRUE(wait_for_a_line());
  clock_.Advance(10 * LinePatience::kLongest);
  std::optional<Nanos> since;
  EXPECT_TRUE(patience.MayBeFinished(sequence, since));
  // When the node stops. Expect that nothing is waited for
  ended = true;
  EXPECT_FALSE(patience.MayBeFinished(sequence, since));
}

// A wait for a line in which time passes, and whether it was worth it.
bool IsWaitedFor(const Sequence& sequence, LinePatience& patience, ManualClock& clock) {
  patience.Restart();
  std::optional<Nanos> since;
  const bool waits = patience.MayBeFinished(sequence, since);
  clock.Advance(LinePatience::kLongest);
  EXPECT_FALSE(patience.MayBeFinished(sequence, since));
  return waits;
}

TEST_F(ServedNodeTest, AHolderThatDoesNotGoOn_IsWaitedForOnce) {
  // Given a client that does not go on with three lines, and another client that has a line
  const std::atomic<bool> ended = false;
  StuckLines stuck(*stripes_);
  LinePatience patience(clock_, ended, stuck);
  LinePatience of_another_thread(clock_, ended, stuck);
  auto& sequences = stripes_->sequences;
  for (const uint64_t stripe : {1, 2, 4000}) sequences[stripe] = 3 * kOneChange + 7;
  sequences[5] = 3 * kOneChange + 8;
  // When a thread has waited for one of them as long as it does. Expect that no thread waits for them again
  EXPECT_TRUE(IsWaitedFor(sequences[2], patience, clock_));
  for (const uint64_t stripe : {1, 2, 4000}) {
    EXPECT_FALSE(IsWaitedFor(sequences[stripe], patience, clock_));
    EXPECT_FALSE(IsWaitedFor(sequences[stripe], of_another_thread, clock_));
  }
  // Expect that the line of the other client is waited for, and one that was freed and taken again
  EXPECT_TRUE(IsWaitedFor(sequences[5], patience, clock_));
  sequences[1] = 4 * kOneChange + 7;
  EXPECT_TRUE(IsWaitedFor(sequences[1], patience, clock_));
  // When the client puts the value of one back, and takes it again at that value. Expect that it is waited
  // for
  sequences[4000] = 3 * kOneChange;
  stuck.Forget();
  sequences[4000] = 3 * kOneChange + 7;
  EXPECT_TRUE(IsWaitedFor(sequences[4000], patience, clock_));
  EXPECT_FALSE(IsWaitedFor(sequences[2], patience, clock_));
}

TEST_F(ServedNodeTest, AThreadOfTheNode_WaitsOnceForALineThatIsStuck) {
  // Given a line that a client holds, and a thread of the node that has given up on it
  stripes_->sequences[3] = 7;
  const std::unique_ptr<ThreadMemory> memory = node_.NewThreadMemory();
  std::atomic<bool> ended = false;
  std::jthread thread([&] {
    static_cast<void>(memory->Begin().Load(3 * kLineBytes));
    ended = true;
  });
  while (!ended) {
    clock_.Advance(std::chrono::milliseconds(10));
    std::this_thread::yield();
  }
  EXPECT_TRUE(memory->gave_up());
  // When it comes again, and another one, and a handler, and time stands still. Expect that they give up
  static_cast<void>(memory->Begin().Load(3 * kLineBytes));
  EXPECT_TRUE(memory->gave_up());
  const std::unique_ptr<ThreadMemory> other = node_.NewThreadMemory();
  other->Begin().Store(3 * kLineBytes, 1);
  EXPECT_TRUE(other->gave_up());
  node_.calls().Set(CallId(1, 1), [](NodeMemory& lines, ClientId, std::string_view) {
    return Result<std::string>(std::to_string(lines.Load(3 * kLineBytes)));
  });
  EXPECT_EQ(node_.Call(CallId(1, 1), ClientId{7}, "").error().code(), ErrorCode::kOutcomeUnknown);
  // When the client goes on. Expect that the line can be used
  stripes_->sequences[3] = 0;
  other->Begin().Store(3 * kLineBytes, 1);
  EXPECT_FALSE(other->gave_up());
  EXPECT_EQ(memory->Begin().Load(3 * kLineBytes), 1u);
}

TEST_F(ServedNodeTest, WhatNoThreadHolds_IsFreed) {
  // Given lines that are held in the name of the node, of a client, and of no client
  stripes_->sequences[1] = kTheNode;
  stripes_->sequences[2] = 7;
  stripes_->sequences[3] = 8;
  // Expect that the one of the client is not free, and the others are
  std::vector<bool> clients(8);
  clients[7] = true;
  EXPECT_EQ(node_.FreeStrays(clients), 2u);
  EXPECT_EQ(stripes_->sequences[1], kOneChange);
  EXPECT_EQ(stripes_->sequences[2], 7u);
  EXPECT_EQ(stripes_->sequences[3], kOneChange);
}

}  // namespace
}  // namespace farside::fabric::memory
