// An operation on its way through a table: what the driver (keyed_index.h) and the engine share of it, so
// that a protocol step takes one parameter. An engine derives its own contexts and adds what it looks up
// once: the key's partition, say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/address.h"
#include "fabric/op.h"
#include "index/kit/change.h"
#include "index/kit/draft.h"
#include "pool/client.h"

namespace farside::index {

// What an attempt came to.
enum class Attempt : uint8_t { kDone, kRetry };

struct OperationContext {
  OperationContext(pool::PoolClient& pool, fabric::Op& an_op, std::string_view a_key, uint64_t key_hash,
                   fabric::NodeId a_node)
      : op(an_op), key(a_key), hash(key_hash), catalogs(pool.known_catalog_changes()), node(a_node) {}
  OperationContext(const OperationContext&) = delete;
  OperationContext& operator=(const OperationContext&) = delete;

  fabric::Op& op;
  const std::string_view key;
  const uint64_t hash;
  const uint64_t catalogs;    // pool.known_catalog_changes() when the operation began (retry_policy.h)
  const fabric::NodeId node;  // the one whose lease says how long to wait

  std::optional<pool::PoolClient::Pin> pin;  // set during an attempt
  int attempt = 0;  // under this pin; in attempt 0, nothing that was learned under an older pin counts
};

struct SearchContext : OperationContext {
  SearchContext(pool::PoolClient& pool, fabric::Op& an_op, std::string_view a_key, uint64_t key_hash,
                fabric::NodeId a_node, std::string& a_value)
      : OperationContext(pool, an_op, a_key, key_hash, a_node), value(a_value) {}

  std::string& value;  // gets the value that was found
};

struct ChangeContext : OperationContext {
  ChangeContext(pool::PoolClient& pool, fabric::Op& an_op, Change& a_change, uint64_t key_hash,
                fabric::NodeId a_node)
      : OperationContext(pool, an_op, a_change.key, key_hash, a_node), change(a_change) {
    if (change.kind == ChangeKind::kTouch) draft.OnlyAtHand();
  }

  // Whether the change may have taken effect. An engine that publishes anything but drafts says so by a
  // function of the same name in its own context.
  bool MayHaveEffect() const { return draft.may_be_published(); }
  // The end of an attempt, or of several. An engine that allocates more than the draft gives that back too,
  // by a function of the same name: a sweep frees what is neither reachable nor protected by a pin.
  void Unpin();

  Change& change;  // with the value of its last passenger, if it has any (change_queue.h)
  Draft draft;
  Changed result;
};

}  // namespace farside::index
