// Opening a pool by its URL. Regions of this process, and files, are made or mapped, checked, and served by a
// fabric in this process; nodes that others serve are connected to, and asked what they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/service.h"
#include "farside/result.h"
#include "pool/region/layout.h"
#include "pool/region/pool_region.h"

namespace farside::pool {

// A node that could not be reached.
struct MissingNode {
  uint32_t number = 0;
  std::string name;  // as in the URL
  std::string why;
};

struct OpenedPool {
  std::unique_ptr<fabric::Fabric> fabric;
  // The handlers of its nodes, if they are in this process; fill it before the first client connects. Else
  // null.
  fabric::CallTable* calls = nullptr;
  // Of each node, in their order.
  std::vector<Geometry> geometries;
  std::vector<RegionId> region_ids;
  bool made = false;                 // it did not exist before
  bool remote = false;               // others may use it at this moment
  std::vector<MissingNode> missing;  // in their order; they have no geometry and no id

  bool IsMissing(size_t node) const { return geometries[node].region_bytes == 0; }
};

// Opens the pool, and makes it first if it is embedded, or in a file that does not exist and a size is given.
// Errors are one line that names the file or the node.
Result<std::unique_ptr<OpenedPool>> OpenPool(std::string_view url, const OpenOptions& options);

}  // namespace farside::pool
