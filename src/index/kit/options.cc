#include "index/kit/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/bytes.h"

namespace farside::index {
namespace {

template <class Number>
std::optional<Number> Parse(std::string_view text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <class Number>
Result<Number> InRange(const OptionText& given, Number low, Number high) {
  const std::optional<Number> number = Parse<Number>(given.text);
  // Not a number is neither.
  if (!number.has_value() || !(*number >= low && *number <= high))
    return given.Expected(fmt::format("a number from {} to {}", low, high));
  return *number;
}

// If the kernel does not say, as much as small machines have.
uint64_t MachineBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page)
                               : uint64_t{1} << 30;
}

}  // namespace

Error OptionText::Expected(std::string_view what) const {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("option {}={}: expected {}", Escape(key), Escape(text), what));
}

Result<uint64_t> OptionText::Number(uint64_t low, uint64_t high) const { return InRange(*this, low, high); }

Result<double> OptionText::Fraction(double low, double high) const { return InRange(*this, low, high); }

Result<uint64_t> OptionText::PowerOfTwo(uint64_t most) const {
  const std::optional<uint64_t> number = Parse<uint64_t>(text);
  if (!number.has_value() || !std::has_single_bit(*number) || *number > most)
    return Expected(fmt::format("a power of two from 1 to {}", most));
  return *number;
}

Result<uint64_t> OptionText::MultipleOf(uint64_t unit, uint64_t most) const {
  const std::optional<uint64_t> number = Parse<uint64_t>(text);
  if (!number.has_value() || *number == 0 || *number % unit != 0 || *number > most)
    return Expected(fmt::format("a multiple of {} up to {}", unit, most));
  return *number;
}

Result<Nanos> OptionText::Micros(uint64_t low, uint64_t high) const {
  const Result<uint64_t> number = Number(low, high);
  if (!number.ok()) return number.error();
  return Nanos(std::chrono::microseconds(*number));
}

Result<uint64_t> OptionText::NumberInMemory(uint64_t bytes_each) const {
  const uint64_t most = std::bit_floor(MachineBytes() / 4 / bytes_each);
  const std::optional<uint64_t> number = Parse<uint64_t>(text);
  if (!number.has_value() || *number > most)
    return Expected(
        fmt::format("a number from 0 to {}, of {} byte{} each: a quarter of the machine's memory is "
                    "the most that a session may take for it",
                    most, bytes_each, bytes_each == 1 ? "" : "s"));
  return *number;
}

Result<size_t> OptionText::OneOf(std::span<const std::string_view> words) const {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) return Expected(fmt::format("{}", fmt::join(words, " or ")));
  return static_cast<size_t>(found - words.begin());
}

Error UnknownOption(std::string_view table, std::string_view key, std::span<const std::string_view> known) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{} has no option '{}'; it has {}", table, Escape(key), fmt::join(known, ", ")));
}

}  // namespace farside::index
