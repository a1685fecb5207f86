// The front of the tree: the inner nodes that lead to the first leaves. A client that has had to forget its
// inner nodes will have to do so again, as with a queue, whose leaves are merged all the time. So it READs
// those of the front in the same trip as the root block: `First` takes no trip for each level.
//
// Bounds that stand in blocks of their own are not READ for that. Without them nothing is found by its key,
// and children whose bounds begin alike have no certain order. But the way to the first leaf needs no bound:
// the first bound of each level is the empty text. And for the leaves behind it an order that is likely will
// do, because a scan takes a leaf only if the one before names it as its sibling.
#pragma once

#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/inner.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/layout.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class Front {
 public:
  // An inner node that is READ behind the root block, with its header before and behind the lines.
  struct Read {
    NodePtr at;
    std::vector<NodePtr> order = {};  // its children when it was last READ
    InnerImage image = {};
    Header again = {};
  };

  Front(const TableContext& table, InnerNodes& inner_nodes) : table_(table), inner_nodes_(inner_nodes) {}

  // What to READ behind the root block, parents first: what is remembered and stands on its memory node.
  std::vector<Read> ReadsBehind(NodePtr root) const;
  void AddTo(fabric::Batch& trip, std::vector<Read>& reads) const;
  // The client has forgotten its inner nodes because of the root block that was READ first.
  Task<Done> Remember(fabric::Op& op, NodePtr root, std::vector<Read>& reads);

 private:
  // An inner node of the front, and its children in the order that is likely.
  struct Node {
    NodePtr at;
    std::vector<NodePtr> children;
  };
  static const Node* Find(const std::vector<Node>& nodes, NodePtr at);
  std::vector<NodePtr> ChildrenOf(NodePtr at) const;
  // In the order that is likely; nothing if the node is dead or damaged.
  std::vector<NodePtr> Arrange(const Read& read) const;
  std::vector<NodePtr> FirstLeaves(NodePtr root) const;

  const TableContext& table_;
  InnerNodes& inner_nodes_;
  // As last READ behind a root block. What may have been freed since is not followed, but tells what to READ.
  std::vector<Node> nodes_;
};

}  // namespace farside::index::chime
