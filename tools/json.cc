// The one file that knows the JSON library.
#include "tools/json.h"

#include <nlohmann/json.hpp>

#include "index/tables.h"
#include "tools/fsck_report.h"

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

void AddSize(const std::optional<TableSize>& size, Json& object) {
  object["keys"] = size.has_value() ? Json(size->keys) : Json(nullptr);
  object["bytes"] = size.has_value() ? Json(size->bytes) : Json(nullptr);
}

}  // namespace

std::string ToJson(const CheckCommand& command, const CheckResult& result) {
  const check::CampaignReport& report = result.report;
  Json object = {{"engine", command.engine},
                 {"seeds", report.seeds},
                 {"histories", report.histories},
                 {"operations", report.operations},
                 {"verbs", report.verbs},
                 {"crash_points", report.crash_points},
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
  for (const Finding& finding : report.findings) {
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

std::string ToJson(const TableList& list) {
  Json tables = Json::array();
  for (const pool::TableInfo& table : list.tables) tables.push_back(ToObject(table));
  Json object = {{"tables", std::move(tables)}};
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
