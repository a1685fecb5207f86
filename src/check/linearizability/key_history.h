// The history of one key in the form in which it is checked: events in order, and what happens at them in
// terms of numbered values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "check/history.h"
#include "check/linearizability.h"
#include "check/linearizability/value_table.h"
#include "check/specification.h"

namespace farside::check::linearizability {

// A Step with numbered values.
struct Action {
  Needs needs;
  Does does;
  bool must;
  ValueId compared;
  ValueId stored;
  uint64_t delta;
  uint32_t operation;  // where it stands in the history

  bool IsObservation() const { return does == Does::kNothing; }
  bool LooksAtNoValue() const { return needs == Needs::kNothing || needs == Needs::kPresent; }
  bool IsPlainWrite() const { return does == Does::kStore && LooksAtNoValue(); }
  bool IsTwinOf(const Action& other) const {
    return needs == other.needs && does == other.does && compared == other.compared &&
           stored == other.stored && delta == other.delta;
  }

  // Of two actions that can happen now and do the same now: one of a lower or equal rank can happen only
  // when the other can, at any time.
  int Rank() const {
    switch (needs) {
      case Needs::kAbsent:
      case Needs::kEqual:
      case Needs::kNotEqual:
      case Needs::kNumber: return 0;
      case Needs::kPresent: return 1;
      case Needs::kEqualOrAbsent: return 2;
      case Needs::kNothing: return 3;
    }
    return 3;
  }
};

// An operation is invoked or returns.
struct Event {
  uint64_t number;  // in the whole history
  uint32_t action;
  bool is_return;
};

// Can be used for many keys, one after the other.
class KeyHistory {
 public:
  // `anonymous_values` turns rule 5 (see key_check.h) on: slower without it, but one can tell what the value
  // is.
  explicit KeyHistory(bool anonymous_values) : anonymous_values_(anonymous_values) {}

  // The history that consists of the operations at these indices, which must stay where they are.
  void Compile(std::span<const Operation> operations, std::span<const uint32_t> indices,
               const CheckOptions& options);

  std::span<const Event> events() const { return events_; }  // in order
  std::span<const Operation> operations() const { return operations_; }
  const Action& action(uint32_t id) const { return actions_[id]; }
  const Operation& operation(uint32_t action) const { return operations_[actions_[action].operation]; }
  const Value& value(ValueId id) const { return values_[id]; }
  ValueId initial() const { return initial_; }

  // Whether no operation looks at this value after `event`.
  bool IsAnonymous(ValueId value, uint64_t event) const {
    // Values that were not in the history are sums, and those are never anonymous.
    return value < compared_until_.size() && compared_until_[value] <= event;
  }
  // What the action stores has become anonymous.
  void StoreAnonymously(uint32_t action) { actions_[action].stored = kAnonymousId; }

  // Whether the action can happen when the key has this value, and the value after it.
  bool Holds(const Action& action, ValueId value) const {
    switch (action.needs) {
      case Needs::kNothing: return true;
      case Needs::kAbsent: return value == kAbsentId;
      case Needs::kPresent: return value != kAbsentId;
      case Needs::kEqual: return value == action.compared;
      case Needs::kEqualOrAbsent: return value == action.compared || value == kAbsentId;
      case Needs::kNotEqual: return value != action.compared;
      case Needs::kNumber: return value == kAbsentId || values_[value].is_number;
    }
    return false;
  }
  ValueId Apply(const Action& action, ValueId value) {
    switch (action.does) {
      case Does::kNothing: return value;
      case Does::kStore: return action.stored;
      case Does::kRemove: return kAbsentId;
      case Does::kAdd:
        return values_.Intern(Value::Number((value == kAbsentId ? 0 : values_[value].number) + action.delta));
    }
    return value;
  }

 private:
  void FindLastComparisons();

  const bool anonymous_values_;
  std::span<const Operation> operations_;
  ValueTable values_;
  std::vector<Action> actions_;
  std::vector<Event> events_;
  std::vector<uint64_t> compared_until_;  // by value: the event after which it is anonymous
  ValueId initial_ = kAbsentId;
};

}  // namespace farside::check::linearizability
