#include "tools/paper/row.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/common/output.h"

namespace farside::tools::paper {

std::string_view Name(Unit unit) {
  switch (unit) {
    case Unit::kTrips: return "trips";
    case Unit::kShare: return "share";
    case Unit::kBytes: return "bytes";
    case Unit::kOpsPerSecond: return "ops/s";
    case Unit::kTimes: return "times";
    case Unit::kMicros: return "us";
    case Unit::kNumber: break;
  }
  return "";
}

std::string Format(Unit unit, double figure) {
  if (!std::isfinite(figure)) return "unknown";
  switch (unit) {
    case Unit::kTrips: return fmt::format("{:.3f}", figure);
    case Unit::kShare: return fmt::format("{:.1f} %", 100 * figure);
    case Unit::kBytes:
      if (figure >= 1e6) return fmt::format("{:.2f} MB", figure / 1e6);
      return figure < 1000 && figure != std::floor(figure) ? fmt::format("{:.1f} B", figure)
                                                           : fmt::format("{:.0f} B", figure);
    case Unit::kOpsPerSecond:
      return fmt::format("{}/s", Grouped(static_cast<uint64_t>(std::llround(std::max(figure, 0.0)))));
    case Unit::kTimes: return fmt::format("{:.2f} x", figure);
    case Unit::kMicros: return fmt::format("{:.2f} us", figure);
    case Unit::kNumber: break;
  }
  return fmt::format("{:g}", figure);
}

bool Rule::Holds(double figure) const {
  switch (kind_) {
    case Kind::kAtMost: return figure <= limit_;
    case Kind::kAtLeast: return figure >= limit_;
    case Kind::kAbove: return figure > limit_;
    case Kind::kBelow: return figure < limit_;
    case Kind::kReported: break;
  }
  return std::isfinite(figure);
}

std::string Rule::Text(Unit unit) const {
  const std::string limit = unit == Unit::kTrips   ? fmt::format("{:.2f}", limit_)
                            : unit == Unit::kShare ? fmt::format("{:g} %", 100 * limit_)
                                                   : Format(unit, limit_);
  switch (kind_) {
    case Kind::kAtMost: return "<= " + limit;
    case Kind::kAtLeast: return ">= " + limit;
    case Kind::kAbove: return "> " + limit;
    case Kind::kBelow: return "< " + limit;
    case Kind::kReported: break;
  }
  return "reported";
}

bool AllHold(std::span<const Row> rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.holds(); });
}

}  // namespace farside::tools::paper
