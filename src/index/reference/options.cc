#include "index/reference/options.h"

#include <array>
#include <string>

#include "index/kit/options.h"

namespace farside::index::reference {
namespace {

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"buckets",
     [](Options& o, const OptionText& given) { return Set(o.buckets, given.Number(1, 1'000'000)); }},
    kBackoffRule<Options>,
    kShareSearchesRule<Options>,
});

}  // namespace

Result<Options> Options::Parse(const OptionMap& options) {
  return ParseOptions("the reference table", kRules, options);
}

OptionMap Options::Recorded() const { return {{"buckets", std::to_string(buckets)}}; }

}  // namespace farside::index::reference
