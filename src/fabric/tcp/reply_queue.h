// The replies to a client that are not sent yet.
//
// Behind every reply there is room for an error and a goodbye, so that to send a client away takes no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/tcp/byte_queue.h"
#include "fabric/tcp/wire.h"
#include "farside/result.h"

namespace farside::fabric::tcp {

class ReplyQueue : public ByteQueue {
 public:
  // A message for people, as it is sent.
  static constexpr size_t kMessageBytes = sizeof(wire::ReplyHeader) + wire::kMaxMessageBytes;

  using ByteQueue::ByteQueue;

  // The memory that a reply of so many bytes, with its header, takes before it gives back what there is.
  size_t GrowthForReply(size_t bytes) const { return GrowthFor(bytes + kLastRoom); }

  // Adds answers of so many bytes, which the caller writes to the address that it returns.
  std::byte* AddAnswers(uint64_t body_bytes);
  // Adds an error instead of answers. Other replies may follow.
  void AddError(ErrorCode code, std::string_view message);
  // These use the room behind the last reply: no answers follow. The error is that of a request which is
  // broken off.
  void AddLastError(ErrorCode code, std::string_view message) {
    AddMessage(wire::ReplyKind::kError, code, message);
  }
  void AddGoodbye(ErrorCode code, std::string_view message) {
    AddMessage(wire::ReplyKind::kGoodbye, code, message);
  }

 private:
  static constexpr size_t kLastRoom = 2 * kMessageBytes;

  void AddMessage(wire::ReplyKind kind, ErrorCode code, std::string_view message);
};

}  // namespace farside::fabric::tcp
