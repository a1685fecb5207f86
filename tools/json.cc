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

Json FirstViolation(const CheckCommand& command, const check::CampaignReport& report) {
  if (!report.first_violation.has_value()) return nullptr;
  const check::Violation& violation = *report.first_violation;
  return {{"seed", violation.run.seed},
          {"replay", ReplayCommand(command, violation.run)},
          {"run", violation.run.ToString()},
          {"problem", violation.problem}};
}

}  // namespace

std::string ToJson(const CheckCommand& command, const CheckResult& result) {
  const check::CampaignReport& report = result.report;
  Json object = {{"engine", command.engine},        {"seeds", report.seeds},
                 {"histories", report.histories},   {"operations", report.operations},
                 {"verbs", report.verbs},           {"crash_points", report.crash_points},
                 {"violations", report.violations}, {"first_violation", FirstViolation(command, report)}};
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
