#include "index/continuity/request.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "index/continuity/layout.h"

namespace farside::index::continuity {
namespace {

template <class Fixed>
Result<Fixed> DecodeFixed(std::string_view bytes) {
  if (bytes.size() != sizeof(Fixed)) {
    return Error(
        ErrorCode::kVersionMismatch,
        fmt::format("a message of the continuity table has {} bytes instead of {}; use one version of "
                    "farside everywhere",
                    bytes.size(), sizeof(Fixed)));
  }
  Fixed fixed;
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  return fixed;
}

// Of a byte that becomes a bool: another value would be none.
bool IsBool(char byte) { return byte == 0 || byte == 1; }

}  // namespace

std::string Encode(const ChangeRequest& request) {
  std::string bytes;
  bytes.reserve(sizeof request.head + request.key.size() + request.expected.size() + request.value.size());
  bytes.append(reinterpret_cast<const char*>(&request.head), sizeof request.head);
  return bytes.append(request.key).append(request.expected).append(request.value);
}

Result<ChangeRequest> DecodeChange(std::string_view bytes) {
  const auto refuse = [](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("a change of a continuity table {}", why));
  };
  ChangeRequest request;
  if (bytes.size() < sizeof request.head) return refuse("is cut short");
  if (!IsBool(bytes[offsetof(ChangeHead, group_beyond_share)]))
    return refuse("has an impossible group_beyond_share");
  std::memcpy(&request.head, bytes.data(), sizeof request.head);
  const ChangeHead& head = request.head;
  if (head.kind > ChangeKind::kTouch) return refuse("is of a kind that there is not");
  std::string_view rest = bytes.substr(sizeof head);
  if (head.operands.bytes == 0) {
    if (rest.size() < head.key_bytes || rest.size() - head.key_bytes < head.expected_bytes)
      return refuse("is cut short");
    request.key = rest.substr(0, head.key_bytes);
    request.expected = rest.substr(head.key_bytes, head.expected_bytes);
    rest.remove_prefix(size_t{head.key_bytes} + head.expected_bytes);
  }
  if (rest.size() != head.value_bytes) return refuse("has another number of bytes than it says");
  request.value = rest;
  return request;
}

void Reply::Free(Memory memory) {
  const size_t count = freed_count();
  assert(count < freed.size() && "a handler frees a bounded number of blocks");
  if (count < freed.size()) freed[count] = memory;
}

size_t Reply::freed_count() const {
  return static_cast<size_t>(
      std::ranges::count_if(freed, [](const Memory& memory) { return memory.bytes != 0; }));
}

Result<Reply> DecodeReply(std::string_view bytes) {
  if (bytes.size() == sizeof(Reply)) {
    bool sound = static_cast<Needs>(bytes[offsetof(Reply, needs)]) <= Needs::kEndOfGrowth;
    for (const size_t at : {offsetof(Reply, applied), offsetof(Reply, was_present),
                            offsetof(Reply, linked_block), offsetof(Reply, linked_group)})
      sound &= IsBool(bytes[at]);
    if (sound) {
      Reply reply;
      std::memcpy(&reply, bytes.data(), sizeof reply);
      // What is asked for is missing for a change that was not made.
      const bool changed = reply.applied || reply.linked_block || reply.linked_group;
      sound = reply.doublings <= kMostDoublings && (reply.needs == Needs::kNothing || !changed);
    }
    if (!sound) return Error(ErrorCode::kCorrupt, "a reply of a continuity table cannot be");
  }
  return DecodeFixed<Reply>(bytes);
}
Result<GrowRequest> DecodeGrow(std::string_view bytes) { return DecodeFixed<GrowRequest>(bytes); }
Result<MoveRequest> DecodeMove(std::string_view bytes) { return DecodeFixed<MoveRequest>(bytes); }
Result<SettleRequest> DecodeSettle(std::string_view bytes) { return DecodeFixed<SettleRequest>(bytes); }

}  // namespace farside::index::continuity
