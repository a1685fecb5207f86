// A frame with fences in it. It is executed in pieces: at each fence the connection leaves its gate, and goes
// on with the frame when the fence is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/memory/line_memory.h"
#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp {

class ParkedFrame {
 public:
  enum class Stop : uint8_t {
    kFence,      // of victim()
    kStuckLine,  // a verb has waited too long for a line
    kEnd,        // all was executed
  };

  // The verbs of the frame point into bytes that were received, which stay where they are meanwhile.
  explicit ParkedFrame(const wire::Frame& frame);

  // Executes its verbs up to the next fence, which is up to the caller. Inside the gate of the connection.
  Stop Execute(memory::LineMemory& memory);
  ClientId victim() const { return victim_; }
  bool AtEnd() const { return next_ == frame_.count; }
  // Whether a verb that has had its turn may have changed something.
  bool changed() const { return changed_; }
  // With its header, as it was received.
  size_t total_bytes() const { return total_bytes_; }
  std::span<const std::byte> answers() const { return answers_; }

 private:
  wire::Frame frame_;
  size_t next_ = 0;  // the verb to go on with
  bool changed_ = false;
  ClientId victim_ = ClientId::kNone;
  size_t total_bytes_ = sizeof(wire::FrameHeader);
  std::vector<std::byte> answers_;
  std::byte* next_answer_;
};

}  // namespace farside::fabric::tcp
