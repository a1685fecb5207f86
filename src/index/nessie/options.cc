#include "index/nessie/options.h"

#include <array>
#include <bit>
#include <string>

#include "index/kit/options.h"

namespace farside::index::nessie {
namespace {

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"slots",
     [](Options& o, const OptionText& given) -> Status {
       const Result<uint64_t> slots = given.PowerOfTwo(uint64_t{1} << kMostInitialBits);
       if (!slots.ok()) return slots.error();
       const auto bits = static_cast<uint32_t>(std::countr_zero(*slots));
       if (bits < kLeastInitialBits) return given.Expected("a power of two from 4");
       o.shape.initial_bits = bits;
       return OkStatus();
     }},
    {"grow", [](Options& o, const OptionText& given) { return SetToOneOf(o.grow, given, kNoYes); }},
    {"max_load",
     [](Options& o, const OptionText& given) { return Set(o.max_load, given.Fraction(1e-6, 1.0)); }},
    {"head_start",
     [](Options& o, const OptionText& given) { return Set(o.head_start, given.Fraction(0.0, 0.5)); }},
    {"alpha", [](Options& o, const OptionText& given) { return Set(o.alpha, given.Fraction(1e-6, 1e3)); }},
    {"burst", [](Options& o, const OptionText& given) { return Set(o.burst, given.Number(0, 1 << 20)); }},
    {"chain", [](Options& o, const OptionText& given) { return Set(o.chain, given.Number(0, kMostChain)); }},
    {"sweep", [](Options& o, const OptionText& given) { return Set(o.sweep, given.Number(0, kMostSweep)); }},
    kBackoffRule<Options>,
    kShareSearchesRule<Options>,
});

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  return ParseOptions("the nessie table", kRules, options);
}

OptionMap Options::Recorded() const { return {{"slots", std::to_string(uint64_t{1} << shape.initial_bits)}}; }

}  // namespace farside::index::nessie
