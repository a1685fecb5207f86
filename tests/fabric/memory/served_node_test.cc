// Fences of a node, and how long its threads wait for lines.
#include "fabric/memory/served_node.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

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
  LinePatience patience(clock_, ended);
  const auto wait_for_a_line = [&] {
    std::optional<Nanos> since;
    const bool goes_on = patience.MayBeFinished(since);
    clock_.Advance(LinePatience::kLongest * 3 / 4);
    return goes_on && patience.MayBeFinished(since);
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
  EXPECT_TRUE(patience.MayBeFinished(since));
  // When the node stops. Expect that nothing is waited for
  ended = true;
  EXPECT_FALSE(patience.MayBeFinished(since));
}

}  // namespace
}  // namespace farside::fabric::memory
