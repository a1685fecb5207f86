// Which node of which pool a region is: one word in its first page, so that no client mistakes a part of a
// pool for the whole, or one node for another.
//
//   63..16                         15..8          7..0
//   tag of the first node's id     nodes          number of this one
//
// The word is zero in a region that was just made. The first client that opens a pool of served nodes writes
// it, by CAS, into all nodes, the first node last.
//
// INVARIANT identity/1: where the first node has its word, all nodes of its pool have had theirs. So a node
// without one, beside a first node with one, is not the node that was there: its memory is new, and what was
// on it is lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bits.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "pool/region/layout.h"
#include "pool/region/superblock.h"

namespace farside::pool {

class NodeIdentity {
 public:
  using Number = Field<0, 8>;
  using Nodes = Field<8, 8>;
  using Tag = Field<16, 48>;
  static_assert(TilesWord<Number, Nodes, Tag>());

  constexpr NodeIdentity() = default;  // of a region that belongs to no pool of several nodes yet
  explicit constexpr NodeIdentity(uint64_t word) : word_(word) {}
  constexpr NodeIdentity(uint64_t tag, size_t nodes, size_t number)
      : word_(Number::Set(0, number) | Nodes::Set(0, nodes) | Tag::Set(0, tag & Tag::kMax)) {}

  constexpr uint64_t word() const { return word_; }
  constexpr bool empty() const { return word_ == 0; }
  constexpr uint64_t number() const { return Number::Get(word_); }
  constexpr uint64_t nodes() const { return Nodes::Get(word_); }
  constexpr uint64_t tag() const { return Tag::Get(word_); }
  friend constexpr bool operator==(NodeIdentity, NodeIdentity) = default;

 private:
  uint64_t word_ = 0;
};

// Of the pool whose first node has this id; never 0.
uint64_t TagOf(const RegionId& first);

// A node as a client that opens the pool finds it.
struct FoundNode {
  std::string name;
  bool reached = false;
  RegionId id{};
  NodeIdentity identity;
  bool durable = false;  // its pool is
};

// Whether these nodes, in this order, are one pool, or can become one. kInvalidArgument if not, kUnavailable
// if that cannot be told without a node that is out of reach, or a node has lost its memory; the message says
// which node.
Status CheckIdentities(const std::vector<FoundNode>& nodes);

// Writes the words that are missing, and sees to it that durable nodes keep theirs: each is durable before
// the next is written, those that are there already included, because the client that wrote them may have
// died. After CheckIdentities, if all nodes are reached.
Task<Done> ClaimIdentities(fabric::Op& op, std::vector<FoundNode> nodes);

}  // namespace farside::pool
