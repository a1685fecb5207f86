// The memory of a node as its handlers see it: lines that clients share, and what makes them durable.
//
// Handlers of a node run one at a time, and so this is used by one thread at a time.
//
// INVARIANT handler/1: after a flush has failed, nothing that a handler stores becomes visible. It may have
// waited for the flush before it makes something visible; and what is visible must not be less durable than
// the handler believes.
//
// INVARIANT handler/2: after a handler has given up on a line (line_patience.h), nothing that it stores
// becomes visible. What it loaded may mean nothing, and a store is missing. So memory is as if the handler
// had been stopped there, as by a power cut, but that it still makes durable what it had stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fabric/memory/line_memory.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/thread_memory.h"
#include "fabric/service.h"

namespace farside::fabric::memory {

class HandlerMemory final : public NodeMemory {
 public:
  // Without a medium, flushes have no effect. Both must outlive this.
  HandlerMemory(LineMemory& lines, Medium* medium) : lines_(lines), medium_(medium) {}
  // The same, and a handler is a piece of work of this thread.
  HandlerMemory(ThreadMemory& thread, Medium* medium)
      : lines_(thread.Begin()), medium_(medium), thread_(&thread) {}
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  uint64_t bytes() const override { return lines_.bytes(); }
  uint64_t Load(uint64_t offset) const override { return lines_.Load(offset); }
  void Store(uint64_t offset, uint64_t word) override {
    if (!failed() && !gave_up()) lines_.Store(offset, word);
  }

  bool failed() const { return medium_ != nullptr && medium_->failure().has_value(); }

  // Runs a handler. kOutcomeUnknown if it gives up on a line, or if a flush of it fails; from then on,
  // without running any, kUnavailable.
  Result<std::string> Handle(const CallTable& calls, CallId call, ClientId caller, std::string_view request);

  // As flushed(), from any thread: of the Calls that have ended.
  FlushCounts counts() const {
    return {counted_lines_.load(std::memory_order_relaxed), counted_drains_.load(std::memory_order_relaxed)};
  }

 private:
  bool gave_up() const { return thread_ != nullptr && thread_->gave_up(); }
  void FlushLines(uint64_t offset, uint64_t size) override {
    if (medium_ != nullptr) medium_->Flush(offset, size);
  }
  void DrainLines() override {
    if (medium_ != nullptr) medium_->Drain();
  }

  LineMemory& lines_;
  Medium* const medium_;
  ThreadMemory* const thread_ = nullptr;
  std::atomic<uint64_t> counted_lines_{0};
  std::atomic<uint64_t> counted_drains_{0};
};

}  // namespace farside::fabric::memory
