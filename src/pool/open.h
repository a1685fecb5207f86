// Opening a pool by its URL: regions are made or mapped, checked, and served by a fabric in this process.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/service.h"
#include "farside/result.h"
#include "pool/layout.h"
#include "pool/superblock.h"

namespace farside::pool {

struct OpenOptions {
  FormatOptions format;  // of pools that are made
  // For looking at a pool that exists. It can be used like any other, but nothing reaches its file.
  bool read_only = false;
  const Clock* clock = nullptr;  // must outlive the pool; null: the machine's
  Random* random = nullptr;      // for the ids of regions that are made; null: the kernel's randomness
};

struct OpenedPool {
  std::unique_ptr<fabric::Fabric> fabric;
  fabric::CallTable* calls = nullptr;  // the handlers of its nodes; fill it before the first client connects
  // Of each node, in their order.
  std::vector<Geometry> geometries;
  std::vector<RegionId> region_ids;
  bool made = false;  // it did not exist before
};

// Opens the pool, and makes it first if it is embedded, or in a file that does not exist and a size is given.
// A file that cannot be opened as a pool is left as it is. Errors are one line that names the file.
Result<std::unique_ptr<OpenedPool>> OpenPool(std::string_view url, const OpenOptions& options);

}  // namespace farside::pool
