#include "check/workload.h"

#include <fmt/format.h>

#include "base/random.h"

namespace farside::check {
namespace {

Kind SomeKind(Random& random) {
  constexpr Kind kMix[] = {Kind::kGet,    Kind::kGet,    Kind::kGet,    Kind::kGet,
                           Kind::kPut,    Kind::kPut,    Kind::kPut,    Kind::kInsert,
                           Kind::kUpdate, Kind::kDelete, Kind::kDelete, Kind::kCompareAndSet};
  return kMix[random.Below(std::size(kMix))];
}

}  // namespace

Workload MakeWorkload(uint64_t seed, const WorkloadShape& shape) {
  Random random(seed ^ 0x3014);
  Workload workload;
  for (int k = 0; k < shape.keys; ++k) workload.keys.push_back(fmt::format("k{}", k));
  // The last of several keys is a counter: only incremented, read and deleted.
  const bool counter = shape.keys > 1 && random.Chance(1, 2);
  std::vector<std::string> written = {"never"};
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
        // Some values are short and some fill what an engine may keep inline.
        if (random.Chance(1, 3)) call.value.resize(20, '.');
        call.expected = written[random.Below(written.size())];
        written.push_back(call.value);
      }
      script.push_back(std::move(call));
    }
    workload.scripts.push_back(std::move(script));
  }
  workload.drops_a_table = random.Chance(1, 4);
  workload.nodes = random.Chance(1, 4) ? 2 : 1;
  workload.lanes = random.Chance(1, 4) ? 3 : 1;
  return workload;
}

}  // namespace farside::check
