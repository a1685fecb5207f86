// Where something lies in far memory: a node and an offset into its region; never a local address.
#pragma once

#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace farside::fabric {

// The unit that is read and written whole.
inline constexpr size_t kLineBytes = 64;
// READs of at most kWindowBytes inside one page are sampled within a short window (see docs/memory-model.md).
inline constexpr size_t kWindowBytes = 1024;
inline constexpr size_t kPageBytes = 4096;

// A memory node, numbered from 0 in the order in which the fabric was given them.
enum class NodeId : uint16_t {};
constexpr uint16_t Index(NodeId node) { return static_cast<uint16_t>(node); }

// A client as the fabric knows it: one connection. Never 0 and never reused while the fabric lives;
// reconnecting gives a new one.
enum class ClientId : uint32_t { kNone = 0 };
constexpr uint32_t Number(ClientId id) { return static_cast<uint32_t>(id); }

// One byte of far memory.
struct FarAddr {
  constexpr FarAddr() = default;
  constexpr FarAddr(NodeId node_id, uint64_t byte_offset) : node(node_id), offset(byte_offset) {}

  NodeId node{};
  uint64_t offset = 0;

  constexpr FarAddr operator+(uint64_t bytes) const { return FarAddr(node, offset + bytes); }
  friend constexpr auto operator<=>(const FarAddr&, const FarAddr&) = default;
};

}  // namespace farside::fabric
