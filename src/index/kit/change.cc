#include "index/kit/change.h"

#include <fmt/format.h>

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

}  // namespace

Result<Decision> Decide(const Change& change, const std::optional<std::string_view>& found) {
  const Decision refused{};
  const bool present = found.has_value();
  switch (change.kind) {
    case ChangeKind::kPut: break;
    case ChangeKind::kIncrement: return Add(change, found);
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
