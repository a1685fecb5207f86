// The one file that knows the JSON library.
#include "tools/json.h"

#include <nlohmann/json.hpp>

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

}  // namespace farside::tools
