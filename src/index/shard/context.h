// What the steps of an operation share, so that each takes one parameter instead of five.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/op.h"
#include "index/kit/change.h"
#include "index/kit/context.h"
#include "index/shard/bucket.h"
#include "index/shard/layout.h"
#include "index/shard/partition.h"
#include "pool/client.h"

namespace farside::index::shard {

// An operation at the part of the table that lives on one node.
struct Access {
  fabric::Op& op;
  Partition& part;

  const Shape& shape() const { return part.shape(); }
  const Directory& directory() const { return part.directory(); }
};

// The same, on behalf of one key.
struct KeyAccess : Access {
  KeyAccess(fabric::Op& an_op, Partition& a_part, const KeyHash& a_hash, std::string_view a_key)
      : Access{an_op, a_part}, hash(a_hash), key(a_key) {}

  const KeyHash hash;
  const std::string_view key;

  uint64_t number(Candidate candidate) const { return hash.number(candidate); }
  // Where the key belongs in a table of this version, and the tag that its entry has there.
  uint64_t unit(Candidate candidate, uint32_t version) const {
    return UnitOf(shape(), number(candidate), version);
  }
  uint64_t tag(Candidate candidate, uint32_t version) const {
    return TagOf(shape(), number(candidate), version);
  }
};

struct SearchContext : index::SearchContext {
  SearchContext(pool::PoolClient& pool, fabric::Op& an_op, Partition& part, const KeyHash& a_hash,
                std::string_view a_key, std::string& a_value)
      : index::SearchContext(pool, an_op, a_key, a_hash.hash(), part.node(), a_value),
        at(an_op, part, a_hash, a_key) {}

  const KeyAccess at;
};

// The entry of another change, which was faster: what a CAS of this operation that has failed found in the
// slot of the key, under the pin that the operation still has.
struct Rival {
  Slot slot;  // with the entry that was found
  // The entry that the CAS expected names another block, and was seen in the slot by this operation, not only
  // remembered (shard/12).
  bool has_replaced_what_was_seen = false;
};

struct ChangeContext : index::ChangeContext {
  ChangeContext(pool::PoolClient& pool, fabric::Op& an_op, Partition& part, const KeyHash& a_hash,
                Change& a_change)
      : index::ChangeContext(pool, an_op, a_change, a_hash.hash(), part.node()),
        at(an_op, part, a_hash, a_change.key) {}

  const KeyAccess at;
  std::optional<Rival> rival;  // of the attempt before
};

}  // namespace farside::index::shard
