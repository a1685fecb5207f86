// One fault at one verb, or at one step of a handler: what the crash sweep injects, exactly once and at an
// exact place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace farside::fabric::sim {

enum class FaultKind : uint8_t {
  kCrashBefore,     // the client dies; this verb and what has not taken effect yet never does
  kCrashMid,        // the client dies when the first part of this verb has taken effect
  kCrashAfter,      // the client dies when this verb, and nothing after it, has taken effect
  kLoseCompletion,  // the whole trip takes effect, but its client never hears of it
  kSleepBefore,     // the client falls asleep for long, this verb still on the way
  kSleepAfter,      // the client falls asleep for long when this verb has taken effect
  kPowerCut,  // the power of a durable node is cut when this step of a handler, and none after it, is done
};
// Those at a verb.
inline constexpr std::array kAllFaultKinds = {FaultKind::kCrashBefore, FaultKind::kCrashMid,
                                              FaultKind::kCrashAfter,  FaultKind::kLoseCompletion,
                                              FaultKind::kSleepBefore, FaultKind::kSleepAfter};
std::string_view Name(FaultKind kind);
// Also kPowerCut.
std::optional<FaultKind> FaultKindFromName(std::string_view name);

struct Fault {
  // A verb, counted from 0 over all clients in the order of posting; for kPowerCut, a step of a handler: a
  // store, flush or drain, counted from 0 over all durable nodes in the order in which they happen.
  uint64_t verb = 0;
  FaultKind kind = FaultKind::kCrashBefore;
};

}  // namespace farside::fabric::sim
