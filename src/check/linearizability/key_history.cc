#include "check/linearizability/key_history.h"

#include <algorithm>
#include <optional>

namespace farside::check::linearizability {

void KeyHistory::Compile(std::span<const Operation> operations, std::span<const uint32_t> indices,
                         const CheckOptions& options) {
  operations_ = operations;
  values_.Clear(2 * indices.size());
  actions_.clear();
  events_.clear();
  initial_ = kAbsentId;
  if (indices.empty()) return;
  const auto initial = options.initial.find(operations_[indices.front()].key);
  if (initial != options.initial.end()) initial_ = values_.Intern(Value::Of(initial->second));

  for (uint32_t i : indices) {
    const Operation& operation = operations_[i];
    const std::optional<Step> step = StepOf(operation);
    if (!step) continue;
    const bool compares = step->ComparesEqual() || step->needs == Needs::kNotEqual;
    const auto id = static_cast<uint32_t>(actions_.size());
    actions_.push_back({.needs = step->needs,
                        .does = step->does,
                        .must = step->must,
                        .compared = compares ? values_.Intern(step->compared) : kAbsentId,
                        .stored = step->does == Does::kStore ? values_.Intern(step->stored) : kAbsentId,
                        .delta = step->delta,
                        .operation = i});
    events_.push_back({.number = operation.invoked, .action = id, .is_return = false});
    if (step->must) events_.push_back({.number = operation.returned, .action = id, .is_return = true});
  }
  FindLastComparisons();
  std::sort(events_.begin(), events_.end(),
            [](const Event& a, const Event& b) { return a.number < b.number; });
}

// For rule 5. When some operation may add to whatever number it finds, numbers are left as they are.
void KeyHistory::FindLastComparisons() {
  compared_until_.assign(values_.size(), anonymous_values_ ? 0 : kNever);
  compared_until_[kAbsentId] = kNever;
  bool numbers_matter = false;
  for (const Action& action : actions_) {
    uint64_t& until = compared_until_[action.compared];
    until = std::max(until, operations_[action.operation].returned);  // kNever without an answer
    numbers_matter |= action.needs == Needs::kNumber;
  }
  for (ValueId id = kAnonymousId + 1; numbers_matter && id < values_.size(); ++id) {
    if (values_[id].is_number) compared_until_[id] = kNever;
  }
}

}  // namespace farside::check::linearizability
