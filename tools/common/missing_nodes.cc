#include "tools/common/missing_nodes.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "tools/common/output.h"

namespace farside::tools {
namespace {

std::string AllOfThem(std::span<const pool::MissingNode> missing) {
  std::string text = MissingText(missing[0]);
  if (missing.size() > 1) {
    text += fmt::format(" (and {} more, the next is node {}, {})", missing.size() - 1, missing[1].number,
                        Escape(missing[1].name));
  }
  return text;
}

}  // namespace

std::string MissingText(const pool::MissingNode& node) {
  return fmt::format("node {} ({}) is missing: {}", node.number, Escape(node.name), node.why);
}

ExitCode ReportMissing(std::string_view command, std::span<const pool::MissingNode> missing) {
  if (missing.empty()) return kSuccess;
  return CouldNotRun(command, "this is not all: " + AllOfThem(missing));
}

Status NeedAllNodes(std::span<const pool::MissingNode> missing) {
  if (missing.empty()) return OkStatus();
  return Error(ErrorCode::kUnavailable, "all nodes are needed: " + AllOfThem(missing));
}

}  // namespace farside::tools
