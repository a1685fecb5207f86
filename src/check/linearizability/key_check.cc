#include "check/linearizability/key_check.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace farside::check::linearizability {

void KeyCheck::Begin(std::span<const Operation> operations, std::span<const uint32_t> indices) {
  history_.Compile(operations, indices, options_);
  next_event_ = 0;

  used_.assign(1, 0);
  writes_.assign(1, 0);
  puts_.assign(1, 0);
  bits_.assign(2, 0);
  observations_.clear();
  mutators_.clear();
  maybes_.clear();
  answer_ = Answer::kLinearizable;
  event_ = 0;
  steps_ = 0;
  now_.Reset(1);
  const ValueId initial = history_.initial();
  now_.Add(IsAnonymousNow(initial) ? kAnonymousId : initial, bits_.data());
}

bool KeyCheck::Advance() {
  if (answer_ != Answer::kLinearizable || next_event_ == history_.events().size()) return false;
  const Event& event = history_.events()[next_event_++];
  event_ = event.number;
  if (event.is_return) {
    Return(event.action);
  } else {
    Invoke(event.action);
  }
  return answer_ == Answer::kLinearizable;
}

void KeyCheck::Invoke(uint32_t id) {
  const Action& action = history_.action(id);
  if (IsAnonymousNow(action.stored)) history_.StoreAnonymously(id);
  const Pending pending{.action = id, .slot = TakeSlot()};
  if (!action.must) {
    InvokeMaybe(pending);
    return;
  }
  (action.IsObservation() ? observations_ : mutators_).push_back(pending);
  if (action.IsPlainWrite()) SetBit(writes_.data(), pending.slot);
  if (action.IsPlainWrite() && action.needs == Needs::kNothing) SetBit(puts_.data(), pending.slot);
  for (size_t i = 0; i < now_.size(); ++i) {
    const bool seen = action.IsObservation() && history_.Holds(action, now_.value(i));  // rule 2
    if (!seen) SetBit(now_.owed(i), pending.slot);
  }
}

void KeyCheck::InvokeMaybe(const Pending& pending) {
  for (Twins& twins : maybes_) {
    if (!history_.action(pending.action).IsTwinOf(history_.action(twins.action))) continue;
    twins.members.push_back(pending);
    return;
  }
  maybes_.push_back({.action = pending.action, .members = {pending}});
}

void KeyCheck::Return(uint32_t id) {
  auto& pending = history_.action(id).IsObservation() ? observations_ : mutators_;
  const auto at =
      std::find_if(pending.begin(), pending.end(), [id](const Pending& p) { return p.action == id; });
  const Pending returning = *at;
  Linearize(returning);
  pending.erase(at);
  ClearBit(used_.data(), returning.slot);
  ClearBit(writes_.data(), returning.slot);
  ClearBit(puts_.data(), returning.slot);
  if (answer_ != Answer::kLinearizable) return;
  ForgetSpentForGood();
  const ValueId compared = history_.action(id).compared;
  if (IsAnonymousNow(compared)) MakeAnonymous(compared);
}

// Keeps the configurations in which the returning operation has happened, and extends those in which it has
// not until it has. One that may have happened or not is both.
void KeyCheck::Linearize(const Pending& returning) {
  const bool is_observation = history_.action(returning.action).IsObservation();
  if (is_observation && !OwedAnywhere(returning.slot)) return;
  const size_t words = now_.words();
  open_.Reset(words);
  next_.Reset(words);
  for (size_t i = 0; i < now_.size(); ++i) {
    if (!now_.IsAlive(i)) continue;
    const bool owed = TestBit(now_.owed(i), returning.slot);
    const bool spent = TestBit(now_.spent(i), returning.slot);
    std::copy_n(now_.owed(i), 2 * words, bits_.begin());
    ClearBit(bits_.data(), returning.slot);
    ClearBit(bits_.data() + words, returning.slot);
    if (!owed) steps_ += next_.Add(now_.value(i), bits_.data());
    if (owed || (!spent && !is_observation)) steps_ += open_.Add(now_.value(i), bits_.data());
  }
  for (size_t i = 0; i < open_.size(); ++i) {
    if (open_.IsAlive(i)) Extend(i, returning);
    if (open_.size() + next_.size() > options_.max_configurations || steps_ > options_.max_steps) {
      answer_ = Answer::kUndecided;
      return;
    }
  }
  std::swap(now_, next_);
  if (now_.size() == 0) answer_ = Answer::kNotLinearizable;
}

// Lets one more operation happen in an open configuration, each that can in turn.
void KeyCheck::Extend(size_t configuration, const Pending& returning) {
  FindChoices(configuration);
  for (const Choice& choice : choices_) Happen(configuration, choice, returning);
}

void KeyCheck::FindChoices(size_t configuration) {
  const ValueId value = open_.value(configuration);
  const uint64_t* spent = open_.spent(configuration);
  choices_.clear();
  for (const Pending& pending : mutators_) {
    const Action& action = history_.action(pending.action);
    if (TestBit(spent, pending.slot) || !history_.Holds(action, value)) continue;
    choices_.push_back({.pending = pending, .then = history_.Apply(action, value)});
  }
  for (const Twins& twins : maybes_) {
    const Action& action = history_.action(twins.action);
    if (!history_.Holds(action, value)) continue;
    const ValueId then = history_.Apply(action, value);
    if (then == value) continue;  // rule 1
    const auto first = std::find_if(twins.members.begin(), twins.members.end(),
                                    [&](const Pending& p) { return !TestBit(spent, p.slot); });
    if (first != twins.members.end()) AddMaybe({.pending = *first, .then = then});
  }
}

// Rule 4. Those with an answer are among the choices already.
void KeyCheck::AddMaybe(const Choice& choice) {
  const Action& action = history_.action(choice.pending.action);
  for (Choice& other : choices_) {
    const Action& other_action = history_.action(other.pending.action);
    if (other.then != choice.then || other_action.does != action.does) continue;
    if (other_action.Rank() <= action.Rank()) return;
    if (other_action.must) continue;
    other = choice;
    return;
  }
  choices_.push_back(choice);
}

// If the returning operation has then happened, the result is a configuration of the next event, otherwise
// another open one.
void KeyCheck::Happen(size_t configuration, const Choice& choice, const Pending& returning) {
  const size_t words = open_.words();
  const Action& action = history_.action(choice.pending.action);
  const Action& goal = history_.action(returning.action);
  std::copy_n(open_.owed(configuration), 2 * words, bits_.begin());
  FreeOverwritten(action, open_.value(configuration), bits_.data());
  Observe(choice.then, bits_.data());
  if (&action == &goal) {
    steps_ += next_.Add(choice.then, bits_.data());
    return;
  }
  ClearBit(bits_.data(), choice.pending.slot);
  SetBit(bits_.data() + words, choice.pending.slot);
  const bool reached = goal.IsObservation() && history_.Holds(goal, choice.then);
  steps_ += (reached ? next_ : open_).Add(choice.then, bits_.data());
}

void KeyCheck::ForgetSpentForGood() {
  for (Twins& twins : maybes_) {
    while (!twins.members.empty() && SpentEverywhere(twins.members.front().slot)) {
      const uint32_t slot = twins.members.front().slot;
      for (size_t i = 0; i < now_.size(); ++i) ClearBit(now_.spent(i), slot);
      ClearBit(used_.data(), slot);
      twins.members.erase(twins.members.begin());
    }
  }
  std::erase_if(maybes_, [](const Twins& twins) { return twins.members.empty(); });
}

// Rule 5.
void KeyCheck::MakeAnonymous(ValueId value) {
  RenameStored(value);
  const size_t words = now_.words();
  next_.Reset(words);
  for (size_t i = 0; i < now_.size(); ++i) {
    if (!now_.IsAlive(i)) continue;
    std::copy_n(now_.owed(i), 2 * words, bits_.begin());
    for (const Twins& twins : maybes_) SpendInOrder(twins, bits_.data() + words);
    steps_ += next_.Add(now_.value(i) == value ? kAnonymousId : now_.value(i), bits_.data());
  }
  std::swap(now_, next_);
}

// In the pending operations. Some without an answer become twins.
void KeyCheck::RenameStored(ValueId value) {
  for (const Pending& pending : mutators_) {
    if (history_.action(pending.action).stored == value) history_.StoreAnonymously(pending.action);
  }
  std::vector<Pending> renamed;
  std::erase_if(maybes_, [&](const Twins& twins) {
    if (history_.action(twins.action).stored != value) return false;
    renamed.insert(renamed.end(), twins.members.begin(), twins.members.end());
    return true;
  });
  for (const Pending& pending : renamed) {
    history_.StoreAnonymously(pending.action);
    InvokeMaybe(pending);
  }
}

// Twins are interchangeable: of those that are spent only the number matters.
void KeyCheck::SpendInOrder(const Twins& twins, uint64_t* spent) const {
  size_t count = 0;
  for (const Pending& pending : twins.members) {
    if (TestBit(spent, pending.slot)) ++count;
    ClearBit(spent, pending.slot);
  }
  for (size_t i = 0; i < count; ++i) SetBit(spent, twins.members[i].slot);
}

// Rule 3.
void KeyCheck::FreeOverwritten(const Action& by, ValueId value, uint64_t* owed) const {
  if (!by.LooksAtNoValue()) return;
  const std::vector<uint64_t>& freed = value == kAbsentId ? puts_ : writes_;
  for (size_t i = 0; i < freed.size(); ++i) owed[i] &= ~freed[i];
}

// Rule 2.
void KeyCheck::Observe(ValueId value, uint64_t* owed) const {
  for (const Pending& pending : observations_) {
    if (history_.Holds(history_.action(pending.action), value)) ClearBit(owed, pending.slot);
  }
}

uint32_t KeyCheck::TakeSlot() {
  for (size_t word = 0;; ++word) {
    if (word == used_.size()) Widen();
    if (~used_[word] == 0) continue;
    const auto slot = static_cast<uint32_t>(64 * word + std::countr_one(used_[word]));
    SetBit(used_.data(), slot);
    return slot;
  }
}

// Room for 64 more pending operations.
void KeyCheck::Widen() {
  const size_t words = now_.words();
  bits_.assign(2 * (words + 1), 0);
  next_.Reset(words + 1);
  for (size_t i = 0; i < now_.size(); ++i) {
    std::copy_n(now_.owed(i), words, bits_.begin());
    std::copy_n(now_.spent(i), words, bits_.begin() + static_cast<std::ptrdiff_t>(words + 1));
    next_.Add(now_.value(i), bits_.data());
  }
  std::swap(now_, next_);
  used_.push_back(0);
  writes_.push_back(0);
  puts_.push_back(0);
}

bool KeyCheck::SpentEverywhere(uint32_t slot) {
  for (size_t i = 0; i < now_.size(); ++i) {
    if (now_.IsAlive(i) && !TestBit(now_.spent(i), slot)) return false;
  }
  return true;
}

bool KeyCheck::OwedEverywhere(uint32_t slot) {
  for (size_t i = 0; i < now_.size(); ++i) {
    if (now_.IsAlive(i) && !TestBit(now_.owed(i), slot)) return false;
  }
  return true;
}

bool KeyCheck::OwedAnywhere(uint32_t slot) {
  for (size_t i = 0; i < now_.size(); ++i) {
    if (now_.IsAlive(i) && TestBit(now_.owed(i), slot)) return true;
  }
  return false;
}

bool KeyCheck::ValueIsKnown(std::optional<std::string>* value) const {
  const ValueId id = now_.value(0);
  for (size_t i = 1; i < now_.size(); ++i) {
    if (now_.value(i) != id) return false;
  }
  *value = id == kAbsentId ? std::nullopt : std::optional<std::string>(history_.value(id).ToBytes());
  return true;
}

// The configuration in which the rest begins has the value of all configurations of now, and only bits
// that all of them have. So it dominates them all (rule 1).
std::vector<Operation> KeyCheck::Rest() {
  std::vector<Operation> rest;
  for (const Pending& pending : observations_) {
    if (OwedEverywhere(pending.slot)) rest.push_back(history_.operation(pending.action));
  }
  for (const Pending& pending : mutators_) {
    if (SpentEverywhere(pending.slot)) continue;
    Operation& kept = rest.emplace_back(history_.operation(pending.action));
    if (OwedEverywhere(pending.slot)) continue;
    kept.fate = Fate::kMaybe;
    kept.returned = kNever;
  }
  for (const Twins& twins : maybes_) {
    for (const Pending& pending : twins.members) rest.push_back(history_.operation(pending.action));
  }
  for (const Operation& operation : history_.operations()) {
    if (operation.invoked > event_) rest.push_back(operation);
  }
  std::sort(rest.begin(), rest.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
  return rest;
}

}  // namespace farside::check::linearizability
