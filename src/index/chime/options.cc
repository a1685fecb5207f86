#include "index/chime/options.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/bytes.h"

namespace farside::index::chime {
namespace {

Error Bad(std::string_view key, std::string_view text, std::string_view expected) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("option {}={}: expected {}", Escape(key), Escape(text), expected));
}

// Sets `target` if the text is a number from `low` to `high`.
template <class Target>
Status Set(std::string_view key, std::string_view text, uint64_t low, uint64_t high, Target& target) {
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < low || number > high)
    return Bad(key, text, fmt::format("a number from {} to {}", low, high));
  target = static_cast<Target>(number);
  return OkStatus();
}

// Sets `target` to the one of two that the text names.
template <class Target>
Status Choose(std::string_view key, std::string_view text, std::pair<std::string_view, Target> one,
              std::pair<std::string_view, Target> other, Target& target) {
  if (text != one.first && text != other.first)
    return Bad(key, text, fmt::format("{} or {}", one.first, other.first));
  target = text == one.first ? one.second : other.second;
  return OkStatus();
}

Status SetOne(Options& options, std::string_view key, std::string_view text) {
  Shape& shape = options.shape;
  if (key == "keys") {
    if (text != "bytes" && text != "inline") return Bad(key, text, "bytes or inline");
    shape.inline_keys = text == "inline";
    return OkStatus();
  }
  if (key == "span") return Set(key, text, 1, kMostSpan, shape.span);
  if (key == "neighbourhood") return Set(key, text, 1, kMostNeighbourhood, shape.neighbourhood);
  if (key == "fanout") return Set(key, text, 2, kMostFanout, shape.fanout);
  if (key == "cache") return Set(key, text, 0, uint64_t{1} << 44, options.cache_bytes);
  if (key == "hotspot") return Set(key, text, 0, uint64_t{1} << 38, options.hotspot_bytes);
  if (key == "leaf_read" || key == "insert_read") {
    return Choose<LeafRead>(key, text, {"neighbourhood", LeafRead::kNeighbourhood},
                            {"whole", LeafRead::kWhole},
                            key == "leaf_read" ? options.leaf_read : options.insert_read);
  }
  if (key == "fence_read") {
    return Choose<FenceRead>(key, text, {"absent", FenceRead::kAbsent}, {"always", FenceRead::kAlways},
                             options.fence_read);
  }
  if (key == "lock_read") {
    return Choose<LockRead>(key, text, {"together", LockRead::kTogether}, {"apart", LockRead::kApart},
                            options.lock_read);
  }
  if (key == "backoff_us") {
    uint64_t micros = 0;
    const Status set = Set(key, text, 1, 1'000'000, micros);
    if (set.ok()) options.backoff = std::chrono::microseconds(micros);
    return set;
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the chime table has no option '{}'; it has keys, span, neighbourhood, fanout, "
                           "cache, hotspot, leaf_read, insert_read, fence_read, lock_read, backoff_us",
                           Escape(key)));
}

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  Options parsed;
  for (const auto& [key, text] : options) {
    const Status set = SetOne(parsed, key, text);
    if (!set.ok()) return set.error();
  }
  if (parsed.shape.neighbourhood > parsed.shape.span) {
    // Who asks for small leaves need not know of neighbourhoods.
    if (options.contains("neighbourhood")) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("option neighbourhood={}: expected at most the span, {}",
                               parsed.shape.neighbourhood, parsed.shape.span));
    }
    parsed.shape.neighbourhood = parsed.shape.span;
  }
  return parsed;
}

OptionMap Options::Recorded() const {
  return {{"keys", shape.inline_keys ? "inline" : "bytes"},
          {"span", std::to_string(shape.span)},
          {"neighbourhood", std::to_string(shape.neighbourhood)},
          {"fanout", std::to_string(shape.fanout)}};
}

}  // namespace farside::index::chime
