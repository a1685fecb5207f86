#include "index/continuity/options.h"

#include <array>
#include <string>

#include "index/kit/options.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kMostPairs = uint64_t{1} << 30;
constexpr uint64_t kMostEvery = 1'000'000;

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"pairs", [](Options& o, const OptionText& given) { return Set(o.pairs, given.Number(1, kMostPairs)); }},
    {"group_every",
     [](Options& o, const OptionText& given) { return Set(o.group_every, given.Number(0, kMostEvery)); }},
    {"bucket_slots",
     [](Options& o, const OptionText& given) { return Set(o.bucket_slots, given.Number(1, kBucketSlots)); }},
    {"shared_slots",
     [](Options& o, const OptionText& given) { return Set(o.shared_slots, given.Number(1, kSharedSlots)); }},
    {"group_slots",
     [](Options& o, const OptionText& given) { return Set(o.group_slots, given.Number(1, kGroupSlots)); }},
    kBackoffRule<Options>,
    kShareSearchesRule<Options>,
});

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  Result<Options> parsed = ParseOptions("the continuity table", kRules, options);
  if (parsed.ok() && parsed->group_slots > parsed->shared_slots) {
    return Error(ErrorCode::kInvalidArgument,
                 "a group of the continuity table has at most as many slots as a shared region: choose a "
                 "smaller group_slots, or a larger shared_slots");
  }
  return parsed;
}

OptionMap Options::Recorded() const {
  const Options defaults;
  OptionMap recorded{{"pairs", std::to_string(pairs)}, {"group_every", std::to_string(group_every)}};
  if (bucket_slots != defaults.bucket_slots) recorded["bucket_slots"] = std::to_string(bucket_slots);
  if (shared_slots != defaults.shared_slots) recorded["shared_slots"] = std::to_string(shared_slots);
  if (group_slots != defaults.group_slots) recorded["group_slots"] = std::to_string(group_slots);
  return recorded;
}

}  // namespace farside::index::continuity
