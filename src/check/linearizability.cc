// The check for one key: Wing and Gong's search in the form given by Lowe ("Testing for linearizability",
// 2017) as just-in-time linearization. Events are taken in order. A configuration is one way to explain
// the events so far: the value of the key, and what has become of each pending operation. An operation is
// linearized no sooner than needed: when some operation returns, every configuration in which it has not
// happened yet is extended by pending operations, in every order, until it has. If no configuration is
// left, the history is not linearizable.
//
// What has become of a pending operation is two bits:
//
//   owed   it must happen before it returns
//   spent  it has happened, and must not happen again
//
//                                  owed  spent
//   has to happen                   1     0
//   has happened                    0     1
//   either will do                  0     0
//
// "Either will do" is the start of an operation without an answer, and the state of some that have one
// (rules 2 and 3). Fewer bits mean more freedom:
//
// 1. DOMINANCE. Of two configurations with the same value, one whose bits are a subset of the other's can
//    continue in every way in which the other can: what is not spent can be left undone unless it is owed,
//    and what is not owed need not be done. So the other is dropped. In particular an operation without an
//    answer that changes nothing is not worth spending, and a read without an answer is ignored.
//
// 2. OBSERVATIONS. An operation whose answer proves that it changed nothing (a Get, a condition that did
//    not hold) happens as soon as the value fits: earlier is never worse, for it is in nobody's way. It
//    loses its owed bit and is never spent.
//
// 3. OVERWRITTEN WRITES. Let q overwrite a present value without looking at it (Put, Update, Delete; a Put
//    also overwrites absence). Any write p that is pending at that moment and that only needs the key to
//    be present, or nothing, could have happened just before q: nobody would have seen it, and any number
//    of such writes could have happened there one after the other. Or p has yet to happen. So p is no
//    longer owed, but not spent: the configuration stands for both. (If q meets an absent key, this holds
//    for those p that need nothing.) When p returns, the configuration is kept as one in which p has
//    happened and extended as one in which it has not. Without this rule n concurrent Puts have 2^n
//    configurations; with it, n.
//
// 4. THE WEAKEST WILL DO. Let b be an operation without an answer that could happen now. Let a be another
//    pending operation that could happen now instead and do the same to the value, and that can happen
//    only when b can (a is a CompareAndSet or an Insert and b a Put of the same value; or they are equal).
//    Then b is not tried. This loses nothing: in an explanation in which b happens now, let a happen now,
//    and b when a would have, if ever. b can happen then, and does the same there as a; both were invoked
//    before now; and b never returns, so it is never too late for it. And if a counts as happened already
//    (rule 3), let it happen now instead, and b is saved.
//
// 5. ANONYMOUS VALUES. Values that no pending or future operation compares with anything cannot be told
//    apart any more, and are one value to the check. (When some operation may add to whatever number it
//    finds, numbers are left as they are.)
//
// An operation without an answer that is spent in every configuration is forgotten, so that a long history
// does not grow slower with every lost answer.
#include "check/linearizability.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "check/specification.h"

namespace farside::check {
namespace {

using ValueId = uint32_t;
constexpr ValueId kAbsentId = 0;
constexpr ValueId kAnonymousId = 1;
constexpr uint32_t kNone = ~uint32_t{0};

// Numbers the values that a key may take.
class ValueTable {
 public:
  // `expected` only sizes the table.
  void Clear(size_t expected) {
    values_.assign(2, Value{});
    buckets_.assign(std::bit_ceil(2 * expected + 4), kNone);
  }

  ValueId Intern(const Value& value) {
    uint32_t* bucket = Find(value);
    if (*bucket != kNone) return *bucket;
    const auto id = static_cast<ValueId>(values_.size());
    *bucket = id;
    values_.push_back(value);
    if (values_.size() * 2 > buckets_.size()) Grow();
    return id;
  }

  const Value& operator[](ValueId id) const { return values_[id]; }
  size_t size() const { return values_.size(); }

 private:
  uint32_t* Find(const Value& value) {
    const size_t mask = buckets_.size() - 1;
    size_t at = Hash(value) & mask;
    while (buckets_[at] != kNone && !(values_[buckets_[at]] == value)) at = (at + 1) & mask;
    return &buckets_[at];
  }

  static size_t Hash(const Value& value) {
    if (!value.is_number) return std::hash<std::string_view>()(value.bytes);
    const uint64_t mixed = value.number * 0x9E3779B97F4A7C15u;
    return mixed ^ (mixed >> 32);
  }

  void Grow() {
    buckets_.assign(buckets_.size() * 2, kNone);
    for (ValueId id = kAnonymousId + 1; id < values_.size(); ++id) *Find(values_[id]) = id;
  }

  std::vector<Value> values_;      // by id
  std::vector<uint32_t> buckets_;  // open addressing; ids
};

// A set of configurations of which none dominates another.
//
// A configuration is a value and 2 * words() words: first the owed bits, then the spent bits.
class Configurations {
 public:
  void Reset(size_t words) {
    for (const Entry& entry : entries_) heads_[entry.value] = kNone;
    entries_.clear();
    bits_.clear();
    words_ = words;
  }

  // Entries are numbered 0 .. size()-1 in order of addition; some of them are no longer alive.
  size_t size() const { return entries_.size(); }
  size_t words() const { return words_; }
  bool IsAlive(size_t i) const { return entries_[i].alive; }
  ValueId value(size_t i) const { return entries_[i].value; }
  uint64_t* owed(size_t i) { return bits_.data() + i * 2 * words_; }
  uint64_t* spent(size_t i) { return owed(i) + words_; }

  // Adds a configuration unless it is dominated; drops those that it dominates. `bits` must not point into
  // this set. Returns the number of steps this took.
  uint64_t Add(ValueId value, const uint64_t* bits) {
    if (value >= heads_.size()) heads_.resize(std::max<size_t>(value + 1, heads_.size() * 2), kNone);
    uint64_t steps = 1;
    uint32_t* link = &heads_[value];
    while (*link != kNone) {
      ++steps;
      Entry& other = entries_[*link];
      const uint64_t* other_bits = bits_.data() + size_t{*link} * 2 * words_;
      if (IsSubset(other_bits, bits)) return steps;
      if (IsSubset(bits, other_bits)) {
        other.alive = false;
        *link = other.next;
      } else {
        link = &other.next;
      }
    }
    *link = static_cast<uint32_t>(entries_.size());
    entries_.push_back({.value = value, .next = kNone, .alive = true});
    bits_.insert(bits_.end(), bits, bits + 2 * words_);
    return steps;
  }

 private:
  struct Entry {
    ValueId value;
    uint32_t next;  // of the same value, among those alive
    bool alive;
  };

  bool IsSubset(const uint64_t* a, const uint64_t* b) const {
    for (size_t i = 0; i < 2 * words_; ++i) {
      if ((a[i] & ~b[i]) != 0) return false;
    }
    return true;
  }

  std::vector<Entry> entries_;
  std::vector<uint64_t> bits_;   // 2 * words_ for each entry
  std::vector<uint32_t> heads_;  // by value: the first entry alive
  size_t words_ = 1;
};

bool TestBit(const uint64_t* bits, uint32_t i) { return (bits[i / 64] >> (i % 64)) & 1; }
void SetBit(uint64_t* bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }
void ClearBit(uint64_t* bits, uint32_t i) { bits[i / 64] &= ~(uint64_t{1} << (i % 64)); }

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

struct Event {
  uint64_t number;
  uint32_t action;
  bool is_return;
};

// Checks the history of one key. Can be used for many, one after the other.
class KeyCheck {
 public:
  // Without rule 5 the check is slower, but can tell what the value is.
  enum class Values { kAnonymous, kNamed };

  explicit KeyCheck(const CheckOptions& options, Values values = Values::kAnonymous)
      : options_(options), anonymous_values_(values == Values::kAnonymous) {}

  // Begins the history that consists of the operations at these indices.
  void Begin(std::span<const Operation> operations, std::span<const uint32_t> indices);

  // Takes the next event; false at the end, or when the verdict is not kLinearizable.
  bool Advance();

  Answer answer() const { return answer_; }
  uint64_t event() const { return event_; }  // the last one taken
  uint64_t steps() const { return steps_; }

  // The only value that the key can have now, if there is only one.
  bool ValueIsKnown(std::optional<std::string>* value) const;
  // See Restart::rest.
  std::vector<Operation> Rest();

 private:
  // An invoked operation that has not returned, and its place in the bits of the configurations.
  struct Pending {
    uint32_t action;
    uint32_t slot;
  };

  // Operations without an answer that need and do the same. By rule 4 they happen in this order.
  struct Twins {
    uint32_t action;  // of the first
    std::vector<Pending> members;
  };

  // An operation that can happen in the configuration that is being extended.
  struct Choice {
    Pending pending;
    ValueId then;  // the value after it
  };

  void Compile(std::span<const uint32_t> indices);
  void FindLastComparisons();
  void Invoke(uint32_t action);
  void InvokeMaybe(const Pending& pending);
  void Return(uint32_t action);
  void Settle(const Pending& returning);
  void Extend(size_t configuration, const Pending& returning);
  void FindChoices(size_t configuration);
  void AddMaybe(const Choice& choice);
  void Happen(size_t configuration, const Choice& choice, const Pending& returning);
  void ForgetSpentForGood();
  void MakeAnonymous(ValueId value);
  void RenameStored(ValueId value);
  void SpendInOrder(const Twins& twins, uint64_t* spent) const;
  bool IsAnonymous(ValueId value) const;

  bool Holds(const Action& action, ValueId value) const;
  ValueId Apply(const Action& action, ValueId value);
  void FreeOverwritten(const Action& by, ValueId value, uint64_t* owed) const;
  void Observe(ValueId value, uint64_t* owed) const;

  uint32_t TakeSlot();
  void Widen();
  bool SpentEverywhere(uint32_t slot);
  bool OwedEverywhere(uint32_t slot);
  bool OwedAnywhere(uint32_t slot);

  const CheckOptions& options_;
  const bool anonymous_values_;

  // The history.
  std::span<const Operation> operations_;
  ValueTable values_;
  std::vector<Action> actions_;
  std::vector<Event> events_;
  std::vector<uint64_t> compared_until_;  // by value: the event after which it is anonymous
  ValueId initial_ = kAbsentId;
  size_t next_event_ = 0;

  // The search.
  Configurations now_;
  Configurations open_;           // scratch: those in which the returning operation has yet to happen
  Configurations next_;           // scratch: those of the next event
  std::vector<uint64_t> bits_;    // scratch: of one configuration
  std::vector<uint64_t> used_;    // slots in use
  std::vector<uint64_t> writes_;  // slots of plain writes that have an answer
  std::vector<uint64_t> puts_;    // those of them that need nothing
  std::vector<Pending> observations_;
  std::vector<Pending> mutators_;  // with an answer
  std::vector<Twins> maybes_;      // without one
  std::vector<Choice> choices_;    // scratch: what can happen next

  Answer answer_ = Answer::kLinearizable;
  uint64_t event_ = 0;
  uint64_t steps_ = 0;
};

void KeyCheck::Begin(std::span<const Operation> operations, std::span<const uint32_t> indices) {
  operations_ = operations;
  Compile(indices);
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
  now_.Add(IsAnonymous(initial_) ? kAnonymousId : initial_, bits_.data());
}

void KeyCheck::Compile(std::span<const uint32_t> indices) {
  values_.Clear(2 * indices.size());
  actions_.clear();
  events_.clear();
  initial_ = kAbsentId;
  if (indices.empty()) return;
  const auto initial = options_.initial.find(operations_[indices.front()].key);
  if (initial != options_.initial.end()) initial_ = values_.Intern(Value::Of(initial->second));

  for (uint32_t i : indices) {
    const Operation& operation = operations_[i];
    const std::optional<Step> step = StepOf(operation);
    if (!step) continue;
    const bool compares = step->needs == Needs::kEqual || step->needs == Needs::kEqualOrAbsent ||
                          step->needs == Needs::kNotEqual;
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

// For rule 5.
void KeyCheck::FindLastComparisons() {
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

bool KeyCheck::IsAnonymous(ValueId value) const {
  // Values that were not in the history are sums, and those are never anonymous.
  return value < compared_until_.size() && compared_until_[value] <= event_;
}

bool KeyCheck::Advance() {
  if (answer_ != Answer::kLinearizable || next_event_ == events_.size()) return false;
  const Event& event = events_[next_event_++];
  event_ = event.number;
  if (event.is_return) {
    Return(event.action);
  } else {
    Invoke(event.action);
  }
  return answer_ == Answer::kLinearizable;
}

void KeyCheck::Invoke(uint32_t id) {
  Action& action = actions_[id];
  if (IsAnonymous(action.stored)) action.stored = kAnonymousId;
  const Pending pending{.action = id, .slot = TakeSlot()};
  if (!action.must) {
    InvokeMaybe(pending);
    return;
  }
  (action.IsObservation() ? observations_ : mutators_).push_back(pending);
  if (action.IsPlainWrite()) SetBit(writes_.data(), pending.slot);
  if (action.IsPlainWrite() && action.needs == Needs::kNothing) SetBit(puts_.data(), pending.slot);
  for (size_t i = 0; i < now_.size(); ++i) {
    const bool seen = action.IsObservation() && Holds(action, now_.value(i));  // rule 2
    if (!seen) SetBit(now_.owed(i), pending.slot);
  }
}

void KeyCheck::InvokeMaybe(const Pending& pending) {
  for (Twins& twins : maybes_) {
    if (!actions_[pending.action].IsTwinOf(actions_[twins.action])) continue;
    twins.members.push_back(pending);
    return;
  }
  maybes_.push_back({.action = pending.action, .members = {pending}});
}

void KeyCheck::Return(uint32_t id) {
  auto& pending = actions_[id].IsObservation() ? observations_ : mutators_;
  const auto at =
      std::find_if(pending.begin(), pending.end(), [id](const Pending& p) { return p.action == id; });
  const Pending returning = *at;
  Settle(returning);
  pending.erase(at);
  ClearBit(used_.data(), returning.slot);
  ClearBit(writes_.data(), returning.slot);
  ClearBit(puts_.data(), returning.slot);
  if (answer_ != Answer::kLinearizable) return;
  ForgetSpentForGood();
  const ValueId compared = actions_[id].compared;
  if (IsAnonymous(compared)) MakeAnonymous(compared);
}

// Keeps the configurations in which the returning operation has happened, and extends those in which it has
// not until it has. One that may have happened or not is both.
void KeyCheck::Settle(const Pending& returning) {
  const bool is_observation = actions_[returning.action].IsObservation();
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
    const Action& action = actions_[pending.action];
    if (TestBit(spent, pending.slot) || !Holds(action, value)) continue;
    choices_.push_back({.pending = pending, .then = Apply(action, value)});
  }
  for (const Twins& twins : maybes_) {
    const Action& action = actions_[twins.action];
    if (!Holds(action, value)) continue;
    const ValueId then = Apply(action, value);
    if (then == value) continue;  // rule 1
    const auto first = std::find_if(twins.members.begin(), twins.members.end(),
                                    [&](const Pending& p) { return !TestBit(spent, p.slot); });
    if (first != twins.members.end()) AddMaybe({.pending = *first, .then = then});
  }
}

// Rule 4. Those with an answer are among the choices already.
void KeyCheck::AddMaybe(const Choice& choice) {
  const Action& action = actions_[choice.pending.action];
  for (Choice& other : choices_) {
    const Action& other_action = actions_[other.pending.action];
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
  const Action& action = actions_[choice.pending.action];
  const Action& goal = actions_[returning.action];
  std::copy_n(open_.owed(configuration), 2 * words, bits_.begin());
  FreeOverwritten(action, open_.value(configuration), bits_.data());
  Observe(choice.then, bits_.data());
  if (&action == &goal) {
    steps_ += next_.Add(choice.then, bits_.data());
    return;
  }
  ClearBit(bits_.data(), choice.pending.slot);
  SetBit(bits_.data() + words, choice.pending.slot);
  const bool reached = goal.IsObservation() && Holds(goal, choice.then);
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
    Action& action = actions_[pending.action];
    if (action.stored == value) action.stored = kAnonymousId;
  }
  std::vector<Pending> renamed;
  std::erase_if(maybes_, [&](const Twins& twins) {
    if (actions_[twins.action].stored != value) return false;
    renamed.insert(renamed.end(), twins.members.begin(), twins.members.end());
    return true;
  });
  for (const Pending& pending : renamed) {
    actions_[pending.action].stored = kAnonymousId;
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

bool KeyCheck::Holds(const Action& action, ValueId value) const {
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

ValueId KeyCheck::Apply(const Action& action, ValueId value) {
  switch (action.does) {
    case Does::kNothing: return value;
    case Does::kStore: return action.stored;
    case Does::kRemove: return kAbsentId;
    case Does::kAdd:
      return values_.Intern(Value::Number((value == kAbsentId ? 0 : values_[value].number) + action.delta));
  }
  return value;
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
    if (Holds(actions_[pending.action], value)) ClearBit(owed, pending.slot);
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
  *value = id == kAbsentId ? std::nullopt : std::optional<std::string>(values_[id].ToBytes());
  return true;
}

// The configuration in which the rest begins has the value of all configurations of now, and only bits
// that all of them have. So it dominates them all (rule 1).
std::vector<Operation> KeyCheck::Rest() {
  std::vector<Operation> rest;
  for (const Pending& pending : observations_) {
    if (OwedEverywhere(pending.slot)) rest.push_back(operations_[actions_[pending.action].operation]);
  }
  for (const Pending& pending : mutators_) {
    if (SpentEverywhere(pending.slot)) continue;
    Operation& kept = rest.emplace_back(operations_[actions_[pending.action].operation]);
    if (OwedEverywhere(pending.slot)) continue;
    kept.fate = Fate::kMaybe;
    kept.returned = kNever;
  }
  for (const Twins& twins : maybes_) {
    for (const Pending& pending : twins.members)
      rest.push_back(operations_[actions_[pending.action].operation]);
  }
  for (const Operation& operation : operations_) {
    if (operation.invoked > event_) rest.push_back(operation);
  }
  std::sort(rest.begin(), rest.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
  return rest;
}

// A violation before giving up, then the earlier event.
bool IsWorse(const Verdict& a, const Verdict& b) {
  auto rank = [](Answer answer) {
    switch (answer) {
      case Answer::kLinearizable: return 0;
      case Answer::kUndecided: return 1;
      case Answer::kNotLinearizable: return 2;
    }
    return 0;
  };
  if (a.answer != b.answer) return rank(a.answer) > rank(b.answer);
  return a.answer != Answer::kLinearizable && a.event < b.event;
}

std::vector<uint32_t> IndicesByKey(std::span<const Operation> operations) {
  std::vector<uint32_t> indices(operations.size());
  for (uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
  std::sort(indices.begin(), indices.end(), [&](uint32_t a, uint32_t b) {
    const int order = operations[a].key.compare(operations[b].key);
    return order != 0 ? order < 0 : operations[a].invoked < operations[b].invoked;
  });
  return indices;
}

}  // namespace

Verdict CheckLinearizable(std::span<const Operation> operations, const CheckOptions& options) {
  const std::vector<uint32_t> indices = IndicesByKey(operations);
  KeyCheck check(options);
  Verdict worst;
  uint64_t steps = 0;
  for (size_t begin = 0, end = 0; begin < indices.size(); begin = end) {
    const std::string& key = operations[indices[begin]].key;
    while (end < indices.size() && operations[indices[end]].key == key) ++end;
    check.Begin(operations, std::span(indices).subspan(begin, end - begin));
    while (check.Advance()) {
    }
    steps += check.steps();
    if (check.answer() == Answer::kLinearizable) continue;
    Verdict verdict{.answer = check.answer(), .key = key, .event = check.event()};
    if (IsWorse(verdict, worst)) worst = std::move(verdict);
  }
  worst.steps = steps;
  return worst;
}

std::string ToString(const Verdict& verdict) {
  switch (verdict.answer) {
    case Answer::kLinearizable: return "linearizable";
    case Answer::kNotLinearizable:
      return fmt::format("key {} is not linearizable: nothing explains event {}", Printable(verdict.key),
                         verdict.event);
    case Answer::kUndecided:
      return fmt::format("key {} is undecided: gave up at event {}", Printable(verdict.key), verdict.event);
  }
  return "unknown answer";
}

std::optional<Restart> LastRestart(std::span<const Operation> operations, uint64_t before,
                                   const CheckOptions& options) {
  const std::vector<uint32_t> indices = IndicesByKey(operations);
  assert(indices.empty() || operations[indices.front()].key == operations[indices.back()].key);
  KeyCheck check(options, KeyCheck::Values::kNamed);
  check.Begin(operations, indices);
  std::optional<Restart> last;
  size_t events_until_last = 0;
  for (size_t events = 1; check.Advance() && check.event() < before; ++events) {
    std::optional<std::string> value;
    if (!check.ValueIsKnown(&value)) continue;
    last = Restart{.event = check.event(), .value = std::move(value), .rest = {}};
    events_until_last = events;
  }
  if (!last) return std::nullopt;
  check.Begin(operations, indices);
  for (size_t i = 0; i < events_until_last; ++i) check.Advance();
  last->rest = check.Rest();
  return last;
}

}  // namespace farside::check
