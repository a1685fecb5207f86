// The memory that `farside serve` lends out, and its pages.
//
//                      --hugepages auto              on                            off
//   reserved ones      are taken, if there are       are taken, if there are       are not
//                      enough; or else               enough; or else
//   with --shm         gathered while it fills       all are made at the start     small pages
//   TCP alone          transparent ones              the same                      small pages
//   --file, --pmem     those of the file             is refused                    those of the file
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/log.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/page_gatherer.h"
#include "fabric/memory/region.h"
#include "fabric/shm/shared_memory.h"
#include "farside/result.h"
#include "pool/region/pool_region.h"
#include "pool/region/superblock.h"
#include "pool/region/url.h"

namespace farside::tools {

struct MemoryPlan {
  pool::PoolUrl home;  // a file, or embedded
  fabric::memory::HugePages huge_pages = fabric::memory::HugePages::kAuto;
  pool::OpenOptions open;
  bool shared = false;  // with other processes
  // Asked now and then by what takes long.
  std::function<bool()> stop_requested = [] { return false; };
};

class ServedMemory {
 public:
  // Says in the log what its pages are, if they are not those that were asked for. The logger must outlive
  // it.
  static Result<std::unique_ptr<ServedMemory>> Open(const MemoryPlan& plan, Logger& log);

  std::span<std::byte> region() const { return own_.has_value() ? own_->bytes() : shared_->region(); }
  fabric::memory::StripeTable& stripes() const { return own_.has_value() ? *stripes_ : shared_->stripes(); }
  pool::RegionId id() const { return id_; }
  const pool::Geometry& geometry() const { return geometry_; }
  // It did not exist before.
  bool made() const { return made_; }
  // For the node that serves it; null if the pool is not durable. This must outlive it.
  std::unique_ptr<fabric::memory::Medium> TakeMedium() { return std::move(medium_); }
  // Of a plan that says so.
  fabric::shm::SharedMemory& shared() const { return *shared_; }

  // Makes all of it durable, if it is a file.
  Status Persist() const { return shared_ == nullptr ? OkStatus() : shared_->Persist(); }

 private:
  explicit ServedMemory(const pool::PoolRegion& home)
      : geometry_(home.geometry), id_(home.id), made_(home.made), medium_(home.NewMedium()) {}

  const pool::Geometry geometry_;
  const pool::RegionId id_;
  const bool made_;
  std::unique_ptr<fabric::memory::Medium> medium_;
  // Either memory that can be shared, or that of this process alone.
  std::unique_ptr<fabric::shm::SharedMemory> shared_;
  std::optional<fabric::memory::Region> own_;
  std::unique_ptr<fabric::memory::StripeTable> stripes_;          // of own_
  std::unique_ptr<fabric::memory::PageGathererThread> gatherer_;  // of shared_; ends before it
};

}  // namespace farside::tools
