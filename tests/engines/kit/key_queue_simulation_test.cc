// The keyed wait queue (index/kit/key_queue.h).
#include "index/kit/key_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "farside/task.h"

namespace farside::index {
namespace {

class KeyQueueTest : public testing::Test {
 protected:
  // Takes a ticket, has its turn for a while, and leaves.
  Task<Done> Visit(std::string name, uint64_t key) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    Ticket ticket(queue_, *client_, key);
    if (!ticket.is_first()) co_await ticket;
    events_.push_back(name + " begins");
    co_await op.Pause(std::chrono::microseconds(5));
    events_.push_back(name + " ends");
    co_return Done{};
  }
  void Start(std::string name, uint64_t key) {
    visits_.emplace_back(Visit(std::move(name), key));
    visits_.back()->Start();
  }
  void Finish() {
    while (fabric_.Step()) {
    }
  }

  fabric::sim::SimFabric fabric_{{.seed = 1, .region_bytes = {4096}}};
  std::unique_ptr<fabric::Client> client_ = std::move(*fabric_.Connect());
  KeyQueue queue_;
  std::vector<std::string> events_;
  std::vector<std::optional<Task<Done>>> visits_;
};

TEST_F(KeyQueueTest, TicketsOfOneKeyHaveTheirTurnsInOrder) {
  // Given three operations with the same key.
  for (const char* name : {"a", "b", "c"}) Start(name, 7);
  // When they run.
  Finish();
  // Expect that each begins when the one before it has ended.
  EXPECT_EQ(events_,
            (std::vector<std::string>{"a begins", "a ends", "b begins", "b ends", "c begins", "c ends"}));
}

TEST_F(KeyQueueTest, TicketsOfOtherKeysDoNotWait) {
  // Given operations with different keys, two of them in the same list of the queue.
  Start("a", 7);
  Start("b", 8);
  Start("c", 7 + 256);
  // When they have been started.
  // Expect that all of them have their turns.
  EXPECT_EQ(events_, (std::vector<std::string>{"a begins", "b begins", "c begins"}));
  Finish();
}

TEST_F(KeyQueueTest, WaiterIsDestroyed_TheNextOneHasItsTurn) {
  // Given three operations with the same key.
  for (const char* name : {"a", "b", "c"}) Start(name, 7);
  // When the second is destroyed while it waits.
  visits_[1].reset();
  Finish();
  // Expect that the third follows the first.
  EXPECT_EQ(events_, (std::vector<std::string>{"a begins", "a ends", "c begins", "c ends"}));
}

TEST_F(KeyQueueTest, HolderIsDestroyed_TheNextOneHasItsTurn) {
  // Given two operations with the same key.
  for (const char* name : {"a", "b"}) Start(name, 7);
  // When the first is destroyed in its turn.
  visits_[0].reset();
  Finish();
  // Expect that the second has its turn.
  EXPECT_EQ(events_, (std::vector<std::string>{"a begins", "b begins", "b ends"}));
}

TEST_F(KeyQueueTest, WaiterIsDestroyedWhenItsTurnHasJustCome) {
  // Given three operations with the same key, the first of which has ended.
  for (const char* name : {"a", "b", "c"}) Start(name, 7);
  while (events_.size() < 2) ASSERT_TRUE(fabric_.Step());
  // When the second is destroyed before it has gone on.
  visits_[1].reset();
  Finish();
  // Expect that the third has its turn.
  EXPECT_EQ(events_, (std::vector<std::string>{"a begins", "a ends", "c begins", "c ends"}));
}

}  // namespace
}  // namespace farside::index
