#include "base/size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside {
namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

// From the largest to the smallest.
constexpr std::array kUnits = {
    Unit{"TiB", uint64_t{1} << 40},
    Unit{"GiB", uint64_t{1} << 30},
    Unit{"MiB", uint64_t{1} << 20},
    Unit{"KiB", uint64_t{1} << 10},
    Unit{"", 1},
};

Error NotASize(std::string_view text) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("\"{}\" is not a size; write a whole number of bytes, KiB, MiB, GiB or TiB, "
                           "such as 4096 or 8GiB",
                           Escape(text)));
}

Error TooLarge(std::string_view text) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("\"{}\" is too large; a size is less than 16777216TiB", Escape(text)));
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  const char* const end = text.data() + text.size();
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::invalid_argument) return NotASize(text);

  const auto unit = std::ranges::find(kUnits, std::string_view(rest, end), &Unit::name);
  if (unit == kUnits.end()) return NotASize(text);
  if (error == std::errc::result_out_of_range) return TooLarge(text);
  if (number > std::numeric_limits<uint64_t>::max() / unit->bytes) return TooLarge(text);
  return number * unit->bytes;
}

std::string FormatSize(uint64_t bytes) {
  if (bytes == 0) return "0";
  const auto unit =
      std::ranges::find_if(kUnits, [bytes](const Unit& candidate) { return bytes % candidate.bytes == 0; });
  return fmt::format("{}{}", bytes / unit->bytes, unit->name);
}

}  // namespace farside
