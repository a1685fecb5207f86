// Operations on a key, with the directory of the node that the key belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fabric/op.h"
#include "index/kit/change.h"
#include "index/kit/context.h"
#include "index/sephash/directory.h"
#include "index/sephash/layout.h"
#include "pool/client.h"

namespace farside::index::sephash {

// What every step takes along.
struct Access {
  fabric::Op& op;
  Directory& directory;

  const Shape& shape() const { return directory.shape(); }
  fabric::NodeId node() const { return directory.node(); }
};

// The same, on behalf of one key.
struct KeyAccess : Access {
  KeyAccess(fabric::Op& an_op, Directory& a_directory, uint64_t a_hash, std::string_view a_key)
      : Access{an_op, a_directory}, hash(a_hash), key(a_key) {}

  const uint64_t hash;
  const std::string_view key;

  Tag tag(uint32_t depth) const { return TagOf(hash, shape(), depth); }
  uint8_t fp() const { return FpOf(tag(0)); }
};

struct SearchContext : index::SearchContext {
  SearchContext(pool::PoolClient& pool, fabric::Op& an_op, Directory& directory, uint64_t a_hash,
                std::string_view a_key, std::string& a_value)
      : index::SearchContext(pool, an_op, a_key, a_hash, directory.node(), a_value),
        at(an_op, directory, a_hash, a_key) {}

  const KeyAccess at;
};

struct ChangeContext : index::ChangeContext {
  ChangeContext(pool::PoolClient& pool, fabric::Op& an_op, Directory& directory, uint64_t a_hash,
                Change& a_change)
      : index::ChangeContext(pool, an_op, a_change, a_hash, directory.node()),
        at(an_op, directory, a_hash, a_change.key) {}

  // The end of an attempt, or of several.
  void Unpin() {
    written = false;
    filtered = MetaWord();
    index::ChangeContext::Unpin();
  }

  const KeyAccess at;
  bool written = false;  // the draft's bytes are in far memory
  MetaWord filtered;     // of a round whose filter knows of the key: bytes of a filter are never cleared
};

}  // namespace farside::index::sephash
