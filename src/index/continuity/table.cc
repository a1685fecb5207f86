#include "index/continuity/table.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::index::continuity {

using fabric::FarAddr;
using fabric::Op;

Table::Table(const Options& options, pool::PoolClient& pool, const std::vector<FarAddr>& roots)
    : KeyedIndex(pool, options), parts_(options, pool, roots) {}

SearchContext Table::ContextOf(Op& op, std::string_view key, std::string& value) {
  const uint64_t hash = Hash64(AsBytes(key));
  return SearchContext(pool(), op, parts_.Of(hash), hash, key, value);
}

ChangeContext Table::ContextOf(Op& op, Change& change) {
  const uint64_t hash = Hash64(AsBytes(change.key));
  return ChangeContext(pool(), op, parts_.Of(hash), hash, change);
}

void Table::ConfirmTable(const pool::Membership& home, uint64_t catalog_changes) {
  parts_.ConfirmTable(home, catalog_changes);
}

uint64_t Table::growth() const {
  uint64_t most = 0;
  for (const auto& part : parts_.parts()) {
    const Root& root = part->root();
    most = std::max<uint64_t>(most, 2 * root.current.doublings() + (root.growing() ? 1 : 0));
  }
  return most;
}

}  // namespace farside::index::continuity
