// What clients ask handlers for, and what they answer. The bytes of a request come from another process:
// anything is possible.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "fabric/verb.h"
#include "farside/result.h"
#include "index/kit/change.h"
#include "pool/memory/block.h"

namespace farside::index::continuity {

inline constexpr uint16_t kContinuityId = 1;
inline constexpr fabric::CallId kChangeCall{kContinuityId, 1};
inline constexpr fabric::CallId kGrowCall{kContinuityId, 2};
inline constexpr fabric::CallId kMoveCall{kContinuityId, 3};
inline constexpr fabric::CallId kSettleCall{kContinuityId, 4};

inline constexpr uint64_t kMostBlockBytes = pool::BlockBytes(pool::kMaxKeyBytes, pool::kMaxValueBytes);

// Memory of the node that a client has taken from its allocator, or that it may give back. 0 bytes: none.
struct Memory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A change of one key. Memory that it names is linked by the handler, or not: the reply says so.
struct ChangeHead {
  uint64_t root = 0;
  uint64_t hash = 0;
  uint64_t delta = 0;   // Increment
  uint64_t victim = 0;  // Touch: offset of the block
  Memory block;         // for a record that does not fit into a slot
  uint64_t group = 0;   // offset of memory for a group; 0: none
  Memory operands;      // a block (pool/memory/block.h) with the key and the expected value; else they follow
  uint32_t key_bytes = 0;
  uint32_t expected_bytes = 0;
  uint32_t value_bytes = 0;  // of a new value that follows
  ChangeKind kind = ChangeKind::kPut;
  bool group_beyond_share = false;  // there is no memory for a larger table
  std::array<uint8_t, 2> zero{};
};
static_assert(std::is_trivially_copyable_v<ChangeHead> && sizeof(ChangeHead) == 88);
// More than this of operands stand in a block of their own.
inline constexpr size_t kMostOperandsInRequest = 16 * 1024;

struct ChangeRequest {
  ChangeHead head;
  std::string_view key;
  std::string_view expected;
  std::string_view value;  // of a record that fits into a slot; otherwise the block has it
};
std::string Encode(const ChangeRequest& request);
// Views of `bytes`; of operands in a block, key and expected value are empty.
Result<ChangeRequest> DecodeChange(std::string_view bytes);

// A table twice as large, in memory that the client has taken.
struct GrowRequest {
  uint64_t root = 0;
  uint64_t table = 0;
  uint64_t doublings = 0;  // of the new table
};
// Moves some pairs of a table that grows.
struct MoveRequest {
  uint64_t root = 0;
};

// Ends for readers what a power cut has stopped in the middle of a pair.
struct SettleRequest {
  uint64_t root = 0;
  uint64_t table = 0;  // the table word
  uint64_t pair = 0;   // its number there
};

// What is missing for a change that was not made, because there was no free slot.
enum class Needs : uint8_t {
  kNothing = 0,
  kGroup = 1,        // the pair may have a group
  kTable = 2,        // the table has to grow
  kEndOfGrowth = 3,  // the table has to grow again, but grows already
};

inline constexpr size_t kMostFreed = 8;
struct Reply {
  Needs needs = Needs::kNothing;
  bool applied = false;
  bool was_present = false;
  bool linked_block = false;  // of the request; what was not linked is still the client's
  bool linked_group = false;
  std::array<uint8_t, 3> zero{};
  uint64_t counter = 0;                  // Increment: the new value
  uint64_t doublings = 0;                // of the current table
  std::array<Memory, kMostFreed> freed;  // unlinked: the client retires it

  void Free(Memory memory);
  size_t freed_count() const;
};
static_assert(std::is_trivially_copyable_v<Reply>);
static_assert(std::is_trivially_copyable_v<GrowRequest> && std::is_trivially_copyable_v<MoveRequest> &&
              std::is_trivially_copyable_v<SettleRequest>);

template <class Fixed>
std::string EncodeFixed(const Fixed& fixed) {
  return std::string(reinterpret_cast<const char*>(&fixed), sizeof fixed);
}
// kVersionMismatch if it has another size: the other side is of another version. kCorrupt if a field has a
// value that there is not.
Result<Reply> DecodeReply(std::string_view bytes);
Result<GrowRequest> DecodeGrow(std::string_view bytes);
Result<MoveRequest> DecodeMove(std::string_view bytes);
Result<SettleRequest> DecodeSettle(std::string_view bytes);

}  // namespace farside::index::continuity
