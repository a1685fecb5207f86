// The checker and the shrinker against an independent judge: all orders of a small history, tried one by
// one on a std::map. Random histories, fixed seeds.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "check/history.h"
#include "check/linearizability.h"
#include "check/shrink.h"
#include "check/specification.h"

namespace farside::check {
namespace {

using Table = std::map<std::string, std::string, std::less<>>;

std::string Counter(uint64_t n) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(n >> (8 * i));
  return bytes;
}

uint64_t ToNumber(const std::string& bytes) {
  uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  return n;
}

// Executes an operation on a table used by no other client. Nothing if it is an error: an increment of
// something that is not a counter.
std::optional<Outcome> Execute(const Operation& op, Table& table) {
  const auto at = table.find(op.key);
  const bool present = at != table.end();
  switch (op.kind) {
    case Kind::kGet: return Found{present ? std::optional(at->second) : std::nullopt};
    case Kind::kPut: table[op.key] = op.value; return Stored{!present};
    case Kind::kInsert:
      if (!present) table[op.key] = op.value;
      return Applied{!present};
    case Kind::kUpdate:
      if (present) at->second = op.value;
      return Applied{present};
    case Kind::kDelete:
      if (present) table.erase(at);
      return Applied{present};
    case Kind::kCompareAndSet: {
      const bool applies = present && at->second == op.expected;
      if (applies) at->second = op.value;
      return Applied{applies};
    }
    case Kind::kIncrement: {
      if (present && at->second.size() != 8) return std::nullopt;
      const uint64_t sum = (present ? ToNumber(at->second) : 0) + op.delta;
      table[op.key] = Counter(sum);
      return Counted{sum};
    }
    case Kind::kScan:
    case Kind::kLast:
    case Kind::kSeen: break;
  }
  return std::nullopt;
}

bool Agree(const Outcome& told, const Outcome& real) {
  const auto* stored = std::get_if<Stored>(&told);
  return told == real || (stored != nullptr && !stored->inserted);
}

// Whether the operations not in `done` can be put in an order that explains their answers.
bool Explains(std::span<const Operation> ops, const Table& table, uint32_t done) {
  bool complete = true;
  uint64_t first_return = kNever;  // what was invoked after this must wait
  for (size_t i = 0; i < ops.size(); ++i) {
    if ((done >> i & 1) != 0 || !ops[i].answered()) continue;
    complete = false;
    first_return = std::min(first_return, ops[i].returned);
  }
  if (complete) return true;
  for (size_t i = 0; i < ops.size(); ++i) {
    if ((done >> i & 1) != 0 || ops[i].refused() || ops[i].invoked > first_return) continue;
    Table after = table;
    const std::optional<Outcome> outcome = Execute(ops[i], after);
    if (ops[i].answered() && !(outcome && Agree(ops[i].outcome, *outcome))) continue;
    if (Explains(ops, after, done | uint32_t{1} << i)) return true;
  }
  return false;
}

bool LinearizableByBruteForce(std::span<const Operation> ops, const Table& initial) {
  EXPECT_LT(ops.size(), 32u);
  return Explains(ops, initial, 0);
}

// What a random history is made of.
struct Recipe {
  int clients = 3;
  int operations = 6;
  int keys = 1;
  int lost_per_1000 = 150;   // of answers
  int refused_percent = 5;   // of operations
  int returns_percent = 50;  // how soon an operation ends once it can
  bool counters = true;
  bool distinct_values = false;
};

// Runs random clients on a real table. Every operation happens at one moment between its invocation and
// its answer; one that lost its answer happens at any later moment or never. So the history is
// linearizable.
class Simulation {
 public:
  Simulation(uint64_t seed, const Recipe& recipe) : random_(seed), recipe_(recipe) {
    for (int k = 0; k < recipe_.keys; ++k) {
      if (Percent(40)) initial_[Key(k)] = RandomValue();
    }
    table_ = initial_;
  }

  const Table& initial() const { return initial_; }

  const History& Run() {
    while (invoked_ < recipe_.operations || !flights_.empty()) {
      const bool may_invoke = invoked_ < recipe_.operations && Busy() < recipe_.clients;
      if (may_invoke && (flights_.empty() || Percent(40))) {
        Invoke();
      } else if (!flights_.empty()) {
        Advance(Below(flights_.size()));
      }
      if (invoked_ == recipe_.operations && Busy() == 0) break;
    }
    return history_;
  }

  size_t Below(size_t n) { return random_() % n; }
  bool Percent(int p) { return static_cast<int>(Below(100)) < p; }

  std::string RandomValue() {
    if (recipe_.distinct_values) return "v" + std::to_string(++values_);
    if (recipe_.counters && Percent(50)) return Counter(Below(3));
    return std::string(1, static_cast<char>('a' + Below(3)));
  }

  // A value that may have been written.
  std::string RandomExpected() {
    return recipe_.distinct_values ? "v" + std::to_string(values_ - static_cast<int>(Below(8)))
                                   : RandomValue();
  }

  // Another answer that an operation of this kind might have got.
  Outcome RandomOutcome(const Operation& op) {
    switch (op.kind) {
      case Kind::kGet: return Found{Percent(25) ? std::nullopt : std::optional(RandomExpected())};
      case Kind::kPut: return Percent(30) ? Stored{} : Stored{Percent(50)};
      case Kind::kIncrement: return Counted{Below(4)};
      default: return Applied{Percent(50)};
    }
  }

 private:
  struct Flight {
    OpId id;
    bool lost;
    std::optional<Outcome> outcome;  // it has happened
  };

  static std::string Key(int k) { return "k" + std::to_string(k); }

  // Operations with a client that waits for them.
  int Busy() const {
    return static_cast<int>(
        std::count_if(flights_.begin(), flights_.end(), [](const Flight& flight) { return !flight.lost; }));
  }

  void Invoke() {
    const std::string key = Key(static_cast<int>(Below(static_cast<size_t>(recipe_.keys))));
    const std::string value = RandomValue();
    const std::string expected = RandomExpected();
    Call call{.kind = static_cast<Kind>(Below(recipe_.counters ? 7 : 6)), .key = key};
    call.value = value;
    call.expected = expected;
    call.delta = Below(3);
    const OpId id = history_.Invoke(invoked_++ % recipe_.clients, call);
    if (Percent(recipe_.refused_percent)) {
      history_.Refuse(id, "kContended: try again");
      return;
    }
    flights_.push_back({.id = id, .lost = false, .outcome = std::nullopt});
  }

  void Advance(size_t i) {
    Flight& flight = flights_[i];
    if (!flight.lost && static_cast<int>(Below(1000)) < recipe_.lost_per_1000) {
      history_.LoseAnswer(flight.id);
      flight.lost = true;
      if (flight.outcome) Land(i);
    } else if (!flight.outcome) {
      flight.outcome = Execute(history_[flight.id], table_);
      if (!flight.outcome && !flight.lost) history_.Refuse(flight.id, "kInvalidArgument: not a counter");
      if (!flight.outcome || flight.lost) Land(i);
    } else if (Percent(recipe_.returns_percent)) {
      Outcome told = *flight.outcome;
      if (std::holds_alternative<Stored>(told) && Percent(50)) told = Stored{};
      history_.Return(flight.id, told);
      Land(i);
    }
  }

  void Land(size_t i) { flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i)); }

  std::mt19937_64 random_;
  Recipe recipe_;
  Table initial_;
  Table table_;
  History history_;
  std::vector<Flight> flights_;
  int invoked_ = 0;
  int values_ = 0;
};

std::vector<Operation> Copy(const History& history) {
  return {history.operations().begin(), history.operations().end()};
}

// Changes the answers of up to `count` operations.
void Mutate(std::vector<Operation>& ops, int count, Simulation& simulation) {
  for (int i = 0; i < count; ++i) {
    Operation& op = ops[simulation.Below(ops.size())];
    if (op.answered()) op.outcome = simulation.RandomOutcome(op);
  }
}

CheckOptions Starting(const Table& initial) {
  CheckOptions options;
  options.initial = initial;
  return options;
}

std::string Show(uint64_t seed, std::span<const Operation> ops, const Table& initial) {
  std::string text = "seed " + std::to_string(seed) + "\n";
  for (const auto& [key, value] : initial) text += Printable(key) + " = " + Printable(value) + "\n";
  return text + Chart(ops);
}

// How often each verdict occurred, so that a test cannot pass by seeing only one of them.
struct Tally {
  int linearizable = 0;
  int violations = 0;
};

Tally CompareWithBruteForce(uint64_t first_seed, int histories, const Recipe& recipe, int mutations) {
  Tally tally;
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(histories); ++seed) {
    Simulation simulation(seed, recipe);
    std::vector<Operation> ops = Copy(simulation.Run());
    Mutate(ops, mutations, simulation);
    const bool expected = LinearizableByBruteForce(ops, simulation.initial());
    const Verdict verdict = CheckLinearizable(ops, Starting(simulation.initial()));
    EXPECT_EQ(verdict.answer, expected ? Answer::kLinearizable : Answer::kNotLinearizable)
        << Show(seed, ops, simulation.initial());
    if (testing::Test::HasFailure()) break;
    ++(expected ? tally.linearizable : tally.violations);
  }
  return tally;
}

TEST(CrossCheck, TrueSimulation_IsAccepted) {
  // Given: histories of a table whose operations really happen at one moment each, with lost answers
  // and refusals, 40 operations of 5 clients on 3 keys.
  // When: each is checked.
  // Expect: all are linearizable.
  const Recipe recipe{.clients = 5, .operations = 40, .keys = 3};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Simulation simulation(seed, recipe);
    const History& history = simulation.Run();
    ASSERT_TRUE(CheckLinearizable(history, Starting(simulation.initial())).ok())
        << Show(seed, history.operations(), simulation.initial());
  }
}

TEST(CrossCheck, TrueSimulationWithManyLostAnswers_IsAccepted) {
  // Given: the same, but 60 operations of 8 clients on one key, most of them pending at once, and about ten
  // lost answers in each history.
  // When: each is checked.
  // Expect: all are linearizable, none is undecided.
  const Recipe recipe{.clients = 8, .operations = 60, .lost_per_1000 = 40, .returns_percent = 20};
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Simulation simulation(seed, recipe);
    const History& history = simulation.Run();
    ASSERT_TRUE(CheckLinearizable(history, Starting(simulation.initial())).ok())
        << Show(seed, history.operations(), simulation.initial());
  }
}

TEST(CrossCheck, OneAnswerChanged_VerdictIsThatOfBruteForce) {
  // Given: true histories in which one answer was replaced.
  // When: each is judged by the checker and by trying all orders.
  // Expect: the same verdict, and both verdicts occur often.
  const Tally tally = CompareWithBruteForce(10'000, 6000, {}, 1);
  EXPECT_GT(tally.linearizable, 1000);
  EXPECT_GT(tally.violations, 1000);
}

TEST(CrossCheck, ManyAnswersChanged_VerdictIsThatOfBruteForce) {
  // Given: histories in which most answers are arbitrary, without counters, so that values meet often.
  // When: each is judged by the checker and by trying all orders.
  // Expect: the same verdict, and both verdicts occur often.
  const Tally tally = CompareWithBruteForce(20'000, 6000, {.operations = 5, .counters = false}, 3);
  EXPECT_GT(tally.linearizable, 1000);
  EXPECT_GT(tally.violations, 1000);
}

TEST(CrossCheck, HighlyConcurrent_VerdictIsThatOfBruteForce) {
  // Given: 7 operations, nearly all of them pending at once, a third without an answer.
  // When: each is judged by the checker and by trying all orders.
  // Expect: the same verdict, and both verdicts occur often.
  const Recipe recipe{.clients = 7, .operations = 7, .lost_per_1000 = 300, .returns_percent = 20};
  const Tally tally = CompareWithBruteForce(30'000, 6000, recipe, 4);
  EXPECT_GT(tally.linearizable, 500);
  EXPECT_GT(tally.violations, 500);
}

TEST(CrossCheck, DistinctValuesAndLostAnswers_VerdictIsThatOfBruteForce) {
  // Given: every value is written once, so that most are compared with nothing, or no more; and many lost
  // answers, so that what became of them depends on whether the key was present.
  // When: each is judged by the checker and by trying all orders.
  // Expect: the same verdict, and both verdicts occur often.
  const Recipe recipe{.operations = 9, .lost_per_1000 = 200, .distinct_values = true};
  const Tally tally = CompareWithBruteForce(45'000, 6000, recipe, 3);
  EXPECT_GT(tally.linearizable, 1000);
  EXPECT_GT(tally.violations, 1000);
}

TEST(CrossCheck, SeveralKeys_VerdictIsThatOfBruteForceOnTheWholeTable) {
  // Given: histories over two keys. Brute force orders the operations on both in one sequence.
  // When: each is judged by the checker, key by key.
  // Expect: the same verdict: linearizability is composable.
  const Tally tally = CompareWithBruteForce(40'000, 3000, {.operations = 7, .keys = 2}, 1);
  EXPECT_GT(tally.linearizable, 500);
  EXPECT_GT(tally.violations, 500);
}

TEST(CrossCheck, LeavingOutWhatMayBe_NeverMakesALinearizableHistoryFail) {
  // Given: linearizable histories, mutated or not.
  // When: an operation that may be left out is left out, and then all of them.
  // Expect: brute force still finds an order; and it is no empty promise: writes are among those left out.
  int left_out = 0, writes_left_out = 0;
  for (uint64_t seed = 50'000; seed < 56'000; ++seed) {
    Simulation simulation(seed, {.operations = 5, .lost_per_1000 = 100, .counters = seed % 2 == 0});
    std::vector<Operation> ops = Copy(simulation.Run());
    Mutate(ops, static_cast<int>(seed % 3), simulation);
    if (!LinearizableByBruteForce(ops, simulation.initial())) continue;
    const std::vector<bool> may = MayLeaveOut(ops);
    std::vector<Operation> rest_of_all;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!may[i]) {
        rest_of_all.push_back(ops[i]);
        continue;
      }
      ++left_out;
      const std::optional<Step> step = StepOf(ops[i]);
      if (step && step->does != Does::kNothing) ++writes_left_out;
      std::vector<Operation> rest = ops;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_TRUE(LinearizableByBruteForce(rest, simulation.initial()))
          << "without " << ToString(ops[i]) << "\n"
          << Show(seed, ops, simulation.initial());
    }
    ASSERT_TRUE(LinearizableByBruteForce(rest_of_all, simulation.initial()))
        << Show(seed, ops, simulation.initial());
  }
  EXPECT_GT(left_out, 5000);
  EXPECT_GT(writes_left_out, 300);
}

TEST(CrossCheck, RestAfterARestart_IsNeverHarderToExplainThanTheWhole) {
  // Given: linearizable histories of one key.
  // When: each is cut at every moment at which the value is certain.
  // Expect: the rest is linearizable from that value on, by brute force.
  int restarts = 0;
  for (uint64_t seed = 60'000; seed < 63'000; ++seed) {
    Simulation simulation(seed, {.operations = 7});
    std::vector<Operation> ops = Copy(simulation.Run());
    Mutate(ops, static_cast<int>(seed % 2), simulation);
    if (!LinearizableByBruteForce(ops, simulation.initial())) continue;
    uint64_t before = kNever;
    while (const auto restart = LastRestart(ops, before, Starting(simulation.initial()))) {
      Table initial;
      if (restart->value) initial["k0"] = *restart->value;
      ASSERT_TRUE(LinearizableByBruteForce(restart->rest, initial))
          << "after event " << restart->event << "\n"
          << Show(seed, ops, simulation.initial());
      before = restart->event;
      ++restarts;
    }
  }
  EXPECT_GT(restarts, 5000);
}

TEST(CrossCheck, WitnessOfARandomViolation_FailsAndEndsWithTheAnswerThatFails) {
  // Given: histories that are not linearizable.
  // When: each is shrunk.
  // Expect: brute force rejects the witness; it accepts the witness without its last answer; nothing more
  // may be left out.
  int witnesses = 0;
  for (uint64_t seed = 70'000; seed < 73'000; ++seed) {
    Simulation simulation(seed, {.clients = 4, .operations = 12, .keys = 2});
    std::vector<Operation> ops = Copy(simulation.Run());
    Mutate(ops, 2, simulation);
    const CheckOptions options = Starting(simulation.initial());
    const Verdict verdict = CheckLinearizable(ops, options);
    if (verdict.ok()) continue;
    Witness witness = Shrink(ops, verdict, options);
    ++witnesses;
    Table initial;
    if (witness.initial) initial[witness.key] = *witness.initial;
    const std::string shown = Show(seed, ops, simulation.initial()) + ToString(witness);
    ASSERT_FALSE(LinearizableByBruteForce(witness.operations, initial)) << shown;

    const std::vector<bool> may = MayLeaveOut(witness.operations);
    for (size_t i = 0; i < may.size(); ++i) {
      if (!may[i]) continue;
      std::vector<Operation> rest = witness.operations;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_TRUE(LinearizableByBruteForce(rest, initial)) << shown;
    }

    const auto last = std::max_element(
        witness.operations.begin(), witness.operations.end(), [](const Operation& a, const Operation& b) {
          return (a.answered() ? a.returned : 0) < (b.answered() ? b.returned : 0);
        });
    for (const Operation& op : witness.operations) ASSERT_LT(op.invoked, last->returned) << shown;
    last->fate = Fate::kMaybe;
    last->returned = kNever;
    ASSERT_TRUE(LinearizableByBruteForce(witness.operations, initial)) << shown;
  }
  EXPECT_GT(witnesses, 1000);
}

TEST(CrossCheck, WitnessOfALongRandomViolation_FailsFromItsInitialValueOn) {
  // Given: longer histories that are not linearizable.
  // When: each is shrunk, which mostly means to cut off the beginning.
  // Expect: brute force rejects the witness, starting with the value that it names.
  int witnesses = 0, cut = 0;
  size_t shown = 0;
  for (uint64_t seed = 80'000; seed < 80'500; ++seed) {
    Simulation simulation(seed, {.clients = 4, .operations = 100, .lost_per_1000 = 10});
    std::vector<Operation> ops = Copy(simulation.Run());
    Mutate(ops, 2, simulation);
    const CheckOptions options = Starting(simulation.initial());
    const Verdict verdict = CheckLinearizable(ops, options);
    if (verdict.ok()) continue;
    const Witness witness = Shrink(ops, verdict, options);
    ++witnesses;
    cut += witness.replaced > 0;
    shown += witness.operations.size();
    if (witness.operations.size() > 16) continue;  // too many for brute force
    Table initial;
    if (witness.initial) initial[witness.key] = *witness.initial;
    ASSERT_FALSE(LinearizableByBruteForce(witness.operations, initial))
        << Show(seed, ops, simulation.initial()) << ToString(witness);
  }
  EXPECT_GT(witnesses, 200);
  EXPECT_GT(cut, 100);
  EXPECT_LT(shown, 8u * static_cast<size_t>(witnesses));
}

}  // namespace
}  // namespace farside::check
