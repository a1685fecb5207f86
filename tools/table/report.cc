#include "tools/table/report.h"

#include <fmt/format.h>

#include "tools/common/columns.h"
#include "tools/common/output.h"
#include "tools/common/text.h"
#include "tools/fsck/report.h"

namespace farside::tools {
namespace {

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Readable(text); }

std::string Nodes(const pool::TableInfo& table) {
  std::string text;
  for (const fabric::NodeId node : table.nodes)
    text += fmt::format("{}{}", text.empty() ? "" : ",", Index(node));
  return text;
}

std::string Row(std::string_view name, std::string_view value) {
  return fmt::format("{:<14}{}\n", name, value);
}

}  // namespace

std::string TableText(const TableList& list) {
  if (list.tables.empty() && !list.missing.empty()) return "no tables at the nodes that can be reached\n";
  if (list.tables.empty()) {
    return list.embedded ? fmt::format("no tables: {}\n", kLivesWithItsProcess) : "no tables\n";
  }
  std::vector<std::vector<std::string>> lines = {{"TABLE", "ENGINE", "NODES", "OPTIONS"}};
  for (const pool::TableInfo& table : list.tables) {
    lines.push_back({Readable(table.name), Readable(table.engine), Nodes(table), OrDash(table.options)});
  }
  return Columns(lines, "llll");
}

std::string TableText(const ShownTable& table) {
  const pool::TableInfo& info = table.info;
  std::string roots;
  for (const fabric::FarAddr& root : info.roots) {
    roots += fmt::format("{}{}", roots.empty() ? "" : " ", root.offset == 0 ? "-" : AddressText(root));
  }
  const std::string unknown = "not known: " + Harmless(table.why);
  return Row("table", Readable(info.name)) +
         Row("engine",
             fmt::format("{}, layout version {}", Readable(info.engine), info.engine_layout_version)) +
         Row("options", OrDash(info.options)) + Row("nodes", Nodes(info)) +
         Row("incarnation", fmt::format("{}", info.incarnation)) + Row("roots", roots) +
         Row("keys", table.size.has_value() ? Grouped(table.size->keys) : unknown) +
         Row("bytes", table.size.has_value() ? Grouped(table.size->bytes) : unknown);
}

std::string TableText(const MadeTable& table) {
  const pool::TableInfo& info = table.info;
  std::string text;
  if (table.pool_made && !table.embedded) text += "made the pool\n";
  const std::string name = Readable(info.name);
  text += fmt::format("{}: engine {}, options {}\n",
                      table.created ? "created table " + name
                                    : fmt::format("table {} is there already, just like this", name),
                      Readable(info.engine), OrDash(info.options));
  if (table.embedded) text += fmt::format("it is gone again: {}\n", kLivesWithItsProcess);
  return text;
}

std::string TableText(const DroppedTable& table) {
  if (table.size.has_value()) {
    return fmt::format("dropped table {}: {} bytes are free again\n", Readable(table.name),
                       Grouped(table.size->bytes));
  }
  return fmt::format("dropped table {}, and freed what no table reaches any more (it was damaged: {})\n",
                     Readable(table.name), Harmless(table.why));
}

}  // namespace farside::tools
