// The memory of a node that clients in other processes map: a region, and its control memory (layout.h). Made
// by the daemon, before the ServedNode that is built over it.
//
//   auto shared = SharedMemory::Create(std::move(*Region::Shareable(bytes)), NewRegionId());
//   ServedNode node((*shared)->region(), (*shared)->stripes(), (*shared)->region_id());
//   auto server = Server::Start(node, **shared, {.node = "a"});
//
// A process that has mapped it can change every byte of it, also of the control memory: clients trust each
// other and the daemon. The daemon trusts no client: it takes nothing from the slots that could lead it
// outside of its memory.
//
// If the region is a file, its lock goes with it to the clients (Region::descriptor): while a client of a
// daemon that has ended still maps the file, no other daemon can serve it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/shm/layout.h"
#include "farside/result.h"

namespace farside::fabric::shm {

// Drawn by the kernel.
memory::RegionId NewRegionId();

class SharedMemory {
 public:
  // The region must be shareable, or a file that was opened with Access::kShared; whole lines.
  static Result<std::unique_ptr<SharedMemory>> Create(memory::Region region, memory::RegionId id);

  std::span<std::byte> region() const { return region_.bytes(); }
  // Makes all of the region durable, if it is a file.
  Status Persist() const { return region_.Persist(0, region_.bytes().size()); }
  int region_descriptor() const { return region_.descriptor(); }
  memory::RegionId region_id() const { return control().header.region_id; }
  memory::StripeTable& stripes() const { return control().stripes; }

  Control& control() const { return *reinterpret_cast<Control*>(control_.bytes().data()); }
  int control_descriptor() const { return control_.descriptor(); }

  // Puts the whole region into huge pages, which spare most of the misses of the TLB, also in the clients
  // that map it later. Takes all of its memory now, and some time for it. False if the kernel cannot, or not
  // for all of it. (Most systems give no huge pages to shared memory unless it is asked for them like this.)
  // `go_on` is asked before each of many pieces, and told how many bytes are done; if it returns false, so
  // does this.
  bool UseHugePages(const std::function<bool(uint64_t done)>& go_on = [](uint64_t) { return true; }) const;

  // To serve the region anew. Nothing that was built over this may be left.
  memory::Region TakeRegion() && { return std::move(region_); }

 private:
  SharedMemory(memory::Region region, memory::Region control)
      : region_(std::move(region)), control_(std::move(control)) {}

  memory::Region region_;
  memory::Region control_;
};

}  // namespace farside::fabric::shm
