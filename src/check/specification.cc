#include "check/specification.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <variant>

#include "base/bytes.h"

namespace farside::check {
namespace {

// What a conditional operation needs to be applied, and does then.
Step AppliedStep(const Operation& operation) {
  const Value value = Value::Of(operation.value);
  switch (operation.kind) {
    case Kind::kInsert: return {.needs = Needs::kAbsent, .does = Does::kStore, .stored = value};
    case Kind::kUpdate: return {.needs = Needs::kPresent, .does = Does::kStore, .stored = value};
    case Kind::kDelete: return {.needs = Needs::kPresent, .does = Does::kRemove};
    default: break;
  }
  assert(operation.kind == Kind::kCompareAndSet);
  return {.needs = Needs::kEqual,
          .does = operation.expected == operation.value ? Does::kNothing : Does::kStore,
          .compared = Value::Of(operation.expected),
          .stored = value};
}

Step NotAppliedStep(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kInsert: return {.needs = Needs::kPresent};
    case Kind::kUpdate:
    case Kind::kDelete: return {.needs = Needs::kAbsent};
    default: break;
  }
  assert(operation.kind == Kind::kCompareAndSet);
  return {.needs = Needs::kNotEqual, .compared = Value::Of(operation.expected)};
}

Step AnsweredStep(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kGet:
    case Kind::kSeen: {
      const auto& value = std::get<Found>(operation.outcome).value;
      if (!value) return {.needs = Needs::kAbsent};
      return {.needs = Needs::kEqual, .compared = Value::Of(*value)};
    }
    case Kind::kPut: {
      const std::optional<bool> inserted = std::get<Stored>(operation.outcome).inserted;
      const Needs needs = !inserted ? Needs::kNothing : *inserted ? Needs::kAbsent : Needs::kPresent;
      return {.needs = needs, .does = Does::kStore, .stored = Value::Of(operation.value)};
    }
    case Kind::kIncrement: {
      const uint64_t after = std::get<Counted>(operation.outcome).value;
      const uint64_t before = after - operation.delta;
      return {.needs = before == 0 ? Needs::kEqualOrAbsent : Needs::kEqual,
              .does = Does::kStore,
              .compared = Value::Number(before),
              .stored = Value::Number(after)};
    }
    default: break;
  }
  const bool applied = std::get<Applied>(operation.outcome).applied;
  return applied ? AppliedStep(operation) : NotAppliedStep(operation);
}

Step MaybeStep(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kGet:
    case Kind::kSeen:
    case Kind::kScan:
    case Kind::kLast: return {};
    case Kind::kPut: return {.does = Does::kStore, .stored = Value::Of(operation.value)};
    case Kind::kIncrement: return {.needs = Needs::kNumber, .does = Does::kAdd, .delta = operation.delta};
    default: return AppliedStep(operation);
  }
}

}  // namespace

Value Value::Of(std::string_view bytes) {
  if (bytes.size() != 8) return {.bytes = bytes};
  return Number(LoadU64(AsBytes(bytes).data()));
}

std::string Value::ToBytes() const {
  if (!is_number) return std::string(bytes);
  std::array<std::byte, 8> counter;
  StoreU64(counter.data(), number);
  return std::string(AsText(counter));
}

std::optional<Step> StepOf(const Operation& operation) {
  if (operation.refused()) return std::nullopt;
  assert((operation.kind != Kind::kScan && operation.kind != Kind::kLast) && "scans are taken apart first");
  if (operation.answered()) return AnsweredStep(operation);
  Step step = MaybeStep(operation);
  if (step.does == Does::kNothing) return std::nullopt;
  step.must = false;
  return step;
}

}  // namespace farside::check
