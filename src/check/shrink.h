// From a history that is not linearizable to a short one that shows it to a person.
//
// The witness is honest: it consists of operations of the history with the answers they got, and whatever
// was left out could not have excused them. If the witness is not linearizable, the history is not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/history.h"
#include "check/linearizability.h"

namespace farside::check {

struct ShrinkOptions {
  uint64_t max_effort = uint64_t{1} << 24;  // operations checked, over all attempts
};

struct Witness {
  std::string key;  // of all operations: of scans, only what they say about this key is left
  std::optional<std::string> initial;  // what the key held before these operations
  std::vector<Operation> operations;   // in order of invocation; kMaybe if not answered before the end

  // No part of the proof: if a value was found that these operations do not write, where it may come from.
  // Operations that were to write it, but were refused, did not apply, or were overwritten before.
  std::vector<Operation> suspects;

  // As in Verdict: the one operation is a scan that is wrong by itself, and there is no key.
  std::string malformed = {};

  size_t replaced = 0;  // earlier operations on the key, of which only the initial value was kept
  size_t left_out = 0;  // other operations on the key, which do not matter
};

// `verdict` is what CheckLinearizable said of these operations and options: a violation.
Witness Shrink(std::span<const Operation> operations, const Verdict& verdict,
               const CheckOptions& options = {}, const ShrinkOptions& limits = {});

inline Witness Shrink(const History& history, const Verdict& verdict, const CheckOptions& options = {},
                      const ShrinkOptions& limits = {}) {
  return Shrink(history.operations(), verdict, options, limits);
}

// For print: what the key held, what is not shown, and the chart.
std::string ToString(const Witness& witness);

// For each operation of a history of one key: whether the history stays linearizable, if it is, when this
// operation is taken out. False when in doubt. Several may be taken out together.
std::vector<bool> MayLeaveOut(std::span<const Operation> operations);

}  // namespace farside::check
