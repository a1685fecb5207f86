#include "index/shard/options.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "base/bytes.h"

namespace farside::index::shard {
namespace {

Error Bad(std::string_view key, std::string_view text, std::string_view expected) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("option {}={}: expected {}", Escape(key), Escape(text), expected));
}

template <class Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

// Sets `target` if the number is one from `low` to `high`.
template <class Number, class Target>
Status Set(std::string_view key, std::string_view text, Number low, Number high, Target& target) {
  Number number{};
  if (!ParseNumber(text, number) || !(number >= low && number <= high))
    return Bad(key, text, fmt::format("a number from {} to {}", low, high));
  target = static_cast<Target>(number);
  return OkStatus();
}

Status SetOne(Options& options, std::string_view key, std::string_view text) {
  if (key == "buckets") {
    uint64_t buckets = 0;
    if (!ParseNumber(text, buckets) || !std::has_single_bit(buckets) ||
        buckets > uint64_t{1} << kMostInitialBits)
      return Bad(key, text, fmt::format("a power of two from 1 to {}", uint64_t{1} << kMostInitialBits));
    options.shape.initial_bits = static_cast<uint32_t>(std::countr_zero(buckets));
    return OkStatus();
  }
  if (key == "slots") return Set<uint64_t>(key, text, 1, kMostLines * kSlotsPerLine, options.shape.slots);
  if (key == "overflow_slots")
    return Set<uint64_t>(key, text, 1, kSlotsPerLine, options.shape.overflow_slots);
  if (key == "max_load") return Set(key, text, 1e-6, 0.95, options.max_load);
  if (key == "head_start") return Set(key, text, 0.0, 0.5, options.head_start);
  if (key == "alpha") return Set(key, text, 1e-6, 1e3, options.alpha);
  if (key == "burst") return Set<uint64_t>(key, text, 0, 1 << 20, options.burst);
  if (key == "cache") return Set<uint64_t>(key, text, 0, uint64_t{1} << 32, options.cached_locations);
  if (key == "backoff_us") {
    uint64_t micros = 0;
    const Status set = Set<uint64_t>(key, text, 1, 1'000'000, micros);
    if (set.ok()) options.backoff = std::chrono::microseconds(micros);
    return set;
  }
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the shard table has no option '{}'; it has buckets, slots, overflow_slots, max_load, "
                  "head_start, alpha, burst, cache, backoff_us",
                  Escape(key)));
}

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  Options parsed;
  for (const auto& [key, text] : options) {
    const Status set = SetOne(parsed, key, text);
    if (!set.ok()) return set.error();
  }
  return parsed;
}

OptionMap Options::Recorded() const {
  return {{"buckets", std::to_string(uint64_t{1} << shape.initial_bits)},
          {"slots", std::to_string(shape.slots)},
          {"overflow_slots", std::to_string(shape.overflow_slots)}};
}

}  // namespace farside::index::shard
