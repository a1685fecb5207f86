// The memory of a node as its handlers see it: lines that clients share, and what makes them durable.
//
// Handlers of a node run one at a time, and so this is used by one thread at a time.
//
// INVARIANT handler/1: after a flush has failed, nothing that a handler stores becomes visible. It may have
// waited for the flush before it makes something visible; and what is visible must not be less durable than
// the handler believes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fabric/memory/line_memory.h"
#include "fabric/memory/medium.h"
#include "fabric/service.h"

namespace farside::fabric::memory {

class HandlerMemory final : public NodeMemory {
 public:
  // Without a medium, flushes have no effect. Both must outlive this.
  HandlerMemory(LineMemory& lines, Medium* medium) : lines_(lines), medium_(medium) {}
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  uint64_t bytes() const override { return lines_.bytes(); }
  uint64_t Load(uint64_t offset) const override { return lines_.Load(offset); }
  void Store(uint64_t offset, uint64_t word) override {
    if (!failed()) lines_.Store(offset, word);
  }

  bool failed() const { return medium_ != nullptr && medium_->failure().has_value(); }

  // Runs a handler. kOutcomeUnknown if a flush of it fails; from then on kUnavailable, without running any.
  Result<std::string> Handle(const CallTable& calls, CallId call, ClientId caller, std::string_view request);

  // As flushed(), from any thread: of the Calls that have ended.
  FlushCounts counts() const {
    return {counted_lines_.load(std::memory_order_relaxed), counted_drains_.load(std::memory_order_relaxed)};
  }

 private:
  void FlushLines(uint64_t offset, uint64_t size) override {
    if (medium_ != nullptr) medium_->Flush(offset, size);
  }
  void DrainLines() override {
    if (medium_ != nullptr) medium_->Drain();
  }

  LineMemory& lines_;
  Medium* const medium_;
  std::atomic<uint64_t> counted_lines_{0};
  std::atomic<uint64_t> counted_drains_{0};
};

}  // namespace farside::fabric::memory
