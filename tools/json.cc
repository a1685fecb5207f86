// Knows the JSON library, as record_format.cc does, and no other file.
#include "tools/json.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "index/tables.h"
#include "tools/common/version.h"
#include "tools/fsck/report.h"
#include "workload/mix.h"

namespace farside::tools {
namespace {

using Json = nlohmann::ordered_json;  // fields in the order in which they are documented

// Never throws: bytes that are not UTF-8 are replaced.
std::string Line(const Json& object) {
  return object.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

Json ToObject(const CheckCommand& command, const std::optional<check::FailedRun>& failed) {
  if (!failed.has_value()) return nullptr;
  return {{"seed", failed->run.seed},
          {"replay", ReplayCommand(command, failed->run)},
          {"run", failed->run.ToString()},
          {"problem", failed->problem}};
}

Json ToObject(const pool::FsckBytes& bytes) {
  return {{"reachable", bytes.reachable},
          {"free_chunks", bytes.free_chunks},
          {"free_blocks", bytes.free_blocks},
          {"overhead", bytes.overhead},
          {"metadata", bytes.metadata},
          {"held", bytes.held},
          {"abandoned", bytes.abandoned},
          {"leaked", bytes.leaked},
          {"unknown", bytes.unknown},
          {"damaged", bytes.damaged},
          {"all", bytes.Total()}};
}

Json ToObject(const pool::Finding& finding) {
  return {{"severity", Name(finding.severity)},
          {"node", Index(finding.where.node)},
          {"offset", finding.where.offset},
          {"what", finding.what},
          {"advice", finding.advice}};
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Options as the catalog has them; words that are none are left out.
Json OptionsObject(const std::string& text) {
  Json object = Json::object();
  const Result<index::OptionMap> options = index::ParseOptions(text);
  if (!options.ok()) return object;
  for (const auto& [key, value] : *options) object[key] = value;
  return object;
}

Json ToObject(const pool::TableInfo& table) {
  Json nodes = Json::array();
  Json roots = Json::array();
  for (const fabric::FarAddr& root : table.roots) {
    nodes.push_back(Index(root.node));
    roots.push_back({{"node", Index(root.node)}, {"offset", root.offset}});
  }
  return {{"name", table.name},
          {"engine", table.engine},
          {"options", OptionsObject(table.options)},
          {"layout_version", table.engine_layout_version},
          {"incarnation", table.incarnation},
          {"nodes", std::move(nodes)},
          {"roots", std::move(roots)}};
}

// Under the same names as those that are there.
Json OfMissingNode(Json known) {
  for (auto& [name, value] : known.items()) value = nullptr;
  known["missing"] = true;
  return known;
}

Json ToArray(const std::vector<pool::MissingNode>& missing) {
  Json nodes = Json::array();
  for (const pool::MissingNode& node : missing)
    nodes.push_back({{"node", node.number}, {"name", node.name}, {"why", node.why}});
  return nodes;
}

Json ToObject(const NodeStatus& node) {
  return {{"missing", node.missing},
          {"bytes", node.bytes},
          {"used", node.used()},
          {"free", node.free},
          {"chunk_bytes", node.chunk_bytes},
          {"damaged_chunks", node.damaged_chunks},
          {"client_slots", node.client_slots},
          {"table_slots", node.table_slots},
          {"epoch", node.control.epoch},
          {"catalog_changes", node.control.catalog_changes},
          {"deaths", node.control.deaths}};
}

Json ToObject(const ClientStatus& client) {
  return {{"node", client.node},
          {"slot", client.slot},
          {"state", Name(client.word.state())},
          {"generation", client.word.generation()},
          {"fabric_client", Number(client.word.fabric_client())},
          {"offline", client.pulse.epoch == pool::kOfflineEpoch},
          {"epoch", client.pulse.epoch},
          {"settled", client.pulse.settled},
          {"heartbeat", client.pulse.heartbeat},
          {"beats", client.beats},
          {"silent_seconds", std::chrono::duration<double>(client.silent).count()}};
}

Json ToObject(const TableStatus& table) {
  Json object = ToObject(table.info);
  const bool counted = table.stats.has_value();
  object["records"] = counted ? Json(table.stats->records) : Json(nullptr);
  object["slots"] = counted ? Json(table.stats->slots) : Json(nullptr);
  object["index_bytes"] = counted ? Json(table.stats->index_bytes) : Json(nullptr);
  object["block_bytes"] = counted ? Json(table.stats->block_bytes) : Json(nullptr);
  Json details = Json::object();
  if (counted) {
    for (const auto& [name, value] : table.stats->details) details[name] = value;
  }
  object["details"] = std::move(details);
  object["why"] = TextOrNull(table.why);
  return object;
}

void AddSize(const std::optional<TableSize>& size, Json& object) {
  object["keys"] = size.has_value() ? Json(size->keys) : Json(nullptr);
  object["bytes"] = size.has_value() ? Json(size->bytes) : Json(nullptr);
}

// Times in microseconds.
Json ToObject(const Histogram& latency) {
  const auto micros = [](uint64_t nanos) { return static_cast<double>(nanos) / 1000; };
  return {{"p50", micros(latency.ValueAtQuantile(0.5))},
          {"p99", micros(latency.ValueAtQuantile(0.99))},
          {"p999", micros(latency.ValueAtQuantile(0.999))},
          {"max", micros(latency.Max())}};
}

Json TripsObject(const BenchTally& tally, double KindCost::*trips) {
  Json object = Json::object();
  for (const fabric::OpKind kind : {fabric::OpKind::kSearch, fabric::OpKind::kInsert, fabric::OpKind::kUpdate,
                                    fabric::OpKind::kDelete, fabric::OpKind::kScan}) {
    const std::optional<KindCost> cost = CostOf(tally, kind);
    object[std::string(Name(kind))] = cost.has_value() ? Json((*cost).*trips) : Json(nullptr);
  }
  return object;
}

// What the load, the run and the run of raw have in common.
void AddTally(const BenchTally& tally, Json& object) {
  const OperationCost cost = CostOf(tally);
  object["ops"] = tally.operations;
  object["seconds"] = tally.seconds();
  object["ops_per_second"] = OpsPerSecond(tally);
  object["latency_us"] = ToObject(AllLatencies(tally));
  Json by_action = Json::object();
  for (size_t action = 0; action < workload::kActions; ++action) {
    const Histogram& latency = tally.latency[action];
    if (latency.Count() == 0) continue;
    Json row = ToObject(latency);
    row["count"] = latency.Count();
    by_action[std::string(Name(static_cast<workload::Action>(action)))] = std::move(row);
  }
  object["latency_us_by_action"] = std::move(by_action);
  object["trips_per_op"] = {{"index", TripsObject(tally, &KindCost::index_trips)},
                            {"end_to_end", TripsObject(tally, &KindCost::end_to_end_trips)}};
  const std::optional<double> records = RecordsPerScan(tally);
  object["records_per_scan"] = records.has_value() ? Json(*records) : Json(nullptr);
  object["maintenance_trips_per_op"] = cost.maintenance_trips;
  object["bytes_read_per_op"] = cost.bytes_read;
  object["bytes_written_per_op"] = cost.bytes_written;
  object["maintenance_bytes_per_op"] = cost.maintenance_bytes;
  object["cas_failed_per_op"] = cost.cas_failed;
  object["retries_per_op"] = cost.retries;
}

Json FlushesObject(const BenchRun& run) {
  const std::optional<FlushCost> cost = FlushesOf(run);
  if (!cost.has_value()) return nullptr;
  return {{"lines", cost->lines}, {"drains", cost->drains}};
}

Json UsesObject(const std::vector<BenchUse>& uses) {
  Json object = Json::object();
  for (const BenchUse& use : uses) object[use.name] = use.share;
  return object;
}

Json OptionsObject(const index::OptionMap& options) {
  Json object = Json::object();
  for (const auto& [key, value] : options) object[key] = value;
  return object;
}

double Per(uint64_t amount, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(amount) / static_cast<double>(count);
}

Json RawObject(const BenchResult& result) {
  if (!result.raw.has_value()) return nullptr;
  Json object = {{"options", OptionsObject(result.raw_plan->engine_options)}};
  AddTally(*result.raw->run, object);
  object["utilisation"] = UsesObject(result.raw->uses);
  return object;
}

}  // namespace

std::string ToJson(const BenchPlan& plan, const BenchResult& result) {
  const BenchRun& run = result.run;
  Json object = {{"engine", plan.engine_name},
                 {"fabric", FabricText(plan)},
                 {"workload", plan.mix.name},
                 {"records", plan.records}};
  object["ops"] = run.run->operations;
  object["clients"] = plan.clients;
  object["depth"] = plan.depth;
  AddTally(*run.run, object);
  object["flushes_per_op"] = FlushesObject(run);
  object["errors"] = result.Errors();
  const std::string& problem =
      run.load != nullptr && run.load->errors > 0 ? run.load->first_problem : run.run->first_problem;
  object["first_problem"] = TextOrNull(problem);
  object["commit"] = Commit();
  Json model = Json::object();
  for (const BenchFigure& figure : run.model) model[figure.name] = figure.value;
  object["model"] = std::move(model);
  object["utilisation"] = UsesObject(run.uses);

  object["options"] = OptionsObject(plan.engine_options);
  object["distribution"] = Name(plan.distribution);
  object["seed"] = plan.seed;
  object["nodes"] = plan.nodes;
  object["compute_nodes"] = plan.compute_nodes;
  object["key_size"] = plan.key_size;
  object["value_size"] = plan.value_size;
  object["warmup"] = plan.warmup;
  object["far_bytes_per_record"] = {{"index", Per(run.memory.index_bytes, run.records)},
                                    {"blocks", Per(run.memory.block_bytes, run.records)}};
  object["client_bytes"] = run.stats.client_bytes;
  Json details = Json::object();
  for (const auto& [name, value] : run.stats.details) details[name] = value;
  object["details"] = std::move(details);
  Json load = nullptr;
  if (run.load != nullptr) {
    load = Json::object();
    AddTally(*run.load, load);
  }
  object["load"] = std::move(load);
  object["raw"] = RawObject(result);
  object["of_raw"] = result.raw.has_value() ? Json(*result.OfRaw()) : Json(nullptr);
  return Line(object);
}

std::string ToJson(const CheckCommand& command, const CheckResult& result) {
  const check::CampaignReport& report = result.report;
  Json object = {{"engine", command.engine},
                 {"seeds", report.seeds},
                 {"histories", report.histories},
                 {"operations", report.operations},
                 {"verbs", report.verbs},
                 {"crash_points", report.crash_points},
                 {"power_cuts", report.power_cuts},
                 {"violations", report.violations},
                 {"undecided", report.undecided},
                 {"first_violation", ToObject(command, report.first_violation)},
                 {"first_undecided", ToObject(command, report.first_undecided)}};
  if (result.trace.has_value()) object["trace"] = *result.trace;
  return Line(object);
}

std::string ToJson(const DoctorReport& report) {
  Json backends = Json::array();
  for (const Backend& backend : report.backends) {
    backends.push_back(
        {{"name", backend.name}, {"built", backend.built}, {"usable", backend.usable}, {"why", backend.why}});
  }
  Json findings = Json::array();
  for (const Diagnosis& finding : report.findings) {
    findings.push_back({{"what", finding.what}, {"severity", Name(finding.severity)}, {"fix", finding.fix}});
  }
  return Line({{"backends", std::move(backends)}, {"findings", std::move(findings)}});
}

std::string ToJson(const FsckCommand& command, const PoolReport& report) {
  Json tables = Json::array();
  for (const CheckedTable& table : report.tables) {
    Json object = {{"name", table.name}, {"engine", table.engine}};
    AddSize(table.size, object);
    object["why"] = TextOrNull(table.why);
    tables.push_back(std::move(object));
  }
  Json nodes = Json::array();
  Json findings = Json::array();
  for (const pool::FsckReport& node : report.nodes) {
    nodes.push_back({{"bytes", ToObject(node.bytes)}});
    for (const pool::Finding& finding : node.findings) findings.push_back(ToObject(finding));
  }
  return Line({{"url", command.url},
               {"ok", report.ok()},
               {"complete", report.complete},
               {"damages", report.damages()},
               {"leaks", report.leaks()},
               {"notes", report.notes()},
               {"bytes", ToObject(report.bytes())},
               {"tables", std::move(tables)},
               {"nodes", std::move(nodes)},
               {"findings", std::move(findings)}});
}

std::string ToJson(const PaperCommand& command, const paper::Experiment& experiment,
                   const paper::Report& report) {
  Json rows = Json::array();
  for (const paper::Row& row : report.rows) {
    rows.push_back({{"metric", row.metric},
                    {"paper", row.paper.has_value() ? Json(*row.paper) : Json(nullptr)},
                    {"ours", row.ours},
                    {"rule", row.rule.Text(row.unit)},
                    {"holds", row.holds()},
                    {"unit", Name(row.unit)}});
  }
  Json plots = Json::array();
  for (const paper::Plot& plot : report.plots) {
    plots.push_back({{"title", plot.title}, {"unit", plot.y_unit}, {"columns", plot.columns}});
  }
  return Line({{"name", experiment.name},
               {"title", experiment.title},
               {"rows", std::move(rows)},
               {"holds", paper::AllHold(report.rows)},
               {"set_up", report.set_up},
               {"scale_percent", command.percent},
               {"full", command.full},
               {"plots", std::move(plots)},
               {"note", TextOrNull(report.note)},
               {"commit", Commit()}});
}

std::string PaperNamesJson() {
  Json names = Json::array();
  for (const paper::Experiment& experiment : paper::Experiments()) names.push_back(experiment.name);
  return Line({{"names", std::move(names)}});
}

std::string ToJson(const StatusCommand& command, const PoolStatus& status) {
  Json nodes = Json::array();
  for (const NodeStatus& node : status.nodes)
    nodes.push_back(node.missing ? OfMissingNode(ToObject(node)) : ToObject(node));
  Json clients = Json::array();
  for (const ClientStatus& client : status.clients) clients.push_back(ToObject(client));
  Json tables = Json::array();
  for (const TableStatus& table : status.tables) tables.push_back(ToObject(table));
  return Line({{"url", command.url},
               {"counted", command.records},
               {"damaged", status.damaged()},
               {"catalog_damaged", status.catalog_damaged},
               {"missing", ToArray(status.missing)},
               {"nodes", std::move(nodes)},
               {"clients", std::move(clients)},
               {"tables", std::move(tables)}});
}

std::string ToJson(const TableList& list) {
  Json tables = Json::array();
  for (const pool::TableInfo& table : list.tables) tables.push_back(ToObject(table));
  Json object = {{"tables", std::move(tables)}, {"missing", ToArray(list.missing)}};
  if (list.embedded) object["note"] = kLivesWithItsProcess;
  return Line(object);
}

std::string ToJson(const ShownTable& table) {
  Json object = ToObject(table.info);
  AddSize(table.size, object);
  object["why"] = TextOrNull(table.why);
  return Line(object);
}

std::string ToJson(const MadeTable& table) {
  Json object = ToObject(table.info);
  object["created"] = table.created;
  object["pool_made"] = table.pool_made;
  if (table.embedded) object["note"] = kLivesWithItsProcess;
  return Line(object);
}

std::string ToJson(const DroppedTable& table) {
  return Line({{"name", table.name},
               {"bytes_freed", table.size.has_value() ? Json(table.size->bytes) : Json(nullptr)},
               {"why", TextOrNull(table.why)}});
}

}  // namespace farside::tools
