// Where something lies in far memory: a node and an offset into its region; never a local address.
#pragma once

#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace farside::fabric {

// The unit that is read and written whole.
inline constexpr size_t kLineBytes = 64;
// READs of at most kWindowBytes inside one page are sampled within a short window (see docs/memory-model.md).
inline constexpr size_t kWindowBytes = 1024;
inline constexpr size_t kPageBytes = 4096;

// A memory node, numbered from 0 in the order in which the fabric was given them.
enum class NodeId : uint16_t {};
constexpr uint16_t Index(NodeId node) { return static_cast<uint16_t>(node); }
// A node that no fabric has. A far pointer that names no node of its table leads here: verbs to it fail with
// kCorrupt, and a pool client has nothing to say about it.
inline constexpr NodeId kNowhere{0xffff};
inline constexpr size_t kMostNodes = 0xffff;
static_assert(Index(kNowhere) == kMostNodes);

// What a list with an element for each node has for this one; null if there is no such node. Above the
// fabrics this is the one way from a node to an element (tests/tidy/tidy.py): the number of a node may come
// from far memory, which may hold anything.
template <class List>
constexpr auto* ForNode(List&& list, NodeId node) {
  return Index(node) < std::size(list) ? std::data(list) + Index(node) : nullptr;
}

// A client as the fabric knows it: one connection. Never 0 and never reused while the fabric lives;
// reconnecting gives a new one.
enum class ClientId : uint32_t { kNone = 0 };
constexpr uint32_t Number(ClientId id) { return static_cast<uint32_t>(id); }

// One byte of far memory, or a claim that there is one: words of far memory become addresses, and far memory
// may hold anything. So an address is checked wherever it is used, and in two places only: a backend checks
// every verb before it executes it (CheckBounds in trip.h), and ForNode leads from a node to what is known of
// it. The allocator checks the offset of every block that it is given.
struct FarAddr {
  constexpr FarAddr() = default;
  constexpr FarAddr(NodeId node_id, uint64_t byte_offset) : node(node_id), offset(byte_offset) {}

  NodeId node{};
  uint64_t offset = 0;

  constexpr FarAddr operator+(uint64_t bytes) const { return FarAddr(node, offset + bytes); }
  friend constexpr auto operator<=>(const FarAddr&, const FarAddr&) = default;
};

}  // namespace farside::fabric
