// What an operation and its answer say about the table: the sequential specification, in the few forms that
// the checker has to know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "check/history.h"

namespace farside::check {

// Bytes of a value. Those of 8 bytes are held as a number, so that counters need no memory of their own.
struct Value {
  std::string_view bytes = {};  // empty if it is a number
  uint64_t number = 0;
  bool is_number = false;

  static Value Of(std::string_view bytes);
  static Value Number(uint64_t number) { return {.number = number, .is_number = true}; }
  std::string ToBytes() const;
  friend bool operator==(const Value&, const Value&) = default;
};

// What must hold for an operation to happen with the answer it got.
enum class Needs : uint8_t {
  kNothing,
  kAbsent,
  kPresent,
  kEqual,          // present and equal to `compared`
  kEqualOrAbsent,  // for counters: `compared` is 0
  kNotEqual,       // absent, or present and different from `compared`
  kNumber,         // absent, or present with 8 bytes
};

// What an operation then does.
enum class Does : uint8_t { kNothing, kStore, kRemove, kAdd };

struct Step {
  Needs needs = Needs::kNothing;
  Does does = Does::kNothing;
  bool must = true;  // false: it may as well never happen
  Value compared = {};
  Value stored = {};   // of kStore
  uint64_t delta = 0;  // of kAdd, which only operations without an answer do: others know what they stored

  // Whether the key has to hold `compared`. (An increment to its delta also takes an absent key.)
  bool ComparesEqual() const { return needs == Needs::kEqual || needs == Needs::kEqualOrAbsent; }
};

// Nothing for operations that say nothing about the table: refused ones, and reads without an answer. Of one
// key: what scans say about it is kSeen (check/scans.h).
std::optional<Step> StepOf(const Operation& operation);

}  // namespace farside::check
