#include "index/kit/change.h"

#include <fmt/format.h>

#include "pool/mutants.h"

namespace farside::index {
namespace {

Result<Decision> Add(const Change& change, const std::optional<std::string_view>& found) {
  uint64_t counter = 0;
  if (found.has_value()) {
    if (found->size() != 8) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("the value has {} bytes; a counter has 8", found->size()));
    }
    counter = LoadU64(AsBytes(*found).data());
  }
  counter += change.delta;
  Decision added{.applied = true, .counter = counter};
  StoreU64(added.counter_bytes.data(), counter);
  return added;
}

// INVARIANT evac/1: the value that is copied was read through the entry that is about to be changed. What an
// evacuation read of the block says which key to look for, and how large a copy is; the block may have been
// given back since, and hold another value of the key.
Decision Move(const Change& change, const std::optional<std::string_view>& found, fabric::FarAddr block) {
  const bool stands_there = found.has_value() && block == change.victim;
  if (!stands_there || found->size() != change.value.size()) return {};
  return {.applied = true, .moved = Mutant(pool::kHandsOutAndCopiesEarly) ? change.value : *found};
}

}  // namespace

Result<Decision> Decide(const Change& change, const std::optional<std::string_view>& found,
                        fabric::FarAddr block) {
  const Decision refused{};
  const bool present = found.has_value();
  switch (change.kind) {
    case ChangeKind::kPut: break;
    case ChangeKind::kIncrement: return Add(change, found);
    case ChangeKind::kTouch: return Move(change, found, block);
    case ChangeKind::kDelete: return Decision{.applied = present, .removes = present};
    case ChangeKind::kInsert:
      if (present) return refused;
      break;
    case ChangeKind::kUpdate:
      if (!present) return refused;
      break;
    case ChangeKind::kCompareAndSet:
      if (!present || *found != change.expected) return refused;
      break;
  }
  return Decision{.applied = true};
}

}  // namespace farside::index
