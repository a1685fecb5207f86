#include "tools/bench/world.h"

#include <fmt/format.h>

namespace farside::tools {
namespace {

constexpr uint32_t kSpareClientSlots = 8;
constexpr uint32_t kTableSlots = 4;

}  // namespace

pool::FormatOptions FormatFor(const BenchPlan& plan) {
  return {.client_slots = plan.clients + kSpareClientSlots, .table_slots = kTableSlots};
}

Error TableExists(const BenchPlan& plan) {
  return Error(ErrorCode::kAlreadyExists,
               fmt::format("the pool has a table '{}' already; if it is not needed, drop it", plan.table));
}

Result<std::unique_ptr<BenchWorld>> MakeBenchWorld(const BenchPlan& plan) {
  return plan.fabric == BenchFabric::kSim ? MakeSimWorld(plan) : MakeThreadsWorld(plan);
}

}  // namespace farside::tools
