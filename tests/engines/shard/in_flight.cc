#include "tests/engines/shard/in_flight.h"

#include <string>
#include <vector>

namespace farside::index::shard {

std::string ManyInFlightOften(uint64_t seeds) {
  const std::vector<OptionMap> shapes = (*MakeShardEngine({}))->stress_options();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const in_flight::Options options{.keys = 3, .together = true, .dies = seed % 2 == 0};
    const std::string problem =
        in_flight::ManyInFlight<World, Member>(seed, shapes[seed / 2 % shapes.size()], options);
    if (!problem.empty()) return "seed " + std::to_string(seed) + ": " + problem;
  }
  return "";
}

}  // namespace farside::index::shard
