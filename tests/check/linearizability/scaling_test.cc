// Long histories. The cost is asserted in steps of the checker, never in time.
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "check/history.h"
#include "check/linearizability.h"

namespace farside::check {
namespace {

constexpr int kClients = 8;
constexpr size_t kOperations = 100'000;

// Clients that always have an operation in flight on the same key. Each operation happens right before some
// event while it is in flight.
class BusyKey {
 public:
  BusyKey(uint64_t seed, int gets_percent, size_t lost_every)
      : random_(seed), gets_percent_(gets_percent), lost_every_(lost_every) {
    for (int client = 0; client < kClients; ++client) Invoke(client);
  }

  const History& Run() {
    while (history_.operations().size() < kOperations) {
      const int client = static_cast<int>(Below(kClients));
      InFlight& op = in_flight_[client];
      if (lost_every_ > 0 && ++turns_ % lost_every_ == 0) {
        history_.LoseAnswer(op.id);  // whether it happened or not
        Invoke(client);
      } else if (!op.outcome) {
        Happen(op);
      } else {
        history_.Return(op.id, *op.outcome);
        Invoke(client);
      }
    }
    return history_;
  }

 private:
  struct InFlight {
    OpId id;
    std::optional<Outcome> outcome;
  };

  size_t Below(size_t n) { return random_() % n; }

  void Invoke(int client) {
    const std::string value = "v" + std::to_string(++values_);
    const std::string expected = value_.value_or("");
    Call call = Call::Get("k");
    if (static_cast<int>(Below(100)) >= gets_percent_) {
      switch (Below(4)) {
        case 0: call = Call::Delete("k"); break;
        case 1: call = Call::CompareAndSet("k", expected, value); break;
        default: call = Call::Put("k", value); break;
      }
    }
    in_flight_[client] = {.id = history_.Invoke(client, call), .outcome = std::nullopt};
  }

  void Happen(InFlight& op) {
    const Operation& operation = history_[op.id];
    switch (operation.kind) {
      case Kind::kGet: op.outcome = Found{value_}; break;
      case Kind::kDelete:
        op.outcome = Applied{value_.has_value()};
        value_.reset();
        break;
      case Kind::kCompareAndSet: {
        const bool applies = value_ == operation.expected;
        if (applies) value_ = operation.value;
        op.outcome = Applied{applies};
        break;
      }
      default:
        op.outcome = Stored{};
        value_ = operation.value;
        break;
    }
  }

  std::mt19937_64 random_;
  int gets_percent_;
  size_t lost_every_;
  History history_;
  std::map<int, InFlight> in_flight_;
  std::optional<std::string> value_;
  size_t values_ = 0;
  size_t turns_ = 0;
};

TEST(Scaling, EightBusyClients_CostIsLinear) {
  // Given: 100,000 operations of 8 clients on one key, half of them Gets.
  // When: the history is checked.
  // Expect: linearizable, in a few steps for each operation.
  BusyKey key(1, 50, 0);
  const Verdict verdict = CheckLinearizable(key.Run());
  EXPECT_TRUE(verdict.ok()) << ToString(verdict);
  EXPECT_LT(verdict.steps, 100 * kOperations);
}

TEST(Scaling, EightWritersAndHardlyAReader_CostIsLinear) {
  // Given: the same with 2 % Gets, so that little is known about the order of the writes.
  // When: the history is checked.
  // Expect: linearizable, in some steps for each operation: not in 2^8.
  BusyKey key(2, 2, 0);
  const Verdict verdict = CheckLinearizable(key.Run());
  EXPECT_TRUE(verdict.ok()) << ToString(verdict);
  EXPECT_LT(verdict.steps, 500 * kOperations);
}

TEST(Scaling, LostAnswersPileUp_CostStaysLinear) {
  // Given: the same with few Gets and more than 600 lost answers, each of which may matter at any time.
  // When: the history is checked.
  // Expect: linearizable, in some steps for each operation.
  BusyKey key(3, 20, 300);
  const Verdict verdict = CheckLinearizable(key.Run());
  EXPECT_TRUE(verdict.ok()) << ToString(verdict);
  EXPECT_LT(verdict.steps, 500 * kOperations);
}

TEST(Scaling, ViolationAtTheEnd_IsFound) {
  // Given: 100,000 good operations.
  // When: one more Get finds a value that was replaced long ago.
  // Expect: a violation at its event.
  BusyKey key(4, 50, 0);
  History history = key.Run();
  std::string old;
  for (const Operation& operation : history.operations()) {
    if (operation.kind == Kind::kPut && operation.answered()) old = operation.value;
    if (operation.invoked > 1000 && !old.empty()) break;
  }
  history.Return(history.Invoke(9, Call::Get("k")), Found{old});
  const Verdict verdict = CheckLinearizable(history);
  EXPECT_EQ(verdict.answer, Answer::kNotLinearizable);
  EXPECT_EQ(verdict.event, history.events() - 1);
}

TEST(Scaling, ManyPendingOperations_AreNotTriedInAllOrders) {
  // Given: 200 Puts in flight at once, each value read once while they are.
  // When: the history is checked.
  // Expect: linearizable, with no more effort than the cube of their number.
  constexpr uint32_t kPuts = 200;
  History history;
  for (uint32_t i = 0; i < kPuts; ++i) history.Invoke(static_cast<int>(i), Call::Put("k", std::to_string(i)));
  for (uint32_t i = 0; i < kPuts; ++i) {
    history.Return(history.Invoke(1000, Call::Get("k")), Found{std::to_string(i)});
  }
  for (uint32_t i = 0; i < kPuts; ++i) history.Return(OpId{i}, Stored{});
  const Verdict verdict = CheckLinearizable(history);
  EXPECT_TRUE(verdict.ok()) << ToString(verdict);
  EXPECT_LT(verdict.steps, kPuts * kPuts * kPuts);
}

}  // namespace
}  // namespace farside::check
