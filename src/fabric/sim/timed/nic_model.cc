#include "fabric/sim/timed/nic_model.h"

#include <fmt/format.h>

namespace farside::fabric::sim {
namespace {

// Rates are kept as whole picoseconds per item, so a higher one could not be told from infinity.
constexpr uint64_t kHighestRate = 1'000'000'000'000;
constexpr uint64_t kHighestBitRate = 8 * kHighestRate;
// A second is no network any more, and sums of such times stay far from overflow.
constexpr uint64_t kLongestNanos = 1'000'000'000;
constexpr uint64_t kLargestPacket = 1'048'576;

uint64_t Plain(Nanos time) { return static_cast<uint64_t>(time.count()); }

Error Refuse(const ModelFigure& figure, uint64_t least, uint64_t most) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{} is {} {} in the model of the cards; choose {} to {}", figure.name,
                           static_cast<int64_t>(figure.value), figure.unit, least, most));
}

}  // namespace

std::vector<ModelFigure> FiguresOf(const NicModel& model) {
  return {
      {"round_trip", "ns", Plain(model.round_trip)},
      {"jitter", "ns", Plain(model.jitter)},
      {"memory_verbs_per_second", "1/s", model.memory_verbs_per_second},
      {"compute_verbs_per_second", "1/s", model.compute_verbs_per_second},
      {"atomics_per_second", "1/s", model.atomics_per_second},
      {"atomics_per_second_on_one_word", "1/s", model.atomics_per_second_on_one_word},
      {"bits_per_second", "bit/s", model.bits_per_second},
      {"header_bytes", "B", model.header_bytes},
      {"packet_bytes", "B", model.packet_bytes},
      {"post_trip", "ns", Plain(model.post_trip)},
      {"post_verb", "ns", Plain(model.post_verb)},
      {"completion", "ns", Plain(model.completion)},
      {"call", "ns", Plain(model.call)},
      {"flush_line", "ns", Plain(model.flush_line)},
      {"drain", "ns", Plain(model.drain)},
  };
}

Status Check(const NicModel& model) {
  for (const ModelFigure& figure : FiguresOf(model)) {
    uint64_t least = 0;
    uint64_t most = kLongestNanos;
    if (figure.unit == "1/s" || figure.unit == "bit/s") {
      least = 1000;
      most = figure.unit == "1/s" ? kHighestRate : kHighestBitRate;
    } else if (figure.unit == "B") {
      least = figure.name == "packet_bytes" ? 1 : 0;
      most = kLargestPacket;
    }
    if (figure.value < least || figure.value > most) return Refuse(figure, least, most);
  }
  return OkStatus();
}

}  // namespace farside::fabric::sim
