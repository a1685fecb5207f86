#include "tools/common/pool_table.h"

#include <unistd.h>

#include <memory>

#include <fmt/format.h>

#include "base/log.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "index/tables.h"
#include "pool/catalog/catalog.h"
#include "pool/region/open.h"
#include "pool/region/url.h"
#include "store/engines.h"
#include "store/pool_state.h"
#include "tools/common/output.h"
#include "tools/table/report.h"

namespace farside::tools {
namespace {

bool IsFile(std::string_view url) {
  const Result<pool::PoolUrl> where = pool::ParseUrl(url);
  return where.ok() && where->in_file();
}

// A file that is not there can be made. Of nodes that others serve, one that is not there has to be served
// first.
Result<Pool> OpenServed(const std::string& url, const PoolOptions& options) {
  Result<Pool> pool = Pool::Open(url, options);
  if (!pool.ok() && pool.error().code() == ErrorCode::kNotFound && !IsFile(url)) {
    return Error(ErrorCode::kUnavailable, pool.error().message());
  }
  return pool;
}

// Any number of processes may have a copy of a file at the same time.
Result<Pool> OpenCopy(const std::string& url) {
  store::PoolStateOptions options;
  options.open.read_only = true;
  options.client.lease.lease = kLeaseInFile;
  Result<std::shared_ptr<store::PoolState>> state = store::PoolState::Open(url, options);
  if (!state.ok()) return state.error();
  return Pool(std::move(*state));
}

struct OpenedOrMade {
  farside::Table table;
  bool made = false;
};

Result<OpenedOrMade> OpenOrMake(Pool& pool, const std::string& name,
                                const std::optional<TableOptions>& make) {
  Result<farside::Table> table = pool.OpenTable(name);
  if (!make.has_value() || (!table.ok() && table.error().code() != ErrorCode::kNotFound)) {
    if (!table.ok()) return table.error();
    return OpenedOrMade{std::move(*table), false};
  }
  if (!table.ok()) {
    table = pool.CreateTable(name, *make);
    if (table.ok()) return OpenedOrMade{std::move(*table), true};
    if (table.error().code() != ErrorCode::kAlreadyExists) return table.error();
  }
  // It is there, and must be as it was asked for, if it was.
  table = pool.OpenOrCreateTable(name, *make);
  if (!table.ok()) return table.error();
  return OpenedOrMade{std::move(*table), false};
}

// Needs no registration: the catalog is only read.
Task<pool::TableInfo> FindTable(fabric::Op& op, fabric::NodeId node, pool::Geometry geometry,
                                std::string name) {
  pool::Membership unregistered(op.client(), node, geometry, {});
  pool::Catalog catalog(unregistered);
  pool::TableInfo info = co_await catalog.Open(op, std::move(name));
  co_return std::move(info);
}

Status IsInFile(const std::string& url, const std::string& name) {
  const Result<std::unique_ptr<pool::OpenedPool>> pool =
      pool::OpenPool(url, {.format = {}, .read_only = true, .clock = nullptr, .random = nullptr});
  if (!pool.ok()) return pool.error();
  const Result<std::unique_ptr<fabric::Client>> client = (*pool)->fabric->Connect();
  if (!client.ok()) return client.error();
  const fabric::NodeId home = pool::HomeOf(name, (*pool)->geometries.size());
  fabric::Op op(**client, fabric::OpKind::kMaintenance);
  const Result<pool::TableInfo> found =
      fabric::Run(**client, FindTable(op, home, *fabric::ForNode((*pool)->geometries, home), name));
  if (!found.ok()) return found.error();
  return OkStatus();
}

Status CanBeMadeInNewFile(const std::string& url, const TableOptions& make) {
  const std::string name = make.engine.empty() ? std::string(store::DefaultEngine()) : make.engine;
  const Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(name, make.options);
  if (!engine.ok()) return engine.error();
  const Result<pool::PoolUrl> where = pool::ParseUrl(url);
  const bool durable = where.ok() && where->kind == pool::PoolUrl::Kind::kPmem;
  if (durable && !(*engine)->traits().durable) return index::NotDurable(name, store::DurableEngineNames());
  return OkStatus();
}

// For a table in such a pool.
std::string SuggestedEngine(const Result<pool::PoolUrl>& where) {
  const std::string durable = store::DurableEngineNames();
  const bool needs_durable = where.ok() && where->kind == pool::PoolUrl::Kind::kPmem;
  return needs_durable && !durable.empty() ? durable.substr(0, durable.find(','))
                                           : std::string(store::DefaultEngine());
}

// Whether the table could be made in the file, found out in a copy of it. One that is to be made too has
// room, or the real attempt says that it has not.
Status CanBeMadeInFile(const std::string& url, const std::string& name, const TableOptions& make) {
  Result<Pool> copy = OpenCopy(url);
  if (!copy.ok()) {
    const bool is_to_be_made = copy.error().code() == ErrorCode::kNotFound;
    return is_to_be_made ? CanBeMadeInNewFile(url, make) : Status(copy.error());
  }
  const Result<OpenedOrMade> table = OpenOrMake(*copy, name, make);
  if (!table.ok()) return table.error();
  return OkStatus();
}

}  // namespace

Result<PoolTable> PoolTable::Join(Pool pool, const std::string& name,
                                  const std::optional<TableOptions>& make) {
  Result<OpenedOrMade> table = OpenOrMake(pool, name, make);
  if (!table.ok()) return table.error();
  Result<Session> session = pool.NewSession();
  if (!session.ok()) return session.error();
  return PoolTable(std::move(pool), std::move(table->table), table->made, std::move(*session));
}

Result<PoolTable> PoolTable::OpenToLook(const std::string& url, const std::string& name) {
  const bool is_copy = IsFile(url);
  Result<Pool> pool = is_copy ? OpenCopy(url) : OpenServed(url, {});
  if (!pool.ok()) return pool.error();
  Result<PoolTable> table = Join(std::move(*pool), name, std::nullopt);
  if (table.ok()) table->is_copy_ = is_copy;
  return table;
}

Result<PoolTable> PoolTable::OpenToChange(const std::string& url, const std::string& name,
                                          const std::optional<TableOptions>& make) {
  if (IsFile(url)) {
    const Status good = make.has_value() ? CanBeMadeInFile(url, name, *make) : IsInFile(url, name);
    if (!good.ok()) return good.error();
  }
  PoolOptions options;
  if (IsFile(url)) options.lease = kLeaseInFile;
  Result<Pool> pool = OpenServed(url, options);
  if (!pool.ok()) return pool.error();
  return Join(std::move(*pool), name, make);
}

void PoolTable::Close(std::string_view command) {
  if (is_copy_) return;
  Status left = session_.Close();
  if (left.ok()) left = pool_.Close();
  if (left.ok()) return;
  WriteToStderr(fmt::format(
      "{}: all is done, but the pool could not be left in good order, so that others clean up: {}\n", command,
      left.error().message()));
}

bool IsEmbedded(std::string_view url) {
  const Result<pool::PoolUrl> where = pool::ParseUrl(url);
  return where.ok() && where->kind == pool::PoolUrl::Kind::kEmbedded;
}

std::optional<ExitCode> RefuseTable(std::string_view command, const std::string& name,
                                    const std::optional<TableOptions>& make) {
  if (Status good = pool::CheckTableName(name); !good.ok())
    return WrongUsage(command, good.error().message());
  if (!make.has_value()) return std::nullopt;
  const std::string engine_name = make->engine.empty() ? std::string(store::DefaultEngine()) : make->engine;
  const Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine(engine_name, make->options);
  if (!engine.ok()) return WrongUsage(command, engine.error().message());
  if ((*engine)->traits().keeps_records) return std::nullopt;
  return WrongUsage(
      command, fmt::format("{} only measures the fabric and remembers nothing; it is for 'farside bench'",
                           engine_name));
}

ExitCode CouldNotOpen(std::string_view command, const std::string& url, const std::string& name,
                      const Error& error, Making making) {
  const Result<pool::PoolUrl> where = pool::ParseUrl(url);
  if (!where.ok() && where.error().code() == error.code()) return BadUrl(command, error);
  if (error.code() != ErrorCode::kNotFound || making == Making::kRequested) {
    return CouldNotRun(command, error.message());
  }
  if (IsEmbedded(url)) {
    return CouldNotRun(command, fmt::format("{}: {}{}", error.message(), kLivesWithItsProcess,
                                            making == Making::kOnRequest ? "; add --create" : ""));
  }
  const bool needs_size =
      where.ok() && !where->size.has_value() && IsFile(url) && ::access(where->path.c_str(), F_OK) != 0;
  return CouldNotRun(
      command, fmt::format("{}; to make it: farside table create {} {} --engine {}{}", error.message(),
                           ShellQuoted(needs_size ? url + "?size=1GiB" : url), ShellQuoted(name),
                           SuggestedEngine(where), making == Making::kOnRequest ? ", or add --create" : ""));
}

std::string WhyNot(const std::string& url, const std::string& name, const Error& error) {
  if (error.code() != ErrorCode::kCorrupt) return error.message();
  // Engines cannot know the URL.
  constexpr std::string_view kAdvice = "; run farside fsck";
  std::string_view what = error.message();
  if (what.ends_with(kAdvice)) what.remove_suffix(kAdvice.size());
  return fmt::format("table {} is damaged: {}; run: farside fsck {}", name, what, ShellQuoted(url));
}

}  // namespace farside::tools
