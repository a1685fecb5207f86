#include "index/chime/options.h"

#include <fmt/format.h>

#include "index/kit/options.h"

namespace farside::index::chime {
namespace {

constexpr auto kInlineKeys = std::to_array<OptionWord<bool>>({{"bytes", false}, {"inline", true}});
constexpr auto kLeafReads = std::to_array<OptionWord<LeafRead>>(
    {{"neighbourhood", LeafRead::kNeighbourhood}, {"whole", LeafRead::kWhole}});
constexpr auto kFenceReads =
    std::to_array<OptionWord<FenceRead>>({{"absent", FenceRead::kAbsent}, {"always", FenceRead::kAlways}});
constexpr auto kLockReads =
    std::to_array<OptionWord<LockRead>>({{"together", LockRead::kTogether}, {"apart", LockRead::kApart}});

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"keys",
     [](Options& o, const OptionText& given) { return SetToOneOf(o.shape.inline_keys, given, kInlineKeys); }},
    {"span",
     [](Options& o, const OptionText& given) { return Set(o.shape.span, given.Number(1, kMostSpan)); }},
    {"neighbourhood",
     [](Options& o, const OptionText& given) {
       return Set(o.shape.neighbourhood, given.Number(1, kMostNeighbourhood));
     }},
    {"fanout",
     [](Options& o, const OptionText& given) { return Set(o.shape.fanout, given.Number(2, kMostFanout)); }},
    {"cache", [](Options& o,
                 const OptionText& given) { return Set(o.cache_bytes, given.Number(0, uint64_t{1} << 44)); }},
    {"hotspot",
     [](Options& o, const OptionText& given) { return Set(o.hotspot_bytes, given.NumberInMemory(1)); }},
    {"leaf_read",
     [](Options& o, const OptionText& given) { return SetToOneOf(o.leaf_read, given, kLeafReads); }},
    {"insert_read",
     [](Options& o, const OptionText& given) { return SetToOneOf(o.insert_read, given, kLeafReads); }},
    {"fence_read",
     [](Options& o, const OptionText& given) { return SetToOneOf(o.fence_read, given, kFenceReads); }},
    {"lock_read",
     [](Options& o, const OptionText& given) { return SetToOneOf(o.lock_read, given, kLockReads); }},
    kBackoffRule<Options>,
    kShareSearchesRule<Options>,
});

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  Result<Options> parsed = ParseOptions("the chime table", kRules, options);
  if (!parsed.ok()) return parsed;
  Shape& shape = parsed->shape;
  if (shape.neighbourhood > shape.span) {
    // The default follows the span: `span=4` alone is no error.
    if (options.contains("neighbourhood")) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("option neighbourhood={}: expected at most the span, {}", shape.neighbourhood,
                               shape.span));
    }
    shape.neighbourhood = shape.span;
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
