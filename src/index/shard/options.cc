#include "index/shard/options.h"

#include <bit>

#include "index/kit/options.h"
#include "index/shard/location_cache.h"

namespace farside::index::shard {
namespace {

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"buckets",
     [](Options& o, const OptionText& given) -> Status {
       const Result<uint64_t> buckets = given.PowerOfTwo(uint64_t{1} << kMostInitialBits);
       if (!buckets.ok()) return buckets.error();
       o.shape.initial_bits = static_cast<uint32_t>(std::countr_zero(*buckets));
       return OkStatus();
     }},
    {"slots",
     [](Options& o, const OptionText& given) {
       return Set(o.shape.slots, given.Number(1, kMostLines * kSlotsPerLine));
     }},
    {"overflow_slots",
     [](Options& o, const OptionText& given) {
       return Set(o.shape.overflow_slots, given.Number(1, kSlotsPerLine));
     }},
    {"max_load",
     [](Options& o, const OptionText& given) { return Set(o.max_load, given.Fraction(1e-6, 0.95)); }},
    {"head_start",
     [](Options& o, const OptionText& given) { return Set(o.head_start, given.Fraction(0.0, 0.5)); }},
    {"alpha", [](Options& o, const OptionText& given) { return Set(o.alpha, given.Fraction(1e-6, 1e3)); }},
    {"burst", [](Options& o, const OptionText& given) { return Set(o.burst, given.Number(0, 1 << 20)); }},
    {"cache",
     [](Options& o, const OptionText& given) {
       o.cached_locations.reset();
       if (given.text == "auto") return OkStatus();
       return Set(o.cached_locations, given.NumberInMemory(LocationCache::kBytesEach));
     }},
    {"backoff_us",
     [](Options& o, const OptionText& given) { return Set(o.backoff, given.Micros(1, 1'000'000)); }},
});

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  return ParseOptions("the shard table", kRules, options);
}

OptionMap Options::Recorded() const {
  return {{"buckets", std::to_string(uint64_t{1} << shape.initial_bits)},
          {"slots", std::to_string(shape.slots)},
          {"overflow_slots", std::to_string(shape.overflow_slots)}};
}

}  // namespace farside::index::shard
