#include "check/workload.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"

namespace farside::check {
namespace {

constexpr size_t kLongValue = 60;

Kind SomeKind(Random& random) {
  constexpr Kind kMix[] = {Kind::kGet,    Kind::kGet,    Kind::kGet,    Kind::kGet,
                           Kind::kPut,    Kind::kPut,    Kind::kPut,    Kind::kInsert,
                           Kind::kUpdate, Kind::kDelete, Kind::kDelete, Kind::kCompareAndSet};
  return kMix[random.Below(std::size(kMix))];
}

// Forward with a limit, or the last one: of everything, or of a range that begins or ends at a key or just
// behind one.
ScriptedCall SomeScan(Random& random, const std::vector<std::string>& keys) {
  const auto some_bound = [&] {
    std::string bound = keys[random.Below(keys.size())];
    if (random.Chance(1, 3)) bound.push_back('\0');
    return bound;
  };
  ScriptedCall call;
  call.kind = random.Chance(1, 4) ? Kind::kLast : Kind::kScan;
  if (random.Chance(1, 2)) call.key = some_bound();
  if (random.Chance(1, 3)) call.to = some_bound();
  if (call.kind == Kind::kScan) call.limit = 1 + random.Below(keys.size() + 1);
  return call;
}

}  // namespace

std::string Fitted(std::string text, std::optional<size_t> size) {
  if (size.has_value()) text.resize(*size, '.');
  return text;
}

Workload MakeWorkload(uint64_t seed, const WorkloadShape& shape, const WorkloadFor& table) {
  Random random(seed ^ 0x3014);
  Random scans(seed ^ 0x5ca7);
  Random sizes(seed ^ 0x512e);
  Workload workload;
  for (int k = 0; k < shape.keys; ++k)
    workload.keys.push_back(Fitted(fmt::format("k{}", k), table.fixed_size));
  // The last of several keys is a counter: only incremented, read and deleted.
  const bool counter = shape.keys > 1 && random.Chance(1, 2);
  std::vector<std::string> written = {Fitted("never", table.fixed_size)};
  for (int client = 0; client < shape.clients; ++client) {
    Script script;
    for (int i = 0; i < shape.operations; ++i) {
      ScriptedCall call;
      const size_t key = random.Below(workload.keys.size());
      call.key = workload.keys[key];
      call.kind = SomeKind(random);
      if (counter && key + 1 == workload.keys.size()) {
        if (call.kind != Kind::kGet && call.kind != Kind::kDelete) call.kind = Kind::kIncrement;
        call.delta = 1 + random.Below(3);
      } else {
        call.value = fmt::format("v{}.{}", client, i);
        // Some values are short, some fill what an engine may keep inline, and some are longer than that.
        if (random.Chance(1, 3)) call.value.resize(20, '.');
        if (sizes.Chance(1, 4)) call.value.resize(kLongValue, '.');
        call.value = Fitted(std::move(call.value), table.fixed_size);
        call.expected = written[random.Below(written.size())];
        written.push_back(call.value);
      }
      if (table.scans && call.kind == Kind::kGet && scans.Chance(1, 2)) call = SomeScan(scans, workload.keys);
      script.push_back(std::move(call));
    }
    workload.scripts.push_back(std::move(script));
  }
  workload.drops_a_table = random.Chance(1, 4);
  workload.nodes = random.Chance(1, 4) ? 2 : 1;
  workload.operations_until_idle = shape.operations_until_idle;
  workload.lanes = random.Chance(1, 4) ? 3 : 1;
  workload.evacuates = random.Chance(1, 3) || shape.evacuates;
  return workload;
}

}  // namespace farside::check
