// The parts of a table, one on each of its nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/address.h"
#include "pool/catalog/placement.h"

namespace farside::index {

// `Part` is what a client knows of the part of a table that lives on one node.
template <class Part>
class Partitions {
 public:
  void Add(fabric::NodeId node, std::shared_ptr<Part> part) {
    parts_.push_back(std::move(part));
    nodes_.push_back(node);
  }

  // The one that a key belongs to.
  Part& Of(uint64_t hash) { return *parts_[nodes_.size() == 1 ? 0 : pool::PickNode(hash, nodes_)]; }

  size_t size() const { return parts_.size(); }
  Part& operator[](size_t index) { return *parts_[index]; }
  const Part& operator[](size_t index) const { return *parts_[index]; }
  std::span<const std::shared_ptr<Part>> parts() const { return parts_; }

 private:
  std::vector<std::shared_ptr<Part>> parts_;
  std::vector<fabric::NodeId> nodes_;
};

}  // namespace farside::index
