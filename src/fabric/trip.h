// A trip: verbs posted together and awaited together, one round trip.
//
// Trip is what a backend sees. It lives in the frame of the coroutine that awaits it, so that posting
// allocates nothing; TripAwaiter (op.h) builds it from typed verbs.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "fabric/verb.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::fabric {

enum class Order : uint8_t {
  kInOrder,   // verbs take effect in posting order, as far as MustPrecede promises; one node
  kTogether,  // no order; may go to several nodes at once
};

inline constexpr size_t kMaxVerbsPerTrip = 64;
// Devices answer about this many READs and atomics per round trip; more are counted as more trips.
inline constexpr size_t kAnsweredVerbsPerRoundTrip = 16;

class Trip {
 public:
  Trip() = default;
  Trip(const Trip&) = delete;
  Trip& operator=(const Trip&) = delete;

  std::span<Verb> verbs;
  Order order = Order::kInOrder;

  // ---- for the backend
  // Ends the trip. The answers stand in the verbs already.
  void Succeed() { done_ = true; }
  void Fail(Error error) {
    error_.emplace(std::move(error));
    done_ = true;
  }
  // Lets the waiter go on, after Succeed or Fail. The trip may be gone afterwards.
  void Resume() {
    if (waiter_ == nullptr) return;
    if (error_.has_value() && failing_ != nullptr) {
      failing_->Fail(std::move(*error_)).resume();
    } else {
      waiter_.resume();
    }
  }
  void* backend_data = nullptr;  // for the backend alone, while the trip is in flight

  // ---- for the awaiter
  bool done() const { return done_; }
  bool failed() const { return error_.has_value(); }
  Error TakeError() { return std::move(*error_); }
  // `failing` is the promise that an error ends; null if the waiter looks at the outcome itself.
  void SetWaiter(std::coroutine_handle<> waiter, PromiseBase* failing) {
    waiter_ = waiter;
    failing_ = failing;
  }

 private:
  bool done_ = false;
  std::optional<Error> error_;
  std::coroutine_handle<> waiter_;
  PromiseBase* failing_ = nullptr;
};

// What a trip is counted as. Verbs to several nodes at once are one trip per node, but one in depth.
// Fences and more than kAnsweredVerbsPerRoundTrip READs and atomics to one node cost further round trips.
struct TripCost {
  uint64_t trips = 0;
  uint64_t depth = 0;
};
TripCost CostOf(std::span<const Verb> verbs);

// Whether a verb stays inside the region of its node, and an atomic is aligned.
inline bool IsInBounds(const Verb& verb, std::span<const uint64_t> region_bytes) {
  const size_t node = Index(verb.at.node);
  if (node >= region_bytes.size()) return false;
  if (IsControl(verb.kind)) return true;
  const uint64_t size = region_bytes[node];
  if (verb.size > size || verb.at.offset > size - verb.size) return false;
  return !IsAtomic(verb.kind) || verb.at.offset % 8 == 0;
}
// An error if a verb reaches outside its region or an atomic is not aligned: pointers come from far
// memory, which may be damaged, so backends check every trip with this before they execute it.
std::optional<Error> CheckBounds(std::span<const Verb> verbs, std::span<const uint64_t> region_bytes);

// The error of a trip whose completion will not come: unknown outcome if it could have changed anything.
Error LostCompletion(std::span<const Verb> verbs, std::string_view why);

}  // namespace farside::fabric
