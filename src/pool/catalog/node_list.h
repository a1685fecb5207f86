// The memory nodes of a table, in the order in which the table's far pointers count them.
//
// A far pointer has the position of its node in this list, and far memory may hold any position. So no
// position is an index: At answers for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fabric/address.h"

namespace farside::pool {

class NodeList {
 public:
  explicit NodeList(std::vector<fabric::NodeId> nodes) : nodes_(std::move(nodes)) {}

  bool Has(uint64_t position) const { return position < nodes_.size(); }
  // kNowhere if there is no such position: the pointer that named it is damaged.
  fabric::NodeId At(uint64_t position) const { return Has(position) ? nodes_[position] : fabric::kNowhere; }

  size_t size() const { return nodes_.size(); }
  // There is always one.
  fabric::NodeId first() const { return nodes_.front(); }
  std::span<const fabric::NodeId> all() const { return nodes_; }

 private:
  std::vector<fabric::NodeId> nodes_;
};

}  // namespace farside::pool
