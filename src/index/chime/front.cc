#include "index/chime/front.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "index/chime/key.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

// So many inner nodes are READ along with the root block, the first ones of each level: when keys go at the
// front, the very first one stays, empty, and the next ones have the first keys.
constexpr size_t kReadsOfANode = 3;
constexpr size_t kMostAlong = (fabric::kAnsweredVerbsPerRoundTrip - 1) / kReadsOfANode;

// Bounds that stand in blocks of their own would have to be READ.
bool HasLongBounds(const InnerImage& image, const Shape& shape) {
  if (BoundRef(image.header.fence_ref).in_block()) return true;
  for (size_t slot = 0; slot < shape.fanout; ++slot) {
    const RawPivot raw = image.Get(shape, slot);
    if (!raw.child.null() && raw.ref.in_block()) return true;
  }
  return false;
}

bool Has(const std::vector<NodePtr>& nodes, NodePtr node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

std::vector<Front::Read> Front::ReadsBehind(NodePtr root) const {
  std::vector<Read> reads;
  const auto add = [&](NodePtr at) {
    const bool fits = reads.size() < kMostAlong && table_.At(at).node == table_.root_block.node;
    if (fits) reads.push_back({.at = at, .order = ChildrenOf(at)});
    return fits;
  };
  NodePtr at = root;
  if (at.null() || !add(at)) return reads;
  const size_t of_a_level = (kMostAlong - 1) / std::max(root.level() - 1, 1u);
  while (at.level() > 1) {
    const std::vector<NodePtr> children = ChildrenOf(at);
    if (children.empty()) break;
    const size_t most = std::min(children.size(), of_a_level);
    for (size_t i = 0; i < most; ++i) add(children[i]);
    at = children[0];
  }
  return reads;
}

void Front::AddTo(fabric::Batch& trip, std::vector<Read>& reads) const {
  for (Read& read : reads) {
    const auto [header, lines] = inner_nodes_.ReadsOf(read.at, read.image);
    trip.Add(header);
    trip.Add(lines);
    trip.Add(fabric::Read(table_.At(read.at), BytesOf(read.again)));
  }
}

// INVARIANT chime/8: the nodes were READ behind the newest `merges`, in order, so each was READ behind the
// node that names it: the same as READing them one after the other. A node that none of them names may be
// anything by now.
Task<Done> Front::Remember(Op& op, NodePtr root, std::vector<Read>& reads) {
  const uint64_t clears = inner_nodes_.NewImage().clears;
  nodes_.clear();
  for (Read& read : reads) {
    const auto names = [&read](const Node& parent) { return Has(parent.children, read.at); };
    const bool named = read.at == root || std::any_of(nodes_.begin(), nodes_.end(), names);
    if (!named || read.image.header.sibling != read.again.sibling) continue;
    read.image.header = read.again;
    read.image.clears = clears;
    std::vector<NodePtr> children = Arrange(read);
    if (children.empty()) continue;
    nodes_.push_back({.at = read.at, .children = std::move(children)});
    if (HasLongBounds(read.image, table_.shape())) continue;
    const Result<DecodedInner> decoded = co_await inner_nodes_.Decode(op, read.at, read.image).Outcome();
    if (!decoded.ok()) co_return Done{};  // an operation that comes to the node will say so
    inner_nodes_.Remember(read.at, read.image, *decoded);
  }
  inner_nodes_.RememberFirstLeaves(FirstLeaves(root));
  co_return Done{};
}

const Front::Node* Front::Find(const std::vector<Node>& nodes, NodePtr at) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [at](const Node& node) { return node.at == at; });
  return found == nodes.end() ? nullptr : &*found;
}

std::vector<NodePtr> Front::ChildrenOf(NodePtr at) const {
  if (const Inner* const cached = inner_nodes_.Cached(at); cached != nullptr) {
    std::vector<NodePtr> children;
    for (size_t i = 0; i < cached->size(); ++i) children.push_back(cached->child(i));
    return children;
  }
  if (const Node* const known = Find(nodes_, at); known != nullptr) return known->children;
  // The root of before is the first child of a new one.
  const bool is_above = !nodes_.empty() && nodes_[0].at.level() + 1 == at.level();
  return is_above ? std::vector<NodePtr>{nodes_[0].at} : std::vector<NodePtr>();
}

// Bounds that begin alike and are longer than 8 bytes: in the order in which the client knew the children,
// new ones last, as they stand; ascending keys fill one slot after the other.
std::vector<NodePtr> Front::Arrange(const Read& read) const {
  const Shape& shape = table_.shape();
  if (NodeInfo(read.image.header.info) != NodeInfo::Of(read.at.level()) || read.image.dead()) return {};
  std::vector<std::tuple<uint64_t, uint64_t, ptrdiff_t, NodePtr>> pivots;
  for (size_t slot = 0; slot < shape.fanout; ++slot) {
    const RawPivot raw = read.image.Get(shape, slot);
    if (raw.child.null()) continue;
    if (raw.child.level() + 1 != read.at.level() || !table_.Has(raw.child)) return {};
    const auto known = std::find(read.order.begin(), read.order.end(), raw.child);
    pivots.emplace_back(raw.prefix, raw.ref.length(), known - read.order.begin(), raw.child);
  }
  std::stable_sort(pivots.begin(), pivots.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  std::vector<NodePtr> children;
  for (const auto& pivot : pivots) children.push_back(std::get<NodePtr>(pivot));
  return children;
}

// Up to the first inner node that was not READ, or that is named twice: each node is followed once, so there
// are no more leaves than the nodes have pivots, whatever stands in them.
std::vector<NodePtr> Front::FirstLeaves(NodePtr root) const {
  std::vector<NodePtr> nodes = {root};
  for (uint32_t level = root.level(); level > 0; --level) {
    std::vector<NodePtr> below;
    for (auto at = nodes.begin(); at != nodes.end(); ++at) {
      const Node* const node = Find(nodes_, *at);
      if (node == nullptr || std::find(nodes.begin(), at, *at) != at) break;
      below.insert(below.end(), node->children.begin(), node->children.end());
    }
    nodes = std::move(below);
  }
  return nodes;
}

}  // namespace farside::index::chime
