#include "tools/status/status.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/farside.h"
#include "pool/memory/chunk_table.h"
#include "pool/region/url.h"
#include "store/pool_state.h"
#include "tools/common/missing_nodes.h"
#include "tools/common/output.h"
#include "tools/common/pool_table.h"
#include "tools/common/read_catalog.h"
#include "tools/json.h"
#include "tools/status/report.h"

namespace farside::tools {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using pool::ChunkState;
using pool::ChunkWord;
using pool::ClientSlot;
using pool::ClientState;

constexpr std::string_view kCalled = "farside status";
// Long enough to see one: sessions give eight signs of life in a lease, which has ten seconds by default.
constexpr Nanos kWatch = std::chrono::milliseconds(1500);
constexpr Nanos kBetweenLooks = std::chrono::milliseconds(20);

// ---- reading -----------------------------------------------------------------------------------------

Task<Done> ReadInto(Op& op, FarAddr from, std::span<std::byte> into) {
  co_await op.InOrder(fabric::ForMaintenance(fabric::Read(from, into)));
  co_return Done{};
}

Task<std::vector<ClientSlot>> ReadRegistry(Op& op, NodeId node, pool::Geometry geometry) {
  std::vector<ClientSlot> slots(geometry.client_slots);
  co_await ReadInto(op, FarAddr(node, geometry.registry()), std::as_writable_bytes(std::span(slots)));
  co_return slots;
}

bool IsSound(ChunkWord word) {
  return ChunkWord::State::Get(word.word()) <= static_cast<uint64_t>(ChunkState::kExtentRest) &&
         ChunkWord::Unused::Get(word.word()) == 0;
}

Task<NodeStatus> ReadNode(Op& op, NodeId node, pool::Geometry geometry) {
  NodeStatus status;
  status.bytes = geometry.region_bytes;
  status.chunk_bytes = geometry.chunk_bytes;
  status.client_slots = geometry.client_slots;
  status.table_slots = geometry.table_slots;
  co_await ReadInto(op, FarAddr(node, pool::kControlOffset),
                    std::as_writable_bytes(std::span(&status.control, 1)));
  std::vector<ChunkWord> words;
  for (uint64_t first = 0; first < geometry.chunks(); first += words.size()) {
    words.resize(std::min(geometry.chunks() - first, pool::ChunkTable::kManyWords));
    co_await ReadInto(op, FarAddr(node, geometry.chunk_word(first)),
                      std::as_writable_bytes(std::span(words)));
    for (const ChunkWord word : words) {
      status.damaged_chunks += IsSound(word) ? 0 : 1;
      status.free += word == ChunkWord() ? geometry.chunk_bytes : 0;
    }
  }
  co_return status;
}

bool Runs(const ClientStatus& client) {
  return client.word.state() == ClientState::kJoining || client.word.state() == ClientState::kLive;
}

Result<std::vector<ClientStatus>> ReadClients(fabric::Client& client, const pool::OpenedPool& pool) {
  std::vector<ClientStatus> clients;
  for (uint32_t node = 0; node < pool.geometries.size(); ++node) {
    if (pool.IsMissing(node)) continue;
    Op op(client, fabric::OpKind::kMaintenance);
    const Result<std::vector<ClientSlot>> slots =
        fabric::Run(client, ReadRegistry(op, static_cast<NodeId>(node), pool.geometries[node]));
    if (!slots.ok()) return slots.error();
    for (uint32_t slot = 0; slot < slots->size(); ++slot) {
      const ClientSlot& found = (*slots)[slot];
      if (found.state.state() == ClientState::kFree) continue;
      clients.push_back({.node = node, .slot = slot, .word = found.state, .pulse = found.pulse});
    }
  }
  return clients;
}

// Looks at all clients again and again, and notes which of them have given a sign of life since the look
// before.
Status WatchClients(fabric::Client& client, const pool::OpenedPool& pool, Nanos watch, const Pause& pause,
                    std::vector<ClientStatus>& clients) {
  const Nanos start = client.Now();
  const auto waited_for = [](const ClientStatus& known) { return Runs(known) && !known.beats; };
  std::vector<Nanos> since(clients.size(), start);
  while (client.Now() - start < watch && std::ranges::any_of(clients, waited_for)) {
    pause(kBetweenLooks);
    const Result<std::vector<ClientStatus>> now = ReadClients(client, pool);
    if (!now.ok()) return now.error();
    for (size_t i = 0; i < clients.size(); ++i) {
      ClientStatus& known = clients[i];
      const auto same = std::ranges::find_if(*now, [&](const ClientStatus& seen) {
        return seen.node == known.node && seen.slot == known.slot && seen.word == known.word;
      });
      if (same == now->end() || same->pulse.heartbeat == known.pulse.heartbeat) continue;
      known.pulse = same->pulse;
      known.beats = true;
      since[i] = client.Now();
    }
  }
  const Nanos end = client.Now();
  for (size_t i = 0; i < clients.size(); ++i) {
    if (Runs(clients[i])) clients[i].silent = end - since[i];
  }
  return OkStatus();
}

Status ReadCatalogs(fabric::Client& client, const pool::OpenedPool& pool, PoolStatus& status) {
  std::vector<pool::TableInfo> found;
  // A table that is just being made may be seen half; so what cannot be read is read again.
  for (int attempt = 0; attempt == 0 || (attempt == 1 && status.catalog_damaged); ++attempt) {
    bool complete = true;
    Op op(client, fabric::OpKind::kMaintenance);
    Result<std::vector<pool::TableInfo>> tables =
        fabric::Run(client, ReadTables(op, pool.geometries, complete));
    if (!tables.ok()) return tables.error();
    found = std::move(*tables);
    status.catalog_damaged = !complete;
  }
  std::ranges::sort(found, {}, &pool::TableInfo::name);
  for (pool::TableInfo& table : found) {
    TableStatus row;
    row.info = std::move(table);
    status.tables.push_back(std::move(row));
  }
  return OkStatus();
}

// ---- counting ----------------------------------------------------------------------------------------

void NotCounted(const Error& error, TableStatus& table) {
  table.why = error.message();
  table.damaged = error.code() == ErrorCode::kCorrupt;
}

// Joins the pool, which is taken over.
void CountRecords(std::unique_ptr<pool::OpenedPool> opened, bool in_file, std::vector<TableStatus>& tables) {
  store::PoolStateOptions options;
  if (in_file) options.client.lease.lease = kLeaseInFile;
  const Result<std::shared_ptr<store::PoolState>> state = store::PoolState::Serve(std::move(opened), options);
  if (!state.ok()) {
    for (TableStatus& table : tables) NotCounted(state.error(), table);
    return;
  }
  Pool pool(*state);
  Result<Session> session = pool.NewSession();
  for (TableStatus& table : tables) {
    if (!session.ok()) {
      NotCounted(session.error(), table);
      continue;
    }
    const Result<farside::Table> open = pool.OpenTable(table.info.name);
    if (!open.ok()) {
      NotCounted(open.error(), table);
      continue;
    }
    Result<TableStats> stats = session->Stats(*open);
    if (stats.ok()) {
      table.stats = std::move(*stats);
    } else {
      NotCounted(stats.error(), table);
    }
  }
}

}  // namespace

bool PoolStatus::damaged() const {
  return catalog_damaged || std::ranges::any_of(tables, &TableStatus::damaged) ||
         std::ranges::any_of(nodes, [](const NodeStatus& node) { return node.damaged_chunks > 0; });
}

std::string_view Name(ClientState state) {
  switch (state) {
    case ClientState::kFree: return "free";
    case ClientState::kJoining: return "joining";
    case ClientState::kLive: return "live";
    case ClientState::kFenced: return "fenced";
  }
  return "damaged";
}

Result<PoolStatus> LookAt(const pool::OpenedPool& pool, Nanos watch, const Pause& pause) {
  const Result<std::unique_ptr<fabric::Client>> client = pool.fabric->Connect();
  if (!client.ok()) return client.error();
  PoolStatus status;
  status.missing = pool.missing;
  for (uint32_t node = 0; node < pool.geometries.size(); ++node) {
    if (pool.IsMissing(node)) {
      status.nodes.emplace_back().missing = true;
      continue;
    }
    Op op(**client, fabric::OpKind::kMaintenance);
    Result<NodeStatus> read =
        fabric::Run(**client, ReadNode(op, static_cast<NodeId>(node), pool.geometries[node]));
    if (!read.ok()) return read.error();
    status.nodes.push_back(std::move(*read));
  }
  if (Status read = ReadCatalogs(**client, pool, status); !read.ok()) return read.error();
  Result<std::vector<ClientStatus>> clients = ReadClients(**client, pool);
  if (!clients.ok()) return clients.error();
  if (Status watched = WatchClients(**client, pool, watch, pause, *clients); !watched.ok())
    return watched.error();
  status.clients = std::move(*clients);
  return status;
}

ExitCode PrintStatus(const StatusCommand& command) {
  const Result<pool::PoolUrl> where = pool::ParseUrl(command.url);
  pool::OpenOptions options;
  // A file is looked at in a copy. No client runs in it, since no other process has opened it.
  const bool in_file = where.ok() && where->in_file();
  options.read_only = where.ok() && where->kind != pool::PoolUrl::Kind::kEmbedded;
  Result<std::unique_ptr<pool::OpenedPool>> pool = pool::OpenPool(command.url, options);
  if (!pool.ok())
    return where.ok() ? CouldNotRun(kCalled, pool.error().message()) : BadUrl(kCalled, pool.error());

  const Nanos watch = command.watch.has_value()
                          ? std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(*command.watch))
                          : kWatch;
  Result<PoolStatus> status = LookAt(**pool, watch, [](Nanos pause) { std::this_thread::sleep_for(pause); });
  if (!status.ok()) return CouldNotRun(kCalled, status.error().message());
  if (command.records && !status->tables.empty()) CountRecords(std::move(*pool), in_file, status->tables);
  Print(command.json ? ToJson(command, *status) : StatusText(command, *status));
  const ExitCode all_there = ReportMissing(kCalled, status->missing);
  return status->damaged() ? kDoesNotHold : all_there;
}

}  // namespace farside::tools
