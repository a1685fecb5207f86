#include "index/reference/change.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"

namespace farside::index::reference {
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
  std::array<std::byte, 8> bytes;
  StoreU64(bytes.data(), counter);
  return Decision{.applied = true, .value = std::string(AsText(bytes)), .counter = counter};
}

}  // namespace

Result<Decision> Decide(const Change& change, const std::optional<std::string_view>& found) {
  const Decision refused{};
  const bool present = found.has_value();
  switch (change.kind) {
    case ChangeKind::kPut: break;
    case ChangeKind::kIncrement: return Add(change, found);
    case ChangeKind::kDelete: return Decision{.applied = present, .value = std::nullopt};
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
  return Decision{.applied = true, .value = std::string(change.value)};
}

}  // namespace farside::index::reference
