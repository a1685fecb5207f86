// `farside status`: nodes, clients, epochs, memory and tables of a pool, on one screen.
//
// It reads what the nodes say of themselves, without joining the pool. With --records it joins, as the last
// thing, and walks every table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "farside/record.h"
#include "farside/result.h"
#include "pool/catalog/catalog.h"
#include "pool/region/layout.h"
#include "pool/region/open.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

struct StatusCommand {
  std::string url;
  bool records = false;         // walks the tables to count their records
  std::optional<double> watch;  // seconds in which clients are watched for signs of life
  bool json = false;
};

struct NodeStatus {
  bool missing = false;  // it cannot be reached, and nothing is known of it
  uint64_t bytes = 0;    // of its region
  uint64_t free = 0;     // in chunks without an owner
  uint64_t chunk_bytes = 0;
  uint64_t damaged_chunks = 0;  // whose words no correct client wrote
  uint32_t client_slots = 0;
  uint32_t table_slots = 0;
  pool::Control control{};

  uint64_t used() const { return bytes - free; }
};

// A slot of a node's registry that is taken.
struct ClientStatus {
  uint32_t node = 0;
  uint32_t slot = 0;
  pool::ClientWord word;
  pool::Pulse pulse{};
  // Since its last sign of life: exactly if one was seen, and at least this if not.
  Nanos silent{0};
  bool beats = false;  // a sign of life was seen
};

struct TableStatus {
  pool::TableInfo info;
  std::optional<TableStats> stats;
  std::string why;  // if there are none
  bool damaged = false;
};

struct PoolStatus {
  std::vector<NodeStatus> nodes;
  std::vector<ClientStatus> clients;
  std::vector<TableStatus> tables;
  bool catalog_damaged = false;
  std::vector<pool::MissingNode> missing;  // why, of those

  bool damaged() const;
};

// How status waits between two looks at the clients.
using Pause = std::function<void(Nanos)>;

// What the nodes say, without the statistics of tables. Clients that run are watched until each has given a
// sign of life, but no longer than `watch`.
Result<PoolStatus> LookAt(const pool::OpenedPool& pool, Nanos watch, const Pause& pause);

// "free", "joining", "live", "fenced".
std::string_view Name(pool::ClientState state);

ExitCode PrintStatus(const StatusCommand& command);

}  // namespace farside::tools
