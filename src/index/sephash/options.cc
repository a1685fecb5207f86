#include "index/sephash/options.h"

#include <array>
#include <bit>
#include <string>

#include "index/kit/options.h"

namespace farside::index::sephash {
namespace {

constexpr auto kFpTables = std::to_array<OptionWord<FpTableKind>>({
    {"points", FpTableKind::kPoints},
    {"naive", FpTableKind::kNaive},
    {"none", FpTableKind::kNone},
});
constexpr auto kSplitBy = std::to_array<OptionWord<SplitBy>>({
    {"entries", SplitBy::kEntries},
    {"blocks", SplitBy::kBlocks},
});

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"entries",
     [](Options& o, const OptionText& given) { return Set(o.shape.entries, given.Number(2, kMostEntries)); }},
    {"main", [](Options& o, const OptionText& given) { return Set(o.shape.main, given.Number(1, 4096)); }},
    {"segments",
     [](Options& o, const OptionText& given) -> Status {
       const Result<uint64_t> segments = given.PowerOfTwo(uint64_t{1} << kMostInitialBits);
       if (!segments.ok()) return segments.error();
       o.shape.initial_bits = static_cast<uint32_t>(std::countr_zero(*segments));
       return OkStatus();
     }},
    {"depth_bits",
     [](Options& o, const OptionText& given) {
       return Set(o.shape.depth_bits, given.Number(1, kMostDepthBits));
     }},
    {"fptable", [](Options& o, const OptionText& given) { return SetToOneOf(o.fp_table, given, kFpTables); }},
    {"filter", [](Options& o, const OptionText& given) { return SetToOneOf(o.filter, given, kNoYes); }},
    {"window",
     [](Options& o, const OptionText& given) { return Set(o.window, given.Number(0, kMostEntries)); }},
    {"zero_wait", [](Options& o, const OptionText& given) { return SetToOneOf(o.zero_wait, given, kNoYes); }},
    {"split_by", [](Options& o, const OptionText& given) { return SetToOneOf(o.split_by, given, kSplitBy); }},
    kBackoffRule<Options>,
    kShareSearchesRule<Options>,
});

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  return ParseOptions("the sephash table", kRules, options);
}

OptionMap Options::Recorded() const {
  return {{"entries", std::to_string(shape.entries)},
          {"main", std::to_string(shape.main)},
          {"segments", std::to_string(uint64_t{1} << shape.initial_bits)},
          {"depth_bits", std::to_string(shape.depth_bits)}};
}

}  // namespace farside::index::sephash
