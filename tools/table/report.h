// What `farside table` says. Functions of data: they open nothing and print nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/catalog/catalog.h"
#include "pool/region/open.h"
#include "tools/common/measure.h"

namespace farside::tools {

inline constexpr std::string_view kLivesWithItsProcess = "an embedded pool lives only as long as its process";

struct TableList {
  std::vector<pool::TableInfo> tables;
  bool embedded = false;
  std::vector<pool::MissingNode> missing;  // nodes whose tables are not in the list
};

struct ShownTable {
  pool::TableInfo info;
  std::optional<TableSize> size;
  std::string why;  // if there is no size
};

struct MadeTable {
  pool::TableInfo info;
  bool created = false;  // otherwise it was there, just like this
  bool pool_made = false;
  bool embedded = false;
};

struct DroppedTable {
  std::string name;
  std::optional<TableSize> size;  // what became free
  std::string why;                // if it could not be counted: it was damaged
};

// Aligned columns, or a line that says that there are none.
std::string TableText(const TableList& list);
std::string TableText(const ShownTable& table);
std::string TableText(const MadeTable& table);
std::string TableText(const DroppedTable& table);

}  // namespace farside::tools
