// One run: some clients, each a thread with a connection of its own, ask a system for as long as they are
// told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "bench/peers/batch.h"
#include "bench/peers/interrupt.h"
#include "bench/peers/system.h"
#include "farside/result.h"

namespace farside::peers {

struct RunPlan {
  Operation operation = Operation::kGet;
  size_t depth = 1;
  size_t value_size = 64;
  uint64_t records = 0;
  uint64_t seed = 1;  // the same one draws the same keys for every system
  Nanos duration{0};
};

// Latencies are those of whole batches: from the first byte that is sent to the last answer that was
// verified.
struct Figures {
  double ops_per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// A client per connection. What the driver does itself, drawing keys and making and verifying values, is part
// of the throughput; drawing and making are no part of the latency.
Result<Figures> Measure(std::span<const std::unique_ptr<Connection>> connections, const RunPlan& plan,
                        const Manner& manner, Interrupt& interrupt);

// Writes, or reads, every record once.
Status PerformOnAll(Operation operation, Connection& connection, const Manner& manner, uint64_t records,
                    size_t value_size, Interrupt& interrupt);

inline constexpr size_t kLoadDepth = 64;

}  // namespace farside::peers
