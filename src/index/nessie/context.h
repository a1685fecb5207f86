// Operations on a key, with the part of the table that the key belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/op.h"
#include "index/kit/change.h"
#include "index/kit/context.h"
#include "index/nessie/access.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/partition.h"
#include "index/nessie/running_entries.h"
#include "index/nessie/spare_lines.h"
#include "pool/client.h"

namespace farside::index::nessie {

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
        failed_growths(a_part.failed_growths()) {
    if (change.kind == ChangeKind::kTouch) item.OnlyAtHand();
  }

  bool MayHaveEffect() const { return item.may_be_published(); }
  void Unpin() {
    running.reset();
    spare.reset();
    item.Discard();
    index::ChangeContext::Unpin();
  }
  // A trip that makes the item reachable is about to be posted...
  void Publish() {
    if (spare != nullptr) spare->Publish();
    item.Publish();
  }
  // ...and has not done so.
  void NotPublished() {
    if (spare != nullptr) return spare->Unpublish();
    item.Unpublish();
  }
  Access access() const { return {op, part, pin->epoch(part.node())}; }

  Partition& part;
  const KeyHash key_hash;
  const uint64_t failed_growths;           // when the operation began
  ItemDraft item;                          // in place of the kit's draft
  std::unique_ptr<SpareLines::Use> spare;  // what the item is written to, if it is a spare line
  std::optional<RunningEntries::Entry> running;
};

}  // namespace farside::index::nessie
