#include "tools/table/table.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/catalog/catalog.h"
#include "pool/region/open.h"
#include "pool/region/url.h"
#include "store/engines.h"
#include "tools/common/missing_nodes.h"
#include "tools/common/output.h"
#include "tools/common/pool_session.h"
#include "tools/json.h"
#include "tools/table/dry_run_engine.h"
#include "tools/table/report.h"

namespace farside::tools {
namespace {

using fabric::NodeId;
using fabric::Op;
using index::OpenTable;
using pool::OpenedPool;
using pool::PoolUrl;
using pool::TableInfo;

const pool::OpenOptions kLookOnly{.format = {}, .read_only = true, .clock = nullptr, .random = nullptr};

bool IsEmbedded(const PoolUrl& url) { return url.kind == PoolUrl::Kind::kEmbedded; }

std::string_view Called(TableCommand::Verb verb) {
  switch (verb) {
    case TableCommand::Verb::kCreate: return "farside table create";
    case TableCommand::Verb::kList: return "farside table list";
    case TableCommand::Verb::kShow: return "farside table show";
    case TableCommand::Verb::kDrop: return "farside table drop";
  }
  return "farside table";
}

template <class Report>
void PrintReport(const TableCommand& command, const Report& report) {
  Print(command.json ? ToJson(report) : TableText(report));
}

Result<std::unique_ptr<OpenedPool>> Look(const TableCommand& command) {
  return pool::OpenPool(command.url, kLookOnly);
}

// ---- looking -----------------------------------------------------------------------------------------

// Needs no registration: the catalog is only read.
Task<std::vector<TableInfo>> ListTables(Op& op, NodeId node, pool::Geometry geometry) {
  pool::Membership unregistered(op.client(), node, geometry, {});
  pool::Catalog catalog(unregistered);
  std::vector<TableInfo> tables = co_await catalog.List(op);
  co_return std::move(tables);
}

Result<std::vector<TableInfo>> ListAll(const OpenedPool& pool) {
  Result<std::unique_ptr<fabric::Client>> client = pool.fabric->Connect();
  if (!client.ok()) return client.error();
  std::vector<TableInfo> all;
  for (size_t node = 0; node < pool.geometries.size(); ++node) {
    if (pool.IsMissing(node)) continue;
    Op op(**client, fabric::OpKind::kMaintenance);
    Result<std::vector<TableInfo>> tables =
        fabric::Run(**client, ListTables(op, static_cast<NodeId>(node), pool.geometries[node]));
    if (!tables.ok()) return tables.error();
    std::move(tables->begin(), tables->end(), std::back_inserter(all));
  }
  std::sort(all.begin(), all.end(), [](const TableInfo& a, const TableInfo& b) { return a.name < b.name; });
  return all;
}

ExitCode List(const TableCommand& command, const PoolUrl& url) {
  TableList list;
  list.embedded = IsEmbedded(url);
  if (!list.embedded) {
    const Result<std::unique_ptr<OpenedPool>> pool = Look(command);
    if (!pool.ok()) return CouldNotRun(Called(command.verb), pool.error().message());
    Result<std::vector<TableInfo>> tables = ListAll(**pool);
    if (!tables.ok()) return CouldNotRun(Called(command.verb), tables.error().message());
    list.tables = std::move(*tables);
    list.missing = (*pool)->missing;
  }
  PrintReport(command, list);
  return ReportMissing(Called(command.verb), list.missing);
}

Task<TableInfo> FindTable(Op& op, pool::PoolClient& client, std::string name) {
  pool::Catalog catalog(client.member(pool::HomeOf(name, client.nodes())));
  TableInfo info = co_await catalog.Open(op, std::move(name));
  co_return std::move(info);
}

// What a table occupies; kCorrupt if it is damaged, another error if this build does not know such tables.
Result<TableSize> SizeOf(PoolSession& session, const TableInfo& info,
                         const std::vector<pool::Geometry>& geometries) {
  const Result<std::shared_ptr<index::Engine>> engine = session.registration().tables().EngineOf(info);
  if (!engine.ok()) return engine.error();
  const std::unique_ptr<index::Index> index = (*engine)->Open(session.registration().pool(), info.roots);
  Measure measure;
  const Status walked = session.Walk(*index, measure);
  if (!walked.ok()) return walked.error();
  return measure.Size(geometries);
}

// A table and its size, as far as they can be known.
struct Seen {
  TableInfo info;
  Result<TableSize> size;
};

Result<Seen> LookAt(const OpenedPool& pool, const std::string& name) {
  Result<PoolSession> session = PoolSession::Join(pool, store::MakeEngine);
  if (!session.ok()) return session.error();
  Result<TableInfo> info =
      session->Run([&](Op& op, store::Registration& joined) { return FindTable(op, joined.pool(), name); });
  std::optional<Seen> seen;
  if (info.ok()) seen = Seen{*info, SizeOf(*session, *info, pool.geometries)};
  // Otherwise another client would have to release its slot.
  if (pool.remote) static_cast<void>(session->Leave());
  if (!seen.has_value()) return info.error();
  return std::move(*seen);
}

ExitCode Show(const TableCommand& command) {
  const Result<std::unique_ptr<OpenedPool>> pool = Look(command);
  if (!pool.ok()) return CouldNotRun(Called(command.verb), pool.error().message());
  const Result<Seen> seen = LookAt(**pool, command.name);
  if (!seen.ok()) return CouldNotRun(Called(command.verb), seen.error().message());
  ShownTable shown;
  shown.info = seen->info;
  if (seen->size.ok()) {
    shown.size = *seen->size;
  } else {
    shown.why = seen->size.error().message();
  }
  PrintReport(command, shown);
  return seen->size.ok() || seen->size.error().code() != ErrorCode::kCorrupt ? kSuccess : kDoesNotHold;
}

// ---- rehearsing --------------------------------------------------------------------------------------

// Joining and leaving: what a client does for the pool on the way, such as taking over what the dead have
// left.
Status RehearseLeave(const OpenedPool& copy) {
  Result<PoolSession> session = PoolSession::Join(copy, store::MakeEngine);
  if (!session.ok()) return session.error();
  return session->Leave();
}

// Whether the table is there, or can be made. The copy is of no use afterwards.
Result<MadeTable> RehearseCreate(const OpenedPool& copy, const TableCommand& command) {
  Result<PoolSession> session = PoolSession::Join(copy, MakeDryRunEngine);
  if (!session.ok()) return session.error();
  const Result<OpenTable> table = session->Run([&](Op& op, store::Registration& joined) {
    return joined.tables().CreateOrOpen(op, command.name, command.engine, command.options);
  });
  if (!table.ok()) return table.error();
  return MadeTable{.info = table->info, .created = table->created};
}

// ---- making ------------------------------------------------------------------------------------------

// The table if it is there already, nothing if it can be made.
Result<std::optional<TableInfo>> Rehearse(const TableCommand& command, const PoolUrl& url) {
  Result<std::unique_ptr<OpenedPool>> copy = Look(command);
  const bool exists = copy.ok() || copy.error().code() != ErrorCode::kNotFound;
  // One that is to be made is like an embedded one of its size.
  if (!exists && url.size.has_value()) {
    pool::OpenOptions options;
    options.format.durable = url.kind == PoolUrl::Kind::kPmem;
    copy = pool::OpenPool(fmt::format("embedded:?size={}", FormatSize(*url.size)), options);
  }
  if (!copy.ok()) return copy.error();
  if (Status left = RehearseLeave(**copy); !left.ok()) return left.error();
  Result<MadeTable> table = RehearseCreate(**copy, command);
  if (!table.ok()) return table.error();
  if (table->created) return std::optional<TableInfo>();
  return std::optional<TableInfo>(std::move(table->info));
}

Result<MadeTable> Make(const TableCommand& command) {
  Result<PoolSession> session = PoolSession::Open(command.url, {}, store::MakeEngine);
  if (!session.ok()) return session.error();
  MadeTable made;
  made.pool_made = session->pool().made;
  {
    const Result<OpenTable> table = session->Run([&](Op& op, store::Registration& joined) {
      return joined.tables().CreateOrOpen(op, command.name, command.engine, command.options);
    });
    if (!table.ok()) return table.error();
    made.info = table->info;
    made.created = table->created;
  }
  if (Status left = session->Leave(); !left.ok()) return left.error();
  return made;
}

ExitCode Create(const TableCommand& command, const PoolUrl& url) {
  const Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(command.engine, command.options);
  if (!engine.ok()) return WrongUsage(Called(command.verb), engine.error().message());
  if (!(*engine)->traits().keeps_records) {
    return WrongUsage(
        Called(command.verb),
        fmt::format("{} only measures the fabric and remembers nothing; it is for 'farside bench'",
                    command.engine));
  }
  if (url.size.has_value()) {
    const Result<pool::Geometry> shape = pool::PlanGeometry(*url.size, {});
    if (!shape.ok()) return WrongUsage(Called(command.verb), shape.error().message());
  }
  MadeTable made;
  // Nodes that others serve cannot be copied, so there is nothing to rehearse on.
  if (url.in_file()) {
    Result<std::optional<TableInfo>> there = Rehearse(command, url);
    if (!there.ok() && there.error().code() == ErrorCode::kNotFound && !url.size.has_value()) {
      return CouldNotRun(Called(command.verb),
                         fmt::format("{} does not exist; to make a pool there, add a size, as in ?size=1GiB",
                                     Escape(url.path)));
    }
    if (!there.ok()) return CouldNotRun(Called(command.verb), there.error().message());
    if (there->has_value()) {
      made.info = std::move(**there);
      PrintReport(command, made);
      return kSuccess;
    }
  }
  Result<MadeTable> now = Make(command);
  if (!now.ok()) return CouldNotRun(Called(command.verb), now.error().message());
  made = std::move(*now);
  made.embedded = IsEmbedded(url);
  PrintReport(command, made);
  return kSuccess;
}

// ---- dropping ----------------------------------------------------------------------------------------

Task<Done> DropTable(Op& op, store::Registration& session, std::string name) {
  co_await session.tables().Drop(op, std::move(name));
  co_return Done{};
}

Status DropIt(const TableCommand& command) {
  Result<PoolSession> session = PoolSession::Open(command.url, {}, store::MakeEngine);
  if (!session.ok()) return session.error();
  const Status dropped =
      session->Run([&](Op& op, store::Registration& joined) { return DropTable(op, joined, command.name); });
  if (!dropped.ok()) return dropped;
  return session->Leave();
}

// A table that cannot be walked cannot be freed block by block. But when it is dropped, no table reaches its
// blocks, and the next client of the pool adopts what a client that did not leave has left behind, and
// sweeps.
Status DropDamaged(const TableCommand& command) {
  const Status dropped = DropIt(command);
  if (dropped.ok() || dropped.error().code() != ErrorCode::kCorrupt) return dropped;
  Result<PoolSession> next = PoolSession::Open(command.url, {}, store::MakeEngine);
  const Status swept = next.ok() ? next->Leave() : Status(next.error());
  if (swept.ok()) return swept;
  return Error(swept.error().code(),
               fmt::format("the table \"{}\" is dropped, but what it occupied is not free yet: {}",
                           Escape(command.name), swept.error().message()));
}

ExitCode Drop(const TableCommand& command, const PoolUrl& url) {
  DroppedTable gone;
  gone.name = command.name;
  bool damaged = false;
  {
    const Result<std::unique_ptr<OpenedPool>> copy = Look(command);
    if (!copy.ok()) return CouldNotRun(Called(command.verb), copy.error().message());
    const Result<Seen> seen = LookAt(**copy, command.name);
    if (!seen.ok()) return CouldNotRun(Called(command.verb), seen.error().message());
    damaged = !seen->size.ok() && seen->size.error().code() == ErrorCode::kCorrupt;
    if (!seen->size.ok() && !damaged) {
      return CouldNotRun(Called(command.verb),
                         "what the table occupies cannot be freed: " + seen->size.error().message());
    }
    if (damaged) {
      gone.why = seen->size.error().message();
    } else {
      gone.size = *seen->size;
    }
  }
  if (!damaged && url.in_file()) {
    const Result<std::unique_ptr<OpenedPool>> copy = Look(command);
    if (!copy.ok()) return CouldNotRun(Called(command.verb), copy.error().message());
    if (Status left = RehearseLeave(**copy); !left.ok())
      return CouldNotRun(Called(command.verb), left.error().message());
  }
  const Status dropped = damaged ? DropDamaged(command) : DropIt(command);
  if (!dropped.ok()) return CouldNotRun(Called(command.verb), dropped.error().message());
  PrintReport(command, gone);
  return kSuccess;
}

}  // namespace

ExitCode Table(const TableCommand& command) {
  const Result<PoolUrl> url = pool::ParseUrl(command.url);
  if (!url.ok()) return BadUrl(Called(command.verb), url.error());
  if (command.verb == TableCommand::Verb::kList) return List(command, *url);
  if (Status name = pool::CheckTableName(command.name); !name.ok()) {
    return WrongUsage(Called(command.verb), name.error().message());
  }
  if (command.verb == TableCommand::Verb::kCreate) return Create(command, *url);
  if (IsEmbedded(*url)) {
    return CouldNotRun(Called(command.verb), fmt::format("there is no table \"{}\": {}", Escape(command.name),
                                                         kLivesWithItsProcess));
  }
  return command.verb == TableCommand::Verb::kShow ? Show(command) : Drop(command, *url);
}

}  // namespace farside::tools
