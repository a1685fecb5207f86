#include "fabric/tcp/reply_queue.h"

#include <span>

namespace farside::fabric::tcp {

std::byte* ReplyQueue::AddAnswers(uint64_t body_bytes) {
  wire::ReplyHeader header;
  header.body_bytes = static_cast<uint32_t>(body_bytes);
  std::byte* const at = Reserve(sizeof(header) + body_bytes + kLastRoom);
  Commit(sizeof(header) + body_bytes);
  return wire::Store(header, at);
}

void ReplyQueue::AddError(ErrorCode code, std::string_view message) {
  Reserve(kMessageBytes + kLastRoom);
  AddMessage(wire::ReplyKind::kError, code, message);
}

void ReplyQueue::AddMessage(wire::ReplyKind kind, ErrorCode code, std::string_view message) {
  message = message.substr(0, wire::kMaxMessageBytes);
  wire::ReplyHeader header;
  header.body_bytes = static_cast<uint32_t>(message.size());
  header.kind = kind;
  header.status = wire::StatusOf(code);
  Append(std::as_bytes(std::span(&header, 1)));
  Append(std::as_bytes(std::span(message)));
}

}  // namespace farside::fabric::tcp
