#include "tests/ledger/figures.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "fabric/verb.h"
#include "tools/bench/report.h"

namespace farside::ledger {
namespace {

using fabric::OpKind;
using fabric::OpTally;
using fabric::Purpose;
using fabric::VerbKind;
using fabric::VerbTally;

constexpr std::array kKinds = {OpKind::kSearch, OpKind::kInsert, OpKind::kUpdate, OpKind::kDelete,
                               OpKind::kScan};
constexpr int kCountDecimals = 3;
constexpr int kBytesDecimals = 1;

OpTally AllOutcomes(const fabric::Counters& counters, OpKind kind) {
  OpTally sum;
  for (size_t outcome = 0; outcome < fabric::kOpOutcomes; ++outcome)
    sum.Add(counters.at(kind, static_cast<fabric::OpOutcome>(outcome)));
  return sum;
}

double Per(uint64_t amount, const OpTally& tally) {
  return static_cast<double>(amount) / static_cast<double>(tally.operations);
}

}  // namespace

void Figures::AddKind(std::string_view run, std::string_view kind, const OpTally& tally) {
  if (tally.operations == 0) return;
  const std::string prefix = fmt::format("{} | {}", run, kind);
  AddTrips(prefix, tally);
  AddVerbs(prefix, tally);
}

void Figures::AddRun(std::string_view run, const tools::BenchTally& tally) {
  OpTally all;
  for (const OpKind kind : kKinds) {
    const OpTally of_kind = AllOutcomes(tally.counters, kind);
    if (of_kind.operations > 0) AddTrips(fmt::format("{} | {}", run, Name(kind)), of_kind);
    all.Add(of_kind);
  }
  AddRate(run, tools::OpsPerSecond(tally));
  if (all.operations > 0) AddVerbs(fmt::format("{} | operation", run), all);
}

void Figures::AddRate(std::string_view run, double per_second) {
  Add(fmt::format("{} | operation | operations/s", run), per_second, 0);
}

void Figures::AddShareOfRaw(std::string_view run, double share) {
  Add(fmt::format("{} | operation | of raw", run), share, kCountDecimals);
}

std::string Figures::ToJson() const {
  std::string text;
  for (const auto& [name, value] : figures_)
    text += fmt::format("{} \"{}\": {}", text.empty() ? "{\n" : ",\n", name, value);
  return text.empty() ? "{}\n" : text + "\n}\n";
}

void Figures::AddTrips(const std::string& prefix, const OpTally& tally) {
  Add(prefix + " | index trips", Per(tally.index_trips, tally), kCountDecimals);
  Add(prefix + " | trips", Per(tally.end_to_end_trips, tally), kCountDecimals);
}

void Figures::AddVerbs(const std::string& prefix, const OpTally& tally) {
  VerbTally sum;
  for (const Purpose purpose : {Purpose::kIndex, Purpose::kBlock}) {
    const VerbTally& part = tally.by_purpose[static_cast<size_t>(purpose)];
    for (size_t kind = 0; kind < fabric::kVerbKinds; ++kind) sum.verbs[kind] += part.verbs[kind];
    sum.bytes_read += part.bytes_read;
    sum.bytes_written += part.bytes_written;
  }
  for (size_t kind = 0; kind < fabric::kVerbKinds; ++kind) {
    Add(fmt::format("{} | {}", prefix, Name(static_cast<VerbKind>(kind))), Per(sum.verbs[kind], tally),
        kCountDecimals);
  }
  Add(prefix + " | bytes read", Per(sum.bytes_read, tally), kBytesDecimals);
  Add(prefix + " | bytes written", Per(sum.bytes_written, tally), kBytesDecimals);
}

void Figures::Add(const std::string& name, double amount, int decimals) {
  std::string text = fmt::format("{:.{}f}", amount, decimals);
  if (text.find_first_not_of("0.") != std::string::npos) figures_[name] = std::move(text);
}

}  // namespace farside::ledger
