// Linearizability, judged event by event: an automaton that reads invocations and returns and remembers
// only what matters for the events to come.
//
// For each key the automaton knows the set of all explanations of what happened so far. An explanation is
// the value that the key has, and for each operation in progress whether it has happened yet and, if so,
// what its answer must be. An invocation adds the explanations in which the new operation, and any others
// in progress, have happened, in every order; a return keeps those that predicted its answer. When none is
// left, the history is not linearizable. (This is the subset construction on the sequential specification.)
//
// Histories after which the same explanations are left have the same future, and get the same number: that
// is why the search keeps these numbers in its states rather than histories, of which there are far more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/exhaustive/intern.h"
#include "check/history.h"

namespace farside::check::exhaustive {

enum class EventKind : uint8_t { kInvoke, kReturn, kLoseAnswer, kRefuse };

// Something that an operation did, as the automaton and the traces know it.
struct Event {
  EventKind kind = EventKind::kInvoke;
  uint32_t operation = 0;  // the caller's name for it, unique among the operations of one history
  Operation call;          // kInvoke: the arguments, in an operation without times
  Outcome outcome;         // kReturn
  std::string why;         // kRefuse
};

class Monitor {
 public:
  using History = uint32_t;  // a class of histories; 0 is the empty one
  static constexpr History kEmpty = 0;
  static constexpr History kNotLinearizable = ~History{0};
  static constexpr History kTooManyExplanations = kNotLinearizable - 1;

  Monitor();

  // The number of an event; equal events have equal numbers.
  uint32_t NumberOf(const Event& event);
  const Event& event(uint32_t number) const { return events_[number]; }

  History Next(History history, uint32_t event);

  size_t histories() const { return histories_.size(); }

 private:
  static constexpr size_t kMostExplanations = 1 << 16;  // of one key at one time
  static constexpr uint32_t kNotYet = 0;                // fates of an operation within an explanation
  static constexpr uint32_t kUnheard = 1;               // it has happened, and no client will hear the answer
  static constexpr uint32_t kFirstAnswer = 2;           // kFirstAnswer + i: it has happened with answer i

  // The fates stand in the order of KeyState::pending.
  struct Explanation {
    uint32_t value = 0;
    std::vector<uint32_t> fates;
    friend auto operator<=>(const Explanation&, const Explanation&) = default;
  };
  struct Pending {
    uint32_t operation;   // as in Event
    uint32_t invocation;  // number of the event
  };
  struct KeyState {
    std::vector<Pending> pending;           // by operation
    std::vector<Explanation> explanations;  // sorted
  };
  using Keys = std::map<uint32_t, uint32_t>;  // key to number of its state; keys never touched are left out

  History Compute(History history, const Event& event, uint32_t number);
  History Record(const Keys& keys);
  uint32_t RecordKey(const KeyState& state);

  // False: there are too many explanations.
  bool Invoke(KeyState& state, uint32_t operation, uint32_t invocation);
  void End(KeyState& state, size_t pending, const Event& event);

  // What the operation does to a key with this value: the new value and the answer. Nothing if it cannot
  // happen.
  struct Effect {
    uint32_t value;
    uint32_t answer;
  };
  std::optional<Effect> EffectOf(const Operation& call, uint32_t value);
  bool Predicted(uint32_t fate, const Event& event);

  uint32_t NumberOf(const std::optional<std::string>& value);
  uint32_t NumberOf(const Outcome& outcome);

  std::vector<Event> events_;
  std::map<std::string, uint32_t> event_numbers_;
  std::vector<std::optional<std::string>> values_;  // 0 is absence
  std::map<std::optional<std::string>, uint32_t> value_numbers_;
  std::vector<Outcome> outcomes_;
  std::map<std::string, uint32_t> outcome_numbers_;
  std::map<std::string, uint32_t> key_numbers_;

  std::vector<KeyState> key_states_;
  std::map<std::vector<uint32_t>, uint32_t> key_state_numbers_;
  std::vector<Keys> histories_;
  std::map<Keys, uint32_t> history_numbers_;
  NumberMap next_;  // {history, event} to history
};

}  // namespace farside::check::exhaustive
