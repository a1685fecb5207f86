// The first line of a region: planned and written when a pool is made, checked whenever one is opened.
//
// Making a pool survives a power cut at any moment:
//
//   1  zero the magic
//   2  zero everything before the chunks
//   3  write the superblock, but for its magic
//   4  write the magic, which is one word
//
// Each step is persisted before the next begins. A power cut during step 1 leaves what was there before, or
// no pool; during 2 and 3 no pool; during 4 no pool, or all of the new one.
//
// INVARIANT superblock/1: where there is a magic in durable memory, everything it vouches for is durable too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "fabric/memory/region.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "pool/region/layout.h"

namespace farside::pool {

using RegionId = std::array<uint64_t, 2>;

inline constexpr uint64_t kMinChunkBytes = kPage;
// A client READs all of the catalog at once, in one body of a frame: 64 MiB.
inline constexpr uint32_t kMaxTableSlots = 131'072;

struct FormatOptions {
  uint32_t client_slots = 64;  // 1 to kMaxClientSlots
  uint32_t table_slots = 64;   // 1 to kMaxTableSlots
  // Of one chunk: a power of two from kMinChunkBytes on. A region in which there would be only a few of them
  // gets smaller ones.
  uint64_t chunk_bytes = uint64_t{1} << 20;
  bool durable = false;  // see Geometry
};

// The shape of a pool in a region of this size, rounded down to whole pages. kInvalidArgument if the
// options make no sense or the region is too small, with the smallest size that works.
Result<Geometry> PlanGeometry(uint64_t region_bytes, const FormatOptions& options);

// Makes bytes of a region durable.
using Persist = std::function<Status(uint64_t offset, uint64_t size)>;

// Makes an empty pool of all bytes of the region, whatever they hold; no client may use them meanwhile.
Status Format(std::span<std::byte> region, const Persist& persist, const Geometry& geometry,
              const RegionId& region_id);
Status Format(const fabric::memory::Region& region, const Geometry& geometry, const RegionId& region_id);
// The same of memory that is gone with the process; planned and made in one go. For the simulator.
Result<Geometry> FormatVolatile(std::span<std::byte> region, const FormatOptions& options,
                                const RegionId& region_id);

// The superblock at the start of `head`, if it is one that this build can work with; `actual_bytes` is the
// size of the region. Changes nothing, and takes any bytes. The message has no subject: put the file or the
// node in front of it.
//   kInvalidArgument  not a pool at all
//   kVersionMismatch  of another layout version, or from a machine of the other byte order
//   kCorrupt          damaged, or cut short
Result<Superblock> CheckSuperblock(std::span<const std::byte> head, uint64_t actual_bytes);

Geometry GeometryOf(const Superblock& superblock);

// The same for clients that have only a fabric. One trip.
Task<Superblock> ReadSuperblock(fabric::Op& op, fabric::NodeId node);
Task<Geometry> ReadGeometry(fabric::Op& op, fabric::NodeId node);

}  // namespace farside::pool
