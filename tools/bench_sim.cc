#include "tools/bench_world.h"

namespace farside::tools {

Result<std::unique_ptr<BenchWorld>> MakeSimWorld(const BenchPlan&) {
  return Error(ErrorCode::kUnsupported, "the simulated cluster measures nothing yet; use --fabric embedded");
}

}  // namespace farside::tools
