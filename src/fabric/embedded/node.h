// A memory node of the embedded fabric: its region, and the lock under which its CPU answers Calls.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "fabric/memory/line_memory.h"
#include "fabric/memory/region.h"

namespace farside::fabric::embedded {

class Node {
 public:
  explicit Node(memory::Region region)
      : region_(std::move(region)),
        stripes_(std::make_unique<memory::StripeTable>()),
        memory_(region_.bytes(), *stripes_) {}

  memory::LineMemory& memory() { return memory_; }
  // Held while a handler runs: a node has one CPU.
  std::mutex& cpu() { return cpu_; }

 private:
  const memory::Region region_;
  const std::unique_ptr<memory::StripeTable> stripes_;
  memory::LineMemory memory_;
  std::mutex cpu_;
};

}  // namespace farside::fabric::embedded
