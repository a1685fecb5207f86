// The root block as the client knows it: the pointer to the root, and the counter of merges that tells when
// to forget what was remembered (chime/8).
#pragma once

#include <cstdint>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/front.h"
#include "index/chime/hotspots.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/table_context.h"
#include "pool/client.h"

namespace farside::index::chime {

class Root {
 public:
  // The last three are cleared when leaves may have been freed.
  Root(const TableContext& table, InnerNodes& inner_nodes, BoundTexts& bounds, Hotspots& hotspots)
      : table_(table),
        inner_nodes_(inner_nodes),
        bounds_(bounds),
        hotspots_(hotspots),
        front_(table, inner_nodes) {}

  // As last READ; null before the first Read.
  NodePtr node() const { return node_; }
  uint64_t merges() const { return merges_; }

  Task<Done> Read(fabric::Op& op);
  // Whether what is remembered may be used under this pin. If not, the operation calls Refresh first.
  bool IsFresh(const pool::PoolClient::Pin& pin) const { return !node_.null() && EpochsOf(pin) <= checked_; }
  Task<Done> Refresh(fabric::Op& op, const pool::PoolClient::Pin& pin);

  // The root was split: makes a new root with two children, the old one and its sibling. False: another
  // client, or another operation of this one, has changed the root.
  Task<bool> Grow(fabric::Op& op, const Bound& bound, BoundRef ref, NodePtr sibling);

  // Tells all clients that a leaf was unlinked; before the leaf is retired.
  fabric::AtomicVerb RaiseMergesVerb() const;
  Task<Done> RaiseMerges(fabric::Op& op);

 private:
  // The epochs of the table's memory nodes, added up. Epochs only grow, so the sum does.
  uint64_t EpochsOf(const pool::PoolClient::Pin& pin) const {
    uint64_t sum = 0;
    for (const fabric::NodeId node : table_.nodes.all()) sum += pin.epoch(node);
    return sum;
  }
  // Writes the new root, and makes it the root if `old` still is. False: it was not.
  Task<bool> Replace(fabric::Op& op, NodePtr old, NodePtr made, InnerImage& image);
  void ForgetAll();

  const TableContext& table_;
  InnerNodes& inner_nodes_;
  BoundTexts& bounds_;
  Hotspots& hotspots_;
  Front front_;
  NodePtr node_;
  uint64_t merges_ = 0;
  uint64_t checked_ = 0;  // EpochsOf the latest pin under which the root block was READ
};

}  // namespace farside::index::chime
