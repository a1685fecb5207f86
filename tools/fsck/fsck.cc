// Two openings of the pool, one after the other. The first one is for the walk, which needs a session, and a
// session registers itself. The second one is for the check of the bytes, which finds them untouched.
#include "tools/fsck/fsck.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/catalog/catalog.h"
#include "pool/region/open.h"
#include "pool/region/url.h"
#include "store/engines.h"
#include "tools/common/missing_nodes.h"
#include "tools/common/output.h"
#include "tools/common/pool_session.h"
#include "tools/common/read_catalog.h"
#include "tools/common/terminal.h"
#include "tools/fsck/report.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using pool::FsckReport;
using pool::OpenedPool;
using pool::Severity;
using pool::TableInfo;

constexpr Nanos kPatience = std::chrono::seconds(2);
constexpr std::string_view kSaveAndDrop = "export what can still be read of it, then drop the table";
// Marks between two looks at the clock.
constexpr uint64_t kMarksPerLook = 1024;

// What the walk has found out.
struct Walked {
  pool::Reached reached;
  std::vector<CheckedTable> tables;
  bool complete = true;
  // Findings, to be added to those of the nodes.
  std::vector<pool::Finding> findings;
  // What Verify has found.
  struct Broken {
    FarAddr entry;  // of the table
    std::string table;
    std::string why;
    bool walked = true;  // the table, to its end
  };
  std::vector<Broken> broken;
};

// ---- the tables --------------------------------------------------------------------------------------

void NotWalked(const TableInfo& table, Severity severity, const std::string& why, std::string_view advice,
               Walked& walked) {
  walked.complete = false;
  walked.tables.back().why = why;
  walked.findings.push_back({severity, table.entry,
                             fmt::format("table {} was not walked to its end: {}", table.name, why),
                             std::string(advice)});
}

void WalkTable(PoolSession& pool, const TableInfo& table, const std::vector<pool::Geometry>& geometries,
               const Measure::Progress& progress, Walked& walked) {
  walked.tables.push_back({table.name, table.engine, std::nullopt, ""});
  const Result<std::shared_ptr<index::Engine>> engine = pool.registration().tables().EngineOf(table);
  if (!engine.ok()) {
    return NotWalked(table, Severity::kNote, engine.error().message(),
                     "check the pool with a build that knows this table", walked);
  }
  walked.reached.BeginTable(table.name);
  Measure measure(&walked.reached, progress);
  const std::unique_ptr<index::Index> index = (*engine)->Open(pool.registration().pool(), table.roots);
  const Status marked = pool.Walk(*index, measure);
  if (marked.ok()) {
    walked.tables.back().size = measure.Size(geometries);
  } else {
    NotWalked(table, Severity::kDamage, marked.error().message(), kSaveAndDrop, walked);
  }
  // Also if the walk has found damage: what Verify finds may be something else.
  const Status verified = pool.Run([&](Op& op, store::Registration&) { return index->Verify(op); });
  if (verified.ok() || (!marked.ok() && marked.error().message() == verified.error().message())) return;
  walked.broken.push_back({table.entry, table.name, verified.error().message(), marked.ok()});
}

void WalkTables(const OpenedPool& pool, std::span<const TableInfo> tables, Walked& walked) {
  if (tables.empty()) return;
  Result<PoolSession> session = PoolSession::Join(pool, store::MakeEngine);
  if (!session.ok()) {
    walked.complete = false;
    walked.findings.push_back({Severity::kNote, FarAddr(NodeId{0}, 0),
                               "no table was walked: " + session.error().message(),
                               "open the pool with a program that stays until what is needed is free"});
    return;
  }
  uint64_t blocks = 0;
  for (const pool::Geometry& geometry : pool.geometries) blocks += geometry.region_bytes / pool::kLine;
  ProgressLine line("walking", "blocks at most", blocks, kPatience);
  uint64_t before = 0;
  uint64_t of_this = 0;
  const Measure::Progress progress = [&](uint64_t marked) {
    of_this = marked;
    if (marked % kMarksPerLook == 0) line.Show(before + marked);
  };
  for (const TableInfo& table : tables) {
    WalkTable(*session, table, pool.geometries, progress, walked);
    before += std::exchange(of_this, 0);
  }
  // Otherwise another client would have to release its slot.
  if (pool.remote) static_cast<void>(session->Leave());
}

Status Walk(const OpenedPool& pool, Walked& walked) {
  std::vector<TableInfo> tables;
  {
    Result<std::unique_ptr<fabric::Client>> client = pool.fabric->Connect();
    if (!client.ok()) return client.error();
    Op op(**client, fabric::OpKind::kMaintenance);
    Result<std::vector<TableInfo>> read =
        fabric::Run(**client, ReadTables(op, pool.geometries, walked.complete));
    if (!read.ok()) return read.error();
    tables = std::move(*read);
  }
  WalkTables(pool, tables, walked);
  return OkStatus();
}

// ---- the bytes ---------------------------------------------------------------------------------------

Result<std::vector<FsckReport>> CheckNodes(const OpenedPool& pool, const Walked& walked) {
  Result<std::unique_ptr<fabric::Client>> client = pool.fabric->Connect();
  if (!client.ok()) return client.error();
  uint64_t chunks = 0;
  for (const pool::Geometry& geometry : pool.geometries) chunks += geometry.chunks();
  ProgressLine line("checking", "chunks", chunks, kPatience);
  std::vector<FsckReport> reports;
  uint64_t before = 0;
  for (size_t i = 0; i < pool.geometries.size(); ++i) {
    pool::FsckOptions options;
    options.no_client_runs = true;
    options.all_walked = walked.complete;
    options.progress = [&](uint64_t checked) { line.Show(before + checked); };
    Op op(**client, fabric::OpKind::kMaintenance);
    Result<FsckReport> report = fabric::Run(
        **client,
        pool::Fsck(op, static_cast<NodeId>(i), pool.geometries[i], walked.reached, std::move(options)));
    if (!report.ok()) return report.error();
    reports.push_back(std::move(*report));
    before += pool.geometries[i].chunks();
  }
  return reports;
}

// What is found at a node that does not exist is told with the first one.
FsckReport& ReportOf(std::vector<FsckReport>& nodes, NodeId node) {
  FsckReport* const report = fabric::ForNode(nodes, node);
  return report != nullptr ? *report : nodes.front();
}

void Add(std::vector<pool::Finding>& findings, std::vector<FsckReport>& nodes) {
  for (pool::Finding& finding : findings) {
    ReportOf(nodes, finding.where.node)
        .Add(finding.severity, finding.where, std::move(finding.what), std::move(finding.advice));
  }
}

// Verify reads blocks, too. A damaged block is reported better by the check of the bytes, which says where it
// is and what to do about its key; so what Verify says is left out if it is nothing but that. Verify does not
// say which block it means. If the walk was complete, every block that Verify reads was checked; if it was
// not, Verify may mean another block than those that were.
bool IsDamagedBlock(const Walked::Broken& broken, std::span<const FsckReport> nodes) {
  if (!broken.walked) return false;
  const std::string block = fmt::format("table {} has a damaged block", broken.table);
  return std::any_of(nodes.begin(), nodes.end(), [&](const FsckReport& node) {
    return std::any_of(node.findings.begin(), node.findings.end(), [&](const pool::Finding& finding) {
      return finding.what.starts_with(block) && finding.what.ends_with(broken.why);
    });
  });
}

void AddBroken(std::span<const Walked::Broken> all, std::vector<FsckReport>& nodes) {
  for (const Walked::Broken& broken : all) {
    if (IsDamagedBlock(broken, nodes)) continue;
    ReportOf(nodes, broken.entry.node)
        .Add(Severity::kDamage, broken.entry, fmt::format("table {}: {}", broken.table, broken.why),
             std::string(kSaveAndDrop));
  }
}

}  // namespace

uint64_t PoolReport::notes() const {
  uint64_t sum = 0;
  for (const FsckReport& node : nodes) sum += node.notes;
  return sum;
}

uint64_t PoolReport::leaks() const {
  uint64_t sum = 0;
  for (const FsckReport& node : nodes) sum += node.leaks;
  return sum;
}

uint64_t PoolReport::damages() const {
  uint64_t sum = 0;
  for (const FsckReport& node : nodes) sum += node.damages;
  return sum;
}

pool::FsckBytes PoolReport::bytes() const {
  pool::FsckBytes sum;
  for (const FsckReport& node : nodes) {
    sum.metadata += node.bytes.metadata;
    sum.free_chunks += node.bytes.free_chunks;
    sum.overhead += node.bytes.overhead;
    sum.reachable += node.bytes.reachable;
    sum.free_blocks += node.bytes.free_blocks;
    sum.held += node.bytes.held;
    sum.abandoned += node.bytes.abandoned;
    sum.leaked += node.bytes.leaked;
    sum.unknown += node.bytes.unknown;
    sum.damaged += node.bytes.damaged;
  }
  return sum;
}

Result<PoolReport> CheckPool(std::string_view url) {
  const Result<pool::PoolUrl> where = pool::ParseUrl(url);
  if (!where.ok()) return where.error();
  pool::OpenOptions options;
  options.read_only =
      where->kind != pool::PoolUrl::Kind::kEmbedded;  // an embedded pool is made to be looked at
  Walked walked;
  {
    const Result<std::unique_ptr<OpenedPool>> pool = pool::OpenPool(url, options);
    if (!pool.ok()) return pool.error();
    // What no table on the present nodes reaches may be reached from the others.
    if (Status all = NeedAllNodes((*pool)->missing); !all.ok()) return all.error();
    if (Status done = Walk(**pool, walked); !done.ok()) return done.error();
  }
  const Result<std::unique_ptr<OpenedPool>> pool = pool::OpenPool(url, options);
  if (!pool.ok()) return pool.error();
  if (Status all = NeedAllNodes((*pool)->missing); !all.ok()) return all.error();
  Result<std::vector<FsckReport>> nodes = CheckNodes(**pool, walked);
  if (!nodes.ok()) return nodes.error();
  uint64_t others = 0;
  for (const FsckReport& node : *nodes) others = std::max(others, node.counts.clients_live);
  if ((*pool)->remote && others > 0) {
    return Error(
        ErrorCode::kUnavailable,
        fmt::format(
            "{} session{} of others use{} the pool, and what they are doing looks like damage; check it "
            "when none does, or see 'farside status'",
            others, others == 1 ? "" : "s", others == 1 ? "s" : ""));
  }

  PoolReport report{std::move(walked.tables), walked.complete, std::move(*nodes)};
  Add(walked.findings, report.nodes);
  AddBroken(walked.broken, report.nodes);
  return report;
}

ExitCode Fsck(const FsckCommand& command) {
  const Result<pool::PoolUrl> where = pool::ParseUrl(command.url);
  if (!where.ok()) return BadUrl("farside fsck", where.error());
  const Result<PoolReport> report = CheckPool(command.url);
  if (!report.ok()) return CouldNotRun("farside fsck", report.error().message());
  Print(command.json ? ToJson(command, *report) : FsckText(*where, *report, Paint::ForStdout()));
  return report->ok() ? kSuccess : kDoesNotHold;
}

}  // namespace farside::tools
