#include "tools/serve/served_memory.h"

#include <string>
#include <utility>

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
  Result<pool::PoolRegion> home = plan.home.kind == pool::PoolUrl::Kind::kFile
                                      ? pool::OpenOrMakeFile(plan.home, plan.open)
                                      : MakeMemory(plan, note);
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
  if (note.empty()) return memory;

  if (plan.huge_pages == HugePages::kOn) {
    if (memory->shared_->UseHugePages()) return memory;
    return Error(
        ErrorCode::kOutOfMemory,
        "--hugepages on: neither are there enough that are reserved (sysctl vm.nr_hugepages), nor can the "
        "kernel make them; use auto");
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
