#include "tools/serve/served_memory.h"

#include <string>
#include <utility>

#include "base/bytes.h"
#include "fabric/memory/fixed_size.h"
#include "tools/serve/bus_error.h"
#include "tools/serve/huge_pages.h"

namespace farside::tools {
namespace {

using fabric::memory::HugePages;
using fabric::memory::PageGatherer;
using fabric::memory::PageGathererThread;
using fabric::memory::Region;
using fabric::memory::StripeTable;
using fabric::shm::SharedMemory;

// Memory that is gone with the node. `note` says why there are no reserved huge pages, if some were asked
// for.
Result<pool::PoolRegion> MakeMemory(const MemoryPlan& plan, std::string& note) {
  // Where none are reserved, `on` gets others from SharedMemory.
  const HugePages wanted = plan.huge_pages == HugePages::kOff ? HugePages::kOff : HugePages::kAuto;
  return pool::MakeVolatile(*plan.home.size, plan.open, [&](uint64_t bytes) {
    Result<Region> made = Region::Shareable(bytes, wanted, &note);
    const bool own = !plan.shared && plan.huge_pages == HugePages::kAuto && !note.empty();
    return own ? Region::Anonymous(bytes) : std::move(made);
  });
}

}  // namespace

Result<std::unique_ptr<ServedMemory>> ServedMemory::Open(const MemoryPlan& plan, Logger& log) {
  std::string note;
  const bool in_file = plan.home.in_file();
  if (!in_file && plan.huge_pages == HugePages::kOn) {
    if (Status room = CheckHugePages(*plan.home.size, ReadMachine()); !room.ok()) return room.error();
  }
  Result<pool::PoolRegion> home =
      in_file ? pool::OpenOrMakeFile(plan.home, plan.open) : MakeMemory(plan, note);
  if (!home.ok()) return home.error();
  std::unique_ptr<ServedMemory> memory(new ServedMemory(*home));
  if (home->region.descriptor() < 0) {
    if (home->region.bytes().size() >= 2 * fabric::memory::kHugePageBytes)
      log.Info("asks for transparent huge pages, since {}", note);
    memory->own_.emplace(std::move(home->region));
    memory->stripes_ = std::make_unique<StripeTable>();
    return memory;
  }
  Result<std::unique_ptr<SharedMemory>> shared = SharedMemory::Create(std::move(home->region), home->id);
  if (!shared.ok()) return shared.error();
  memory->shared_ = std::move(*shared);
  if (in_file) ExplainBusErrors(memory->region(), memory->shared_->region_descriptor(), plan.home.path);
  if (in_file && plan.shared && !fabric::memory::HasFixedSize(memory->shared_->region_descriptor())) {
    log.Warn(
        "this kernel cannot keep clients of shared memory from cutting {} short (Linux 6.2 with Landlock "
        "can); let in only those you trust with that",
        Escape(plan.home.path));
  }
  if (note.empty()) return memory;

  if (plan.huge_pages == HugePages::kOn) {
    const Status made = MakeHugePages(*memory->shared_, log, plan.stop_requested);
    if (!made.ok()) return made.error();
    return memory;
  }
  if (memory->region().size() < 2 * fabric::memory::kHugePageBytes) {
    log.Info("goes without huge pages, which so little memory does not need");
    return memory;
  }
  if (!PageGatherer::KernelCan()) {
    log.Info("goes without huge pages: {}; and this kernel does not gather them (Linux 6.1 does)", note);
    return memory;
  }
  log.Info("gathers huge pages while the memory fills, since {}", note);
  memory->gatherer_ =
      std::make_unique<PageGathererThread>(memory->region(), memory->shared_->region_descriptor(), log);
  return memory;
}

}  // namespace farside::tools
