// Is a history linearizable? Did every operation seem to happen at one moment between its invocation and
// its answer, so that the answers are those of a table used by one client at a time?
//
// Scans are no such operations. They promise less, which is checked too (check/scans.h): each is taken apart
// into what it says about every single key, and that must fit into the history of the key like a Get.
//
// Keys are independent objects, and linearizability is composable (Herlihy and Wing 1990): a history is
// linearizable if the operations on each key are. So each key is checked alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/history.h"

namespace farside::check {

struct CheckOptions {
  // What the table held before the first event. All other keys were absent.
  std::map<std::string, std::string, std::less<>> initial;

  // Bounds per key. Past either of them the verdict is kUndecided, never "linearizable".
  size_t max_configurations = size_t{1} << 16;  // at one event: bounds the memory
  uint64_t max_steps = uint64_t{1} << 28;       // tried or compared in all: bounds the time
};

enum class Answer { kLinearizable, kNotLinearizable, kUndecided };

struct Verdict {
  Answer answer = Answer::kLinearizable;

  // Unless linearizable: the key, and the event at which nothing could explain the history any more or the
  // check gave up. Of several keys, the one with the first such event; a violation comes before giving up.
  // The check knows all answers beforehand: the event may lie before the answer that contradicts it.
  std::string key;
  uint64_t event = kNever;

  // Not empty: no key is to blame, but the scan that returned at `event`, whose answer can be no scan's; and
  // why.
  std::string malformed = {};

  uint64_t steps = 0;  // spent on all keys

  bool ok() const { return answer == Answer::kLinearizable; }
};

// Event numbers must be distinct; the order of the operations does not matter.
Verdict CheckLinearizable(std::span<const Operation> operations, const CheckOptions& options = {});

inline Verdict CheckLinearizable(const History& history, const CheckOptions& options = {}) {
  return CheckLinearizable(history.operations(), options);
}

std::string ToString(const Verdict& verdict);

// A moment after which the rest of a key's history can be judged without what came before.
struct Restart {
  uint64_t event = 0;                // the moment is just after this event
  std::optional<std::string> value;  // what the key held then, in every possible explanation
  std::vector<Operation> rest;       // what may still happen or be answered then, and all that came later
};

// The last such moment before event `before`, if there is one. The rest is never harder to explain than
// the whole: if it is not linearizable from `value` on, then the whole history is not linearizable. (The
// initial configuration of the rest dominates every configuration of that moment; see KeyCheck::Rest.)
// All operations must be of one key.
std::optional<Restart> LastRestart(std::span<const Operation> operations, uint64_t before,
                                   const CheckOptions& options = {});

}  // namespace farside::check
