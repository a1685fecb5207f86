#include "check/shrink.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "check/scans.h"
#include "check/specification.h"

namespace farside::check {
namespace {

constexpr int kMaxRestarts = 8;
constexpr size_t kContext = 32;     // operations kept at first when the beginning is cut off
constexpr size_t kReadable = 12;    // operations up to which the beginning is shown, not summed up
constexpr size_t kMaxSuspects = 4;  // the last ones

// Which values the operations of a history look for. The rules about leaving out operations are these.
//
// 1. What says nothing about the table (refused, or a read without an answer) or changed nothing (a Get, a
//    condition that did not hold) may be left out: take it out of an explanation, and the rest of the
//    explanation stands.
//
// 2. A write (or Delete) p may be left out if no other operation can tell. In an explanation, let p turn
//    the key from s to t, and let t last until the next write. Without p, s lasts until then instead. The
//    operations of that time, the next write included, need something that t satisfies. If s satisfies it
//    too, the explanation stands without p. That is so if it is nothing that they need; or presence, when
//    t is a value and p is known to have met a present key. So p may be left out if nothing else that any
//    operation of the history needs is satisfied by t. It makes no difference if p may not have happened.
//
// An operation that was taken out needs nothing any more, so the rules still hold for the others.
class Needed {
 public:
  explicit Needed(std::span<const Operation> operations) {
    for (const Operation& operation : operations) {
      if (const std::optional<Step> step = StepOf(operation)) Add(*step);
    }
  }

  bool CannotTell(const Step& step) const {
    if (step.does == Does::kNothing) return true;                  // rule 1
    if (step.does == Does::kAdd || inequality_) return false;      // its t is unknown; or in doubt
    if (step.does == Does::kRemove) return !absence_ && !number_;  // rule 2 with t absent
    const bool met_present_key = step.needs == Needs::kPresent || step.needs == Needs::kEqual;
    if (presence_ && !met_present_key) return false;
    if (number_ && step.stored.is_number) return false;
    return step.stored.is_number ? !numbers_.contains(step.stored.number)
                                 : !bytes_.contains(step.stored.bytes);
  }

 private:
  void Add(const Step& step) {
    switch (step.needs) {
      case Needs::kNothing: break;
      case Needs::kAbsent: absence_ = true; break;
      case Needs::kPresent: presence_ = true; break;
      case Needs::kEqual: break;
      case Needs::kEqualOrAbsent: absence_ = true; break;
      case Needs::kNotEqual: inequality_ = true; break;
      case Needs::kNumber: number_ = true; break;
    }
    if (!step.ComparesEqual()) return;
    if (step.compared.is_number) {
      numbers_.insert(step.compared.number);
    } else {
      bytes_.insert(step.compared.bytes);
    }
  }

  bool absence_ = false;
  bool presence_ = false;
  bool inequality_ = false;
  bool number_ = false;
  std::set<uint64_t> numbers_;
  std::set<std::string_view> bytes_;
};

// The operations as they stood just after `event`.
std::vector<Operation> Prefix(std::span<const Operation> operations, uint64_t event) {
  std::vector<Operation> prefix;
  for (const Operation& operation : operations) {
    if (operation.invoked > event) continue;
    Operation& kept = prefix.emplace_back(operation);
    if (kept.returned == kNever || kept.returned <= event) continue;
    kept.fate = Fate::kMaybe;
    kept.returned = kNever;
  }
  return prefix;
}

class Shrinker {
 public:
  // The witness comes with the whole history of its key.
  Shrinker(Witness* witness, const CheckOptions& options, uint64_t max_effort)
      : witness_(*witness), options_(options), effort_left_(max_effort) {
    SetInitial(witness_.initial);
  }

  // The story of how the key got its value says more than the value. So the beginning is cut off only when
  // there is too much of it.
  void Run() {
    CutEnd();
    const size_t size = witness_.operations.size();
    if (size > kContext) CutBeginning(witness_.operations[size - kContext].invoked);
    LeaveOutWhatMayBe();
    if (witness_.operations.size() <= kReadable) return;
    CutBeginning(kNever);
    LeaveOutWhatMayBe();
  }

 private:
  bool StillFails(std::span<const Operation> operations);
  void SetInitial(std::optional<std::string> value);
  void CutEnd();
  void CutBeginning(uint64_t before);
  void LeaveOutWhatMayBe();
  bool LeaveOutOnce();
  bool LeaveOut(std::span<const size_t> indices);

  Witness& witness_;
  CheckOptions options_;  // with the initial value of the witness
  uint64_t effort_left_;
};

// False also when undecided, or when the effort is used up: then the attempt is dropped.
bool Shrinker::StillFails(std::span<const Operation> operations) {
  if (operations.size() > effort_left_) return false;
  effort_left_ -= operations.size();
  return CheckLinearizable(operations, options_).answer == Answer::kNotLinearizable;
}

void Shrinker::SetInitial(std::optional<std::string> value) {
  options_.initial.clear();
  if (value) options_.initial.emplace(witness_.key, *value);
  witness_.initial = std::move(value);
}

// To the shortest prefix that is not linearizable. All longer ones are not linearizable either, for an
// explanation of a history explains its prefixes; so the shortest is found by bisection. It ends with an
// answer: an invocation alone contradicts nothing.
void Shrinker::CutEnd() {
  std::vector<uint64_t> ends;
  for (const Operation& operation : witness_.operations) {
    if (operation.returned != kNever) ends.push_back(operation.returned);
  }
  std::sort(ends.begin(), ends.end());
  const auto end = std::partition_point(ends.begin(), ends.end(), [this](uint64_t event) {
    return !StillFails(Prefix(witness_.operations, event));
  });
  if (end != ends.end()) witness_.operations = Prefix(witness_.operations, *end);
}

// To the operations after the last moment before event `before` at which the value was certain. That these
// fail from there on is checked, because what is uncertain about the operations of that moment is decided
// in their favour; if they do not, an earlier moment is tried.
void Shrinker::CutBeginning(uint64_t before) {
  for (int i = 0; i < kMaxRestarts && witness_.operations.size() <= effort_left_; ++i) {
    effort_left_ -= witness_.operations.size();
    std::optional<Restart> restart = LastRestart(witness_.operations, before, options_);
    if (!restart) return;
    std::optional<std::string> initial = witness_.initial;
    SetInitial(restart->value);
    if (StillFails(restart->rest)) {
      witness_.replaced += witness_.operations.size() - restart->rest.size();
      witness_.operations = std::move(restart->rest);
      return;
    }
    SetInitial(std::move(initial));
    before = restart->event;
  }
}

// Until nothing more may be left out. Without the operation that the prefix was cut for, a shorter prefix
// may fail.
void Shrinker::LeaveOutWhatMayBe() {
  while (LeaveOutOnce()) CutEnd();
}

// Tries everything that may be left out: all of it, halves, quarters, and so on down to single operations.
// True if something was left out, after which more may be.
bool Shrinker::LeaveOutOnce() {
  const size_t size_before = witness_.operations.size();
  for (size_t chunk = std::bit_ceil(size_before + 1);; chunk /= 2) {
    size_t skipped = 0;  // of what may be left out: tried in vain
    while (witness_.operations.size() <= effort_left_) {
      const std::vector<bool> may = MayLeaveOut(witness_.operations);
      std::vector<size_t> candidates;
      for (size_t i = 0; i < may.size(); ++i) {
        if (may[i]) candidates.push_back(i);
      }
      if (skipped >= candidates.size()) break;
      const size_t count = std::min(chunk, candidates.size() - skipped);
      if (!LeaveOut(std::span(candidates).subspan(skipped, count))) skipped += count;
    }
    if (chunk == 1) break;
  }
  return witness_.operations.size() < size_before;
}

// `indices` are sorted. False, and nothing is left out, if the rest would not fail.
bool Shrinker::LeaveOut(std::span<const size_t> indices) {
  std::vector<Operation> rest;
  for (size_t i = 0; i < witness_.operations.size(); ++i) {
    if (!std::binary_search(indices.begin(), indices.end(), i)) rest.push_back(witness_.operations[i]);
  }
  if (!StillFails(rest)) return false;
  witness_.operations = std::move(rest);
  return true;
}

// The value that an operation was to store, whatever became of it.
const std::string* ValueToStore(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kPut:
    case Kind::kInsert:
    case Kind::kUpdate:
    case Kind::kCompareAndSet: return &operation.value;
    case Kind::kGet:
    case Kind::kDelete:
    case Kind::kIncrement:
    case Kind::kScan:
    case Kind::kLast:
    case Kind::kSeen: return nullptr;
  }
  return nullptr;
}

bool IsFoundButNotWritten(const Value& value, const Witness& witness) {
  if (witness.initial && Value::Of(*witness.initial) == value) return false;
  bool found = false;
  for (const Operation& operation : witness.operations) {
    const std::optional<Step> step = StepOf(operation);
    if (!step) continue;
    if (step->does == Does::kStore && step->stored == value) return false;
    found |= step->ComparesEqual() && step->compared == value;
  }
  return found;
}

std::vector<Operation> Suspects(std::span<const Operation> of_key, const Witness& witness) {
  std::vector<Operation> suspects;
  uint64_t end = 0;
  for (const Operation& operation : witness.operations) {
    if (operation.returned != kNever) end = std::max(end, operation.returned);
  }
  for (const Operation& operation : of_key) {
    const std::string* value = ValueToStore(operation);
    if (value == nullptr || operation.invoked > end) continue;
    const bool shown = std::any_of(witness.operations.begin(), witness.operations.end(),
                                   [&](const Operation& o) { return o.invoked == operation.invoked; });
    if (!shown && IsFoundButNotWritten(Value::Of(*value), witness)) suspects.push_back(operation);
  }
  if (suspects.size() > kMaxSuspects) suspects.erase(suspects.begin(), suspects.end() - kMaxSuspects);
  return suspects;
}

// A scan that is wrong by itself needs no other operation to show it.
Witness Malformed(std::span<const Operation> operations, const Verdict& verdict) {
  Witness witness;
  witness.malformed = verdict.malformed;
  for (const Operation& operation : operations) {
    if (operation.returned == verdict.event) witness.operations.push_back(operation);
  }
  return witness;
}

}  // namespace

Witness Shrink(std::span<const Operation> operations, const Verdict& verdict, const CheckOptions& options,
               const ShrinkOptions& limits) {
  assert(verdict.answer == Answer::kNotLinearizable);
  if (!verdict.malformed.empty()) return Malformed(operations, verdict);
  std::vector<Operation> apart;
  if (HasScans(operations)) {
    apart = TakeScansApart(operations, options);
    operations = apart;
  }
  Witness witness;
  witness.key = verdict.key;
  const auto initial = options.initial.find(verdict.key);
  if (initial != options.initial.end()) witness.initial = initial->second;

  std::vector<Operation> of_key;
  for (const Operation& operation : operations) {
    if (operation.key == verdict.key) of_key.push_back(operation);
  }
  std::sort(of_key.begin(), of_key.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });

  witness.operations = of_key;
  Shrinker(&witness, options, limits.max_effort).Run();
  witness.suspects = Suspects(of_key, witness);
  witness.left_out = of_key.size() - witness.replaced - witness.operations.size();
  return witness;
}

std::string ToString(const Witness& witness) {
  if (!witness.malformed.empty()) {
    return fmt::format("this answer is wrong whatever the table holds: {}\n{}", witness.malformed,
                       Chart(witness.operations));
  }
  std::string text = fmt::format("key {} ", Printable(witness.key));
  text += witness.initial ? fmt::format("holds {} at first.", Printable(*witness.initial))
                          : "is absent at first.";
  if (witness.replaced > 0) text += fmt::format(" Not shown: earlier operations ({}).", witness.replaced);
  if (witness.left_out > 0) text += fmt::format(" Left out: what does not matter ({}).", witness.left_out);
  std::vector<Operation> shown = witness.operations;
  shown.insert(shown.end(), witness.suspects.begin(), witness.suspects.end());
  return text + "\n" + Chart(shown);
}

std::vector<bool> MayLeaveOut(std::span<const Operation> operations) {
  const Needed needed(operations);
  std::vector<bool> may(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    const std::optional<Step> step = StepOf(operations[i]);
    may[i] = !step || needed.CannotTell(*step);
  }
  return may;
}

}  // namespace farside::check
