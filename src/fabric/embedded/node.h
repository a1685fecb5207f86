// A memory node of the embedded fabric: its region, what makes it durable, and the lock under which its CPU
// answers Calls.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "fabric/memory/handler_memory.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/region.h"

namespace farside::fabric::embedded {

class Node {
 public:
  // Without a medium, what handlers flush has no effect, but is counted.
  Node(memory::Region region, std::unique_ptr<memory::Medium> medium)
      : region_(std::move(region)),
        stripes_(std::make_unique<memory::StripeTable>()),
        memory_(region_.bytes(), *stripes_),
        medium_(std::move(medium)),
        handler_memory_(memory_, medium_.get()) {}

  memory::LineMemory& memory() { return memory_; }
  // The same for handlers. Used by one thread at a time.
  memory::HandlerMemory& handler_memory() { return handler_memory_; }
  // Held while a handler runs: a node has one CPU.
  std::mutex& cpu() { return cpu_; }

 private:
  const memory::Region region_;
  const std::unique_ptr<memory::StripeTable> stripes_;
  memory::LineMemory memory_;
  const std::unique_ptr<memory::Medium> medium_;
  memory::HandlerMemory handler_memory_;
  std::mutex cpu_;
};

}  // namespace farside::fabric::embedded
