#include "tools/table_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/fsck_report.h"
#include "tools/output.h"

namespace farside::tools {
namespace {

using Cells = std::array<std::string, 4>;

// Characters, not bytes, of what is UTF-8; each of them takes one column, nearly always.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

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
  if (list.tables.empty()) {
    return list.embedded ? fmt::format("no tables: {}\n", kLivesWithItsProcess) : "no tables\n";
  }
  std::vector<Cells> lines = {{"TABLE", "ENGINE", "NODES", "OPTIONS"}};
  for (const pool::TableInfo& table : list.tables) {
    lines.push_back({table.name, table.engine, Nodes(table), OrDash(table.options)});
  }
  std::array<size_t, 3> widths{};
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(cells[i]));
  }
  std::string text;
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < widths.size(); ++i) {
      text += cells[i] + std::string(widths[i] - Width(cells[i]) + 2, ' ');
    }
    text += cells.back() + "\n";
  }
  return text;
}

std::string TableText(const ShownTable& table) {
  const pool::TableInfo& info = table.info;
  std::string roots;
  for (const fabric::FarAddr& root : info.roots) {
    roots += fmt::format("{}{}", roots.empty() ? "" : " ", root.offset == 0 ? "-" : AddressText(root));
  }
  const std::string unknown = "not known: " + table.why;
  return Row("table", info.name) +
         Row("engine", fmt::format("{}, layout version {}", info.engine, info.engine_layout_version)) +
         Row("options", OrDash(info.options)) + Row("nodes", Nodes(info)) +
         Row("incarnation", fmt::format("{}", info.incarnation)) + Row("roots", roots) +
         Row("keys", table.size.has_value() ? Grouped(table.size->keys) : unknown) +
         Row("bytes", table.size.has_value() ? Grouped(table.size->bytes) : unknown);
}

std::string TableText(const MadeTable& table) {
  const pool::TableInfo& info = table.info;
  std::string text;
  if (table.pool_made && !table.embedded) text += "made the pool\n";
  text += fmt::format("{}: engine {}, options {}\n",
                      table.created ? "created table " + info.name
                                    : fmt::format("table {} is there already, just like this", info.name),
                      info.engine, OrDash(info.options));
  if (table.embedded) text += fmt::format("it is gone again: {}\n", kLivesWithItsProcess);
  return text;
}

std::string TableText(const DroppedTable& table) {
  if (table.size.has_value()) {
    return fmt::format("dropped table {}: {} bytes are free again\n", table.name, Grouped(table.size->bytes));
  }
  return fmt::format("dropped table {}, and freed what nobody reaches any more (it was damaged: {})\n",
                     table.name, table.why);
}

}  // namespace farside::tools
