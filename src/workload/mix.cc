#include "workload/mix.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::workload {
namespace {

//                                                            read update insert read-modify-write scan
constexpr std::array kMixes = {
    Mix{.name = "load",
        .percent = {0, 0, 100, 0, 0},
        .distribution = Distribution::kUniform,
        .is_load = true},
    Mix{.name = "a", .percent = {50, 50, 0, 0, 0}},
    Mix{.name = "b", .percent = {95, 5, 0, 0, 0}},
    Mix{.name = "c", .percent = {100, 0, 0, 0, 0}},
    Mix{.name = "d", .percent = {95, 0, 5, 0, 0}, .distribution = Distribution::kLatest},
    Mix{.name = "e", .percent = {0, 0, 5, 0, 95}},
    Mix{.name = "f", .percent = {50, 0, 0, 50, 0}},
};

constexpr std::array kDistributions = {Distribution::kUniform, Distribution::kZipfian, Distribution::kLatest};

}  // namespace

std::string_view Name(Action action) {
  switch (action) {
    case Action::kRead: return "read";
    case Action::kUpdate: return "update";
    case Action::kInsert: return "insert";
    case Action::kReadModifyWrite: return "read-modify-write";
    case Action::kScan: return "scan";
  }
  return "?";
}

std::string_view Name(Distribution distribution) {
  switch (distribution) {
    case Distribution::kUniform: return "uniform";
    case Distribution::kZipfian: return "zipfian";
    case Distribution::kLatest: return "latest";
  }
  return "?";
}

Result<Distribution> ParseDistribution(std::string_view text) {
  for (const Distribution known : kDistributions) {
    if (Name(known) == text) return known;
  }
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("there is no distribution '{}'; there is: uniform, zipfian, latest", Escape(text)));
}

Result<Mix> FindMix(std::string_view name) {
  const auto known =
      std::find_if(kMixes.begin(), kMixes.end(), [name](const Mix& mix) { return mix.name == name; });
  if (known != kMixes.end()) return *known;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("there is no workload '{}'; there is: load, a, b, c, d, e, f", Escape(name)));
}

}  // namespace farside::workload
