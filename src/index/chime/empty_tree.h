// The nodes of an empty table: an inner node as root, with one leaf. With keys=inline, each half of the keys
// has a leaf and a parent of its own, and the root is above the two parents (chime/11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/inner.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "pool/memory/allocator.h"

namespace farside::index::chime {

class EmptyTree {
 public:
  explicit EmptyTree(const Shape& shape);

  // In the order in which they are allocated: the root block, the inner nodes, the leaves.
  std::vector<uint64_t> sizes() const;
  uint64_t bytes() const;
  // Makes all of it on one memory node, and returns the root block. If it fails, nothing is left.
  Task<fabric::FarAddr> Make(fabric::Op& op, pool::Allocator& allocator);

 private:
  NodePtr InnerAt(size_t i, uint32_t level) const { return NodePtr::To(0, made_[1 + i].offset, level); }
  NodePtr LeafAt(size_t i) const { return NodePtr::To(0, made_[1 + inners_.size() + i].offset, 0); }
  Task<Done> Allocate(fabric::Op& op, pool::Allocator& allocator);
  void Link();
  Task<Done> Write(fabric::Op& op);

  const Shape shape_;
  std::vector<InnerImage> inners_;  // the root is the first; then the parents of the leaves, if it has any
  std::vector<Leaf> leaves_;
  RootBlock root_block_{};
  std::vector<fabric::FarAddr> made_;
};

}  // namespace farside::index::chime
