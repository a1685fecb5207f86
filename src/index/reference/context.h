// Operations on a key, with the bucket that the key belongs to for ever.
#pragma once

#include <string>
#include <string_view>

#include "fabric/address.h"
#include "fabric/op.h"
#include "index/kit/change.h"
#include "index/kit/context.h"
#include "pool/client.h"

namespace farside::index::reference {

struct SearchContext : index::SearchContext {
  SearchContext(pool::PoolClient& pool, fabric::Op& an_op, fabric::FarAddr a_bucket, uint64_t a_hash,
                std::string_view a_key, std::string& a_value)
      : index::SearchContext(pool, an_op, a_key, a_hash, a_bucket.node, a_value), bucket(a_bucket) {}

  const fabric::FarAddr bucket;
};

struct ChangeContext : index::ChangeContext {
  ChangeContext(pool::PoolClient& pool, fabric::Op& an_op, fabric::FarAddr a_bucket, uint64_t a_hash,
                Change& a_change)
      : index::ChangeContext(pool, an_op, a_change, a_hash, a_bucket.node), bucket(a_bucket) {}

  const fabric::FarAddr bucket;
};

}  // namespace farside::index::reference
