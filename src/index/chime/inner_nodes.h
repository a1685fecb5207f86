// Access to inner nodes: READing them, and the cache of the nodes that the client has READ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/cache.h"
#include "index/chime/inner.h"
#include "index/chime/layout.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

// An image with its bounds resolved.
struct DecodedInner {
  Bound fence;
  std::vector<Pivot> pivots;  // only pivots that count (chime/7), ascending
  size_t beyond = 0;          // pivots that do not
};

class InnerNodes {
 public:
  InnerNodes(const TableContext& table, BoundTexts& bounds)
      : table_(table), bounds_(bounds), cache_(table.options.cache_bytes) {}

  // Null if the node is not in the cache. Valid until the next call that is not const.
  const Inner* Cached(NodePtr at) const { return cache_.Find(at); }
  std::shared_ptr<const Inner> CachedShared(NodePtr at) const { return cache_.Share(at); }
  // From the cache, or by Load.
  Task<std::shared_ptr<const Inner>> Get(fabric::Op& op, NodePtr at);
  // READs the node, and puts it into the cache.
  Task<std::shared_ptr<const Inner>> Load(fabric::Op& op, NodePtr at);

  // An image to READ a node into.
  InnerImage NewImage() const;
  std::array<fabric::ReadIntoVerb, 2> ReadsOf(NodePtr at, InnerImage& image) const;
  Task<DecodedInner> Decode(fabric::Op& op, NodePtr at, const InnerImage& image);
  // The node as it is at one moment: its lock is held, or no client changes anything.
  Task<DecodedInner> ReadAtRest(fabric::Op& op, NodePtr at, InnerImage& image);
  // Step 3 of a merge (chime/9): the slot of the pivot becomes free.
  fabric::WriteVerb ClearPivotVerb(NodePtr at, size_t slot) const;
  // Puts a node into the cache, unless it is dead or the cache was cleared after the image was made.
  std::shared_ptr<const Inner> Remember(NodePtr at, const InnerImage& image, const DecodedInner& decoded);

  // Remembers the count of a leaf with its pivot in the parent, if the parent is remembered and says the same
  // of the leaf's fence as the READ of the header that showed the count (chime/14). `clears`: of before that
  // READ.
  void RememberCount(NodePtr parent, NodePtr leaf, const Header& header, uint64_t clears) const;

  // The first leaves of the table, the first one of all first, the others in an order that is likely
  // (front.h). None: they are not known.
  const std::vector<NodePtr>& first_leaves() const { return first_leaves_; }
  void RememberFirstLeaves(std::vector<NodePtr> leaves) { first_leaves_ = std::move(leaves); }

  void Drop(NodePtr at) { cache_.Drop(at); }
  void Clear();
  uint64_t bytes() const { return cache_.bytes(); }
  size_t size() const { return cache_.size(); }

 private:
  const TableContext& table_;
  BoundTexts& bounds_;
  NodeCache cache_;
  std::vector<NodePtr> first_leaves_;
  uint64_t clears_ = 0;
};

}  // namespace farside::index::chime
