#include "tools/status/report.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "tools/common/columns.h"
#include "tools/common/missing_nodes.h"
#include "tools/common/output.h"
#include "tools/common/pool_table.h"
#include "tools/common/text.h"
#include "tools/table/report.h"

namespace farside::tools {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Lines of clients, and of tables; --json has all.
constexpr size_t kMostLines = 20;

std::string Share(uint64_t part, uint64_t whole) {
  return fmt::format("{:.1f} %",
                     100.0 * static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(1, whole)));
}

std::string More(size_t all) {
  return all > kMostLines ? fmt::format("... and {} more; --json has all\n", Grouped(all - kMostLines)) : "";
}

std::string NodesText(const PoolStatus& status) {
  Rows rows = {{"NODE", "SIZE", "USED", "FREE", "FULL", "EPOCH", "DEATHS", "CLIENTS", "TABLES"}};
  for (size_t i = 0; i < status.nodes.size(); ++i) {
    const NodeStatus& node = status.nodes[i];
    if (node.missing) {
      rows.push_back({fmt::format("{}", i), "?", "?", "?", "?", "?", "?", "?", "?"});
      continue;
    }
    size_t clients = 0;
    for (const ClientStatus& client : status.clients) clients += client.node == i ? 1 : 0;
    size_t tables = 0;
    for (const TableStatus& table : status.tables) tables += Index(table.info.entry.node) == i ? 1 : 0;
    rows.push_back({fmt::format("{}", i), FormatSize(node.bytes), Grouped(node.used()), Grouped(node.free),
                    Share(node.used(), node.bytes), Grouped(node.control.epoch), Grouped(node.control.deaths),
                    fmt::format("{} of {}", clients, node.client_slots),
                    fmt::format("{} of {}", tables, node.table_slots)});
  }
  std::string text = Columns(rows, "rrrrrrrrr");
  for (const pool::MissingNode& node : status.missing) text += MissingText(node) + "\n";
  return text;
}

std::string LifeText(const ClientStatus& client) {
  if (client.word.state() != pool::ClientState::kLive && client.word.state() != pool::ClientState::kJoining) {
    return "none: it has gone, and the next client of the pool clears up";
  }
  const double seconds = std::chrono::duration<double>(client.silent).count();
  return client.beats ? fmt::format("{:.1f} s ago", seconds) : fmt::format("none for {:.1f} s", seconds);
}

std::string EpochText(const ClientStatus& client) {
  return client.pulse.epoch == pool::kOfflineEpoch ? "offline" : Grouped(client.pulse.epoch);
}

std::string ClientsText(const PoolStatus& status) {
  if (status.clients.empty()) return status.missing.empty() ? "no clients\n" : "no clients at the others\n";
  Rows rows = {{"NODE", "SLOT", "STATE", "GENERATION", "FABRIC ID", "EPOCH", "SIGN OF LIFE"}};
  for (size_t i = 0; i < std::min(status.clients.size(), kMostLines); ++i) {
    const ClientStatus& client = status.clients[i];
    rows.push_back({fmt::format("{}", client.node), fmt::format("{}", client.slot),
                    std::string(Name(client.word.state())), fmt::format("{}", client.word.generation()),
                    fmt::format("{}", Number(client.word.fabric_client())), EpochText(client),
                    LifeText(client)});
  }
  return Columns(rows, "rrlrrrl") + More(status.clients.size());
}

std::string OptionsText(const TableStatus& table) {
  return table.info.options.empty() ? "-" : Readable(table.info.options);
}

// What the catalog knows.
std::string CatalogText(const PoolStatus& status) {
  Rows rows = {{"TABLE", "ENGINE", "OPTIONS"}};
  for (size_t i = 0; i < std::min(status.tables.size(), kMostLines); ++i) {
    const TableStatus& table = status.tables[i];
    rows.push_back({Readable(table.info.name), Readable(table.info.engine), OptionsText(table)});
  }
  return Columns(rows, "lll") + More(status.tables.size()) +
         "records were not counted; --records walks the tables to count them\n";
}

std::string TablesText(const StatusCommand& command, const PoolStatus& status) {
  if (status.tables.empty()) return status.missing.empty() ? "no tables\n" : "no tables at the others\n";
  if (!command.records) return CatalogText(status);
  Rows rows = {{"TABLE", "ENGINE", "RECORDS", "INDEX BYTES", "BLOCK BYTES", "OPTIONS"}};
  std::string problems;
  for (size_t i = 0; i < std::min(status.tables.size(), kMostLines); ++i) {
    const TableStatus& table = status.tables[i];
    const bool counted = table.stats.has_value();
    rows.push_back({Readable(table.info.name), Readable(table.info.engine),
                    counted ? Grouped(table.stats->records) : "?",
                    counted ? Grouped(table.stats->index_bytes) : "?",
                    counted ? Grouped(table.stats->block_bytes) : "?", OptionsText(table)});
    if (table.why.empty()) continue;
    problems += fmt::format("table {} was not counted: {}\n", Readable(table.info.name), Harmless(table.why));
  }
  return Columns(rows, "llrrrl") + More(status.tables.size()) + problems;
}

std::string DamageText(const PoolStatus& status) {
  if (!status.damaged()) return "";
  return "\nDAMAGED: run 'farside fsck' on this pool, which says what is damaged and what to do\n";
}

}  // namespace

std::string StatusText(const StatusCommand& command, const PoolStatus& status) {
  std::string text = fmt::format("pool  {}\n", Escape(command.url));
  if (IsEmbedded(command.url))
    text += fmt::format("made for this look, and empty: {}\n", kLivesWithItsProcess);
  return text + "\n" + NodesText(status) + "\n" + ClientsText(status) + "\n" + TablesText(command, status) +
         DamageText(status);
}

}  // namespace farside::tools
