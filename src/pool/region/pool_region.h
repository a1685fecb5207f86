// The region of one node, as a pool: made anew, or opened from a file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/region.h"
#include "farside/result.h"
#include "pool/region/layout.h"
#include "pool/region/superblock.h"
#include "pool/region/url.h"

namespace farside::pool {

struct OpenOptions {
  FormatOptions format;  // of pools that are made
  // For looking at a pool that exists. It can be used like any other, but nothing reaches its file.
  bool read_only = false;
  // Whether this process serves the region to other processes, which say which nodes make the pool. A part of
  // a pool cannot be used otherwise.
  bool served = false;
  // The lease of the pool's clients: how long a served node may be silent before it counts as out of reach
  // depends on it.
  Nanos lease = std::chrono::seconds(10);
  const Clock* clock = nullptr;  // must outlive the pool; null: the machine's
  Random* random = nullptr;      // for the ids of regions that are made; null: the kernel's randomness
};

struct PoolRegion {
  fabric::memory::Region region;
  Geometry geometry;
  RegionId id;
  bool made;  // it did not exist before

  // By which handlers at its node make lines survive a power cut. Null if the pool is not durable, or this is
  // a copy that ends with the process. The region must outlive it, but may be moved.
  std::unique_ptr<fabric::memory::Medium> NewMedium() const;
};

// Gives memory of this size, zeroed.
using MakeRegion = std::function<Result<fabric::memory::Region>(uint64_t bytes)>;

// An empty pool in memory that is gone with the last process that shares it.
Result<PoolRegion> MakeVolatile(uint64_t bytes, const OpenOptions& options,
                                const MakeRegion& make = fabric::memory::Region::Anonymous);
// The pool in a file; made if there is no such file and the URL has a size. Clients that were registered in
// it are gone, and are marked so. A file that cannot be opened as a pool is left as it is. Errors are one
// line that names the file.
Result<PoolRegion> OpenOrMakeFile(const PoolUrl& url, const OpenOptions& options);

}  // namespace farside::pool
