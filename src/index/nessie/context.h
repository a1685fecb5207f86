// Operations on a key, with the part of the table that the key belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fabric/op.h"
#include "index/kit/change.h"
#include "index/kit/context.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/partition.h"
#include "pool/client.h"

namespace farside::index::nessie {

// What every step of a change takes along.
struct Access {
  fabric::Op& op;
  Partition& part;
  const uint64_t birth;  // the epoch of the operation's pin: the birth of what it retires

  const Shape& shape() const { return part.shape(); }
  fabric::NodeId node() const { return part.node(); }
};

struct SearchContext : index::SearchContext {
  SearchContext(pool::PoolClient& pool, fabric::Op& an_op, Partition& a_part, uint64_t a_hash,
                std::string_view a_key, std::string& a_value)
      : index::SearchContext(pool, an_op, a_key, a_hash, a_part.node(), a_value),
        part(a_part),
        key_hash(a_hash) {}

  Partition& part;
  const KeyHash key_hash;
};

struct ChangeContext : index::ChangeContext {
  ChangeContext(pool::PoolClient& pool, fabric::Op& an_op, Partition& a_part, uint64_t a_hash,
                Change& a_change)
      : index::ChangeContext(pool, an_op, a_change, a_hash, a_part.node()),
        part(a_part),
        key_hash(a_hash),
        failed_growths(a_part.failed_growths()) {}

  bool MayHaveEffect() const { return item.may_be_published(); }
  void Unpin() {
    item.Discard();
    index::ChangeContext::Unpin();
  }
  Access access() const { return {op, part, pin->epoch(part.node())}; }

  Partition& part;
  const KeyHash key_hash;
  const uint64_t failed_growths;  // when the operation began
  ItemDraft item;                 // in place of the kit's draft
};

}  // namespace farside::index::nessie
