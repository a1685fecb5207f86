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
// 2. OBSERVATIONS. An operation whose answer proves that it changed nothing (a Get, a condition that did not
//    hold) happens as soon as the value fits: earlier is never worse, for it disturbs no other operation. It
//    loses its owed bit and is never spent.
//
// 3. OVERWRITTEN WRITES. Let q overwrite a present value without looking at it (Put, Update, Delete; a Put
//    also overwrites absence). Any write p that is pending at that moment and that only needs the key to be
//    present, or nothing, could have happened just before q: no operation would have seen it, and any number
//    of such writes could have happened there one after the other. Or p has yet to happen. So p is no longer
//    owed, but not spent: the configuration stands for both. (If q meets an absent key, this holds for those
//    p that need nothing.) When p returns, the configuration is kept as one in which p has happened and
//    extended as one in which it has not. Without this rule n concurrent Puts have 2^n configurations; with
//    it, n.
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
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/history.h"
#include "check/linearizability.h"
#include "check/linearizability/configurations.h"
#include "check/linearizability/key_history.h"

namespace farside::check::linearizability {

// Checks the history of one key. Can be used for many, one after the other.
class KeyCheck {
 public:
  // Named values cost rule 5, so the check is slower, but it can tell what the value is.
  enum class Values { kAnonymous, kNamed };

  explicit KeyCheck(const CheckOptions& options, Values values = Values::kAnonymous)
      : options_(options), history_(values == Values::kAnonymous) {}

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

  void Invoke(uint32_t action);
  void InvokeMaybe(const Pending& pending);
  void Return(uint32_t action);
  void Linearize(const Pending& returning);
  void Extend(size_t configuration, const Pending& returning);
  void FindChoices(size_t configuration);
  void AddMaybe(const Choice& choice);
  void Happen(size_t configuration, const Choice& choice, const Pending& returning);
  void ForgetSpentForGood();
  void MakeAnonymous(ValueId value);
  void RenameStored(ValueId value);
  void SpendInOrder(const Twins& twins, uint64_t* spent) const;
  bool IsAnonymousNow(ValueId value) const { return history_.IsAnonymous(value, event_); }

  void FreeOverwritten(const Action& by, ValueId value, uint64_t* owed) const;
  void Observe(ValueId value, uint64_t* owed) const;

  uint32_t TakeSlot();
  void Widen();
  bool SpentEverywhere(uint32_t slot);
  bool OwedEverywhere(uint32_t slot);
  bool OwedAnywhere(uint32_t slot);

  const CheckOptions& options_;
  KeyHistory history_;
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

}  // namespace farside::check::linearizability
