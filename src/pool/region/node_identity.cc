#include "pool/region/node_identity.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "pool/durability.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::NodeId;
using fabric::Op;

namespace {

Error OfAnotherPool(const FoundNode& node, const std::string& why) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{} {}", node.name, why));
}

// A table promises on all of its nodes what it promises on one.
Status CheckDurability(const std::vector<FoundNode>& nodes) {
  const auto durable =
      std::ranges::find_if(nodes, [](const FoundNode& node) { return node.reached && node.durable; });
  const auto other =
      std::ranges::find_if(nodes, [](const FoundNode& node) { return node.reached && !node.durable; });
  if (durable == nodes.end() || other == nodes.end()) return OkStatus();
  return OfAnotherPool(*other,
                       fmt::format("is not durable, and {} is; serve all nodes of a pool with --pmem, "
                                   "or none",
                                   durable->name));
}

Task<Done> MakeWordDurable(Op& op, FarAddr at) {
  if (Mutant(kIdentityNotDurable)) co_return Done{};
  std::vector<ByteRange> ranges(1);
  ranges[0] = {at.offset, sizeof(NodeIdentity)};
  co_await MakeDurable(op, at.node, std::move(ranges));
  co_return Done{};
}

}  // namespace

uint64_t TagOf(const RegionId& first) {
  const uint64_t tag = Hash64(std::as_bytes(std::span(first))) & NodeIdentity::Tag::kMax;
  return tag == 0 ? 1 : tag;
}

Status CheckIdentities(const std::vector<FoundNode>& nodes) {
  // What the pool is called: by its first node, or by any that remembers.
  std::optional<uint64_t> tag;
  if (nodes[0].reached) tag = TagOf(nodes[0].id);
  for (const FoundNode& node : nodes) {
    if (!tag.has_value() && !node.identity.empty()) tag = node.identity.tag();
  }
  if (Status same = CheckDurability(nodes); !same.ok()) return same;
  const bool complete = std::ranges::all_of(nodes, &FoundNode::reached);
  const bool claimed = nodes[0].reached && !nodes[0].identity.empty();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const FoundNode& node = nodes[i];
    if (!node.reached) continue;
    if (node.identity.empty()) {
      if (claimed && i > 0) {  // identity/1
        return Error(
            ErrorCode::kUnavailable,
            fmt::format("{} has new memory: what the pool had on it is lost; make a new pool, or start the "
                        "node with its file",
                        node.name));
      }
      if (!complete) {
        return Error(
            ErrorCode::kUnavailable,
            fmt::format("{} belongs to no pool yet, and {} cannot be reached; try again when all nodes can",
                        node.name, std::ranges::find(nodes, false, &FoundNode::reached)->name));
      }
      continue;
    }
    if (node.identity.nodes() == 1 && nodes.size() > 1) {
      return OfAnotherPool(node, fmt::format("is a pool by itself, and cannot be one of {} nodes; name it "
                                             "alone, or start it with new memory",
                                             nodes.size()));
    }
    if (node.identity.nodes() != nodes.size()) {
      return OfAnotherPool(
          node, fmt::format("is node {} of a pool of {} nodes, but {} named; name all of them, in the "
                            "order in which the pool was made",
                            node.identity.number(), node.identity.nodes(),
                            nodes.size() == 1 ? std::string("1 is") : fmt::format("{} are", nodes.size())));
    }
    if (node.identity.number() != i) {
      return OfAnotherPool(
          node, fmt::format("is node {} of its pool, but was named as node {}; name the nodes in the "
                            "order in which the pool was made",
                            node.identity.number(), i));
    }
    if (node.identity.tag() != tag) {
      return OfAnotherPool(node, fmt::format("belongs to another pool than {}, or that node has new memory",
                                             nodes[i == 0 ? nodes.size() - 1 : 0].name));
    }
  }
  return OkStatus();
}

Task<Done> ClaimIdentities(Op& op, std::vector<FoundNode> nodes) {
  const uint64_t tag = TagOf(nodes[0].id);
  for (size_t i = nodes.size(); i-- > 0;) {  // identity/1: the first one last
    const NodeIdentity mine(tag, nodes.size(), i);
    const FarAddr at(static_cast<NodeId>(i), kIdentityOffset);
    uint64_t old = nodes[i].identity.word();
    if (nodes[i].identity.empty()) old = co_await op.InOrder(ForMaintenance(Cas(at, 0, mine.word())));
    if (old == 0 || old == mine.word()) {
      if (nodes[i].durable) co_await MakeWordDurable(op, at);  // INVARIANT durable/2
      continue;
    }
    nodes[i].identity = NodeIdentity(old);  // another client was faster, and means another pool
    const Status fits = CheckIdentities(nodes);
    co_return fits.ok() ? Error(ErrorCode::kContended, "another client is making the pool; try again")
                        : fits.error();
  }
  co_return Done{};
}

}  // namespace farside::pool
