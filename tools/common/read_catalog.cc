#include "tools/common/read_catalog.h"

#include <span>
#include <utility>

#include "fabric/address.h"
#include "pool/catalog/layout.h"

namespace farside::tools {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using pool::TableInfo;

namespace {

Task<std::vector<pool::TableEntry>> ReadCatalog(Op& op, NodeId node, pool::Geometry geometry) {
  std::vector<pool::TableEntry> entries(geometry.table_slots);
  co_await op.InOrder(fabric::ForMaintenance(
      fabric::Read(FarAddr(node, geometry.catalog()), std::as_writable_bytes(std::span(entries)))));
  co_return entries;
}

}  // namespace

Task<std::vector<TableInfo>> ReadTables(Op& op, std::vector<pool::Geometry> geometries, bool& complete) {
  std::vector<TableInfo> tables;
  for (size_t i = 0; i < geometries.size(); ++i) {
    if (geometries[i].region_bytes == 0) continue;  // a node that is out of reach
    const NodeId node = static_cast<NodeId>(i);
    const std::vector<pool::TableEntry> entries = co_await ReadCatalog(op, node, geometries[i]);
    for (uint32_t slot = 0; slot < entries.size(); ++slot) {
      const pool::TableWord word = entries[slot].state;
      if (word.valid() && word.state() != pool::TableState::kLive) continue;
      const FarAddr at(node, geometries[i].table_entry(slot));
      Result<TableInfo> table = pool::DecodeTable(entries[slot], at, op.client().region_bytes());
      if (word.valid() && table.ok()) {
        tables.push_back(std::move(*table));
      } else {
        complete = false;
      }
    }
  }
  co_return tables;
}

}  // namespace farside::tools
