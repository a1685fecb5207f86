// What an exploration may find.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace farside::check {

enum class Conclusion : uint8_t {
  kNothing,  // all reachable states were visited, and nothing is wrong
  kCut,      // nothing is wrong, but paths on which a client needed too many trips were not followed
  kLimit,    // nothing is wrong so far, but the search ended before it had visited all states
  kNotLinearizable,
  kInvariantBroken,  // of the region, or the final check
  kStuck,            // a client waits for ever, or its program gave up
  kUnfit,            // the scenario itself is wrong: `what` says how
};
std::string_view Name(Conclusion conclusion);

struct Problem {
  Conclusion conclusion = Conclusion::kNothing;
  std::string what;
};

}  // namespace farside::check
