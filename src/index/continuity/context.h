// Operations on a key, with the part of the table to which the key belongs for ever.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "index/continuity/partition.h"
#include "index/kit/context.h"
#include "index/kit/unpublished.h"

namespace farside::index::continuity {

struct SearchContext : index::SearchContext {
  SearchContext(pool::PoolClient& pool, fabric::Op& an_op, Partition& a_part, uint64_t a_hash,
                std::string_view a_key, std::string& a_value)
      : index::SearchContext(pool, an_op, a_key, a_hash, a_part.node(), a_value), part(a_part) {}

  Partition& part;
};

struct ChangeContext : index::ChangeContext {
  ChangeContext(pool::PoolClient& pool, fabric::Op& an_op, Partition& a_part, uint64_t a_hash,
                Change& a_change)
      : index::ChangeContext(pool, an_op, a_change, a_hash, a_part.node()), part(a_part) {}

  bool MayHaveEffect() const { return called || index::ChangeContext::MayHaveEffect(); }
  void Unpin() {
    group.Discard();
    operands.Discard();
    index::ChangeContext::Unpin();
  }

  Partition& part;
  Unpublished group;  // memory for one, if the pair needs it
  Draft operands;     // what is too large for a request; no client but this one and no slot ever names it
  bool group_beyond_share = false;  // there was no memory for the table to grow
  bool called = false;              // a Call may have changed the table
};

}  // namespace farside::index::continuity
