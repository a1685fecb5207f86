// What the timed fabric believes about the cluster: how long a message takes, and how much of everything a
// card can do. All figures are for one card; see docs/memory-model.md for where the defaults come from.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "farside/result.h"

namespace farside::fabric::sim {

// The defaults are a cluster of the class of 100 Gb/s ConnectX-5 and -6 cards on one switch.
struct NicModel {
  // ---- latency
  // Everything between the end of posting and the completion that does not depend on load or size: both
  // cards, the buses behind them, the switch, there and back.
  Nanos round_trip{2000};
  // A message takes up to this much longer, each way, drawn evenly from the seed. It keeps clients that do
  // the same from marching in step for ever. 0 draws nothing.
  Nanos jitter{50};

  // ---- the card
  uint64_t memory_verbs_per_second = 38'000'000;        // that a memory node's card executes
  uint64_t compute_verbs_per_second = 38'000'000;       // that a compute node's card sends
  uint64_t atomics_per_second = 9'000'000;              // of those executed, on different words
  uint64_t atomics_per_second_on_one_word = 2'500'000;  // which exclude each other across the bus
  uint64_t bits_per_second = 100'000'000'000;           // each way
  uint32_t header_bytes = 64;    // per packet: what the wire carries beside the payload
  uint32_t packet_bytes = 4096;  // the payload of the largest packet

  // ---- processors
  Nanos post_trip{70};   // of a client: the doorbell, per node of a trip
  Nanos post_verb{30};   // of a client: one entry of the queue
  Nanos completion{50};  // of a client: finding and reaping it, per node of a trip
  Nanos call{
      1500};  // of a memory node: taking a Call, running its handler, sending the answer; one at a time
  // Of a memory node, on top of `call`: what a handler makes durable, on memory of the class of Optane DC. To
  // write a line back (clwb) does not wait for it, but one DIMM takes no more than 2.3 GB/s, which is 28 ns a
  // line (Izraelevitz et al., arXiv:1903.05714). To drain (sfence) is to wait until the last line has come to
  // the controller of the memory, from where on it is durable: a store, clwb and sfence together take about
  // 60 ns there, not much more than on DRAM (Yang et al., FAST 2020).
  Nanos flush_line{30};
  Nanos drain{60};

  friend bool operator==(const NicModel&, const NicModel&) = default;
};

// A figure of the model, for the head of every report.
struct ModelFigure {
  std::string_view name;
  std::string_view unit;
  uint64_t value = 0;
};
std::vector<ModelFigure> FiguresOf(const NicModel& model);

// kInvalidArgument if no cluster can be like that.
Status Check(const NicModel& model);

}  // namespace farside::fabric::sim
