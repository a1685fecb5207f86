#include "fabric/memory/handler_memory.h"

#include <fmt/format.h>

namespace farside::fabric::memory {

Result<std::string> HandlerMemory::Handle(const CallTable& calls, CallId call, ClientId caller,
                                          std::string_view request) {
  if (failed()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("this node answers no Calls any more, because a flush has failed: {}",
                             medium_->failure()->message()));
  }
  if (thread_ != nullptr) static_cast<void>(thread_->Begin());
  Result<std::string> reply = calls.Handle(call, *this, caller, request);
  counted_lines_.store(flushed().lines, std::memory_order_relaxed);
  counted_drains_.store(flushed().drains, std::memory_order_relaxed);
  if (failed()) {
    return Error(ErrorCode::kOutcomeUnknown,
                 fmt::format("what was called may be lost in a power cut, because a flush has failed: {}",
                             medium_->failure()->message()));
  }
  if (gave_up()) return Error(ErrorCode::kOutcomeUnknown, std::string(kStuckLine));
  return reply;
}

}  // namespace farside::fabric::memory
