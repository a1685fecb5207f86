#include "pool/region/superblock.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/size.h"
#include "pool/mutants.h"

namespace farside::pool {
namespace {

// With fewer chunks than this, a few clients that hold one for each of several sizes would hold them all.
constexpr uint64_t kFewChunks = 256;

// Bytes are written in the machine's order. On a machine of the other order every check of kEndianMark fails.
constexpr uint64_t kMagicOfOtherOrder = __builtin_bswap64(kMagic);
constexpr uint32_t kEndianMarkOfOtherOrder = __builtin_bswap32(kEndianMark);

uint64_t ChecksumOf(Superblock superblock) {
  superblock.magic = kMagic;
  const auto bytes = std::as_bytes(std::span(&superblock, 1));
  return Hash64(bytes.first(offsetof(Superblock, checksum)));
}

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Error Damaged(std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the superblock is damaged: {}; restore the pool from an export", what));
}

Status CheckOptions(const FormatOptions& options) {
  if (options.client_slots == 0 || options.client_slots > kMaxClientSlots) {
    return Refuse(
        fmt::format("a pool has 1 to {} client slots, not {}", kMaxClientSlots, options.client_slots));
  }
  if (options.durable && options.client_slots < kFewestDurableSlots) {
    return Refuse(
        fmt::format("a durable pool has at least {} client slots: after a power cut, one of them "
                    "stands for what clients had in use",
                    kFewestDurableSlots));
  }
  if (options.table_slots == 0 || options.table_slots > kMaxTableSlots) {
    return Refuse(fmt::format("a pool has 1 to {} table slots, not {}", kMaxTableSlots, options.table_slots));
  }
  if (!std::has_single_bit(options.chunk_bytes) || options.chunk_bytes < kMinChunkBytes) {
    return Refuse(fmt::format("the size of a chunk is a power of two from {} on, not {}",
                              FormatSize(kMinChunkBytes), FormatSize(options.chunk_bytes)));
  }
  return OkStatus();
}

// What Plan and Format never make, though the checksum may be right.
Status CheckGeometry(const Geometry& geometry) {
  if (geometry.region_bytes % kPage != 0) {
    return Damaged(fmt::format("{} bytes are not a whole number of pages", geometry.region_bytes));
  }
  if (geometry.client_slots == 0 || geometry.client_slots > kMaxClientSlots) {
    return Damaged(fmt::format("it speaks of {} client slots", geometry.client_slots));
  }
  if (geometry.table_slots == 0 || geometry.table_slots > kMaxTableSlots) {
    return Damaged(fmt::format("it speaks of {} table slots", geometry.table_slots));
  }
  if (!std::has_single_bit(geometry.chunk_bytes) || geometry.chunk_bytes < kMinChunkBytes) {
    return Damaged(fmt::format("it speaks of chunks of {} bytes", geometry.chunk_bytes));
  }
  if (geometry.chunks() == 0) {
    return Damaged(fmt::format("no chunk fits into its {} bytes", geometry.region_bytes));
  }
  return OkStatus();
}

}  // namespace

Result<Geometry> PlanGeometry(uint64_t region_bytes, const FormatOptions& options) {
  if (Status good = CheckOptions(options); !good.ok()) return good.error();
  Geometry geometry{.region_bytes = region_bytes / kPage * kPage,
                    .client_slots = options.client_slots,
                    .table_slots = options.table_slots,
                    .chunk_bytes = options.chunk_bytes,
                    .durable = options.durable};
  while (geometry.chunks() < kFewChunks && geometry.chunk_bytes > kMinChunkBytes) {
    geometry.chunk_bytes /= 2;
  }
  if (geometry.chunks() == 0) {
    const uint64_t smallest = geometry.chunk_table() + kPage + kMinChunkBytes;
    return Refuse(fmt::format(
        "{} is too small for a pool of {} client slots and {} table slots; it takes at least {}",
        FormatSize(region_bytes), options.client_slots, options.table_slots, FormatSize(smallest)));
  }
  return geometry;
}

Status Format(std::span<std::byte> region, const Persist& persist, const Geometry& geometry,
              const RegionId& region_id) {
  assert(region.size() == geometry.region_bytes && geometry.chunks() > 0);
  assert(reinterpret_cast<uintptr_t>(region.data()) % kLine == 0);
  Superblock superblock{.magic = Mutant(kMagicNotLast) ? kMagic : 0,
                        .layout_version = kLayoutVersion,
                        .endian_mark = kEndianMark,
                        .region_bytes = geometry.region_bytes,
                        .region_id = region_id,
                        .client_slots = static_cast<uint16_t>(geometry.client_slots),
                        .flags = geometry.durable ? kDurablePool : uint16_t{0},
                        .table_slots = geometry.table_slots,
                        .chunk_bytes = geometry.chunk_bytes,
                        .checksum = 0};
  superblock.checksum = ChecksumOf(superblock);
  // One store of an aligned word, which neither a crash nor the compiler takes apart.
  const std::atomic_ref<uint64_t> magic(*reinterpret_cast<uint64_t*>(region.data()));

  if (!Mutant(kMagicKept)) magic.store(0);
  if (Status done = persist(0, sizeof kMagic); !done.ok()) return done;

  std::ranges::fill(region.first(geometry.first_chunk()), std::byte{0});
  const uint64_t zeroed = Mutant(kZerosNotDurable) ? sizeof kMagic : geometry.first_chunk();
  if (Status done = persist(0, zeroed); !done.ok()) return done;

  std::memcpy(region.data(), &superblock, sizeof superblock);
  const size_t written = Mutant(kSuperblockNotDurable) ? sizeof kMagic : sizeof superblock;
  if (Status done = persist(0, written); !done.ok()) return done;

  magic.store(kMagic);  // INVARIANT superblock/1: last
  return persist(0, sizeof kMagic);
}

Status Format(const fabric::memory::Region& region, const Geometry& geometry, const RegionId& region_id) {
  const auto persist = [&region](uint64_t offset, uint64_t size) { return region.Persist(offset, size); };
  return Format(region.bytes(), persist, geometry, region_id);
}

Result<Geometry> FormatVolatile(std::span<std::byte> region, const FormatOptions& options,
                                const RegionId& region_id) {
  const Result<Geometry> geometry = PlanGeometry(region.size(), options);
  if (!geometry.ok()) return geometry;
  const Status formatted = Format(
      region, [](uint64_t, uint64_t) { return OkStatus(); }, *geometry, region_id);
  if (!formatted.ok()) return formatted.error();
  return geometry;
}

// In the order in which a field can be trusted: the magic and the byte order say that there is a version, the
// version that the checksum is where we look for it, the checksum that the rest is what was written.
Result<Superblock> CheckSuperblock(std::span<const std::byte> head, uint64_t actual_bytes) {
  Superblock superblock{};
  if (head.size() < sizeof superblock) return Refuse("not a Farside pool");
  std::memcpy(&superblock, head.data(), sizeof superblock);

  if (superblock.magic == kMagicOfOtherOrder ||
      (superblock.magic == kMagic && superblock.endian_mark == kEndianMarkOfOtherOrder)) {
    return Error(
        ErrorCode::kVersionMismatch,
        "the pool was made on a machine of the other byte order; export it there and import it here");
  }
  if (superblock.magic != kMagic) return Refuse("not a Farside pool");
  if (superblock.layout_version != kLayoutVersion) {
    return Error(
        ErrorCode::kVersionMismatch,
        fmt::format("the pool has layout version {}, this build reads version {}; export it with a build of "
                    "its version and import it with this one",
                    superblock.layout_version, kLayoutVersion));
  }
  if (superblock.checksum != ChecksumOf(superblock)) return Damaged("its checksum is wrong");
  if (superblock.endian_mark != kEndianMark) return Damaged("its byte order is unknown");
  if ((superblock.flags & ~kDurablePool) != 0) return Damaged("it has flags that this build does not know");

  if (superblock.region_bytes > actual_bytes) {
    return Error(ErrorCode::kCorrupt, fmt::format("truncated: the superblock says {} bytes, but there are {}",
                                                  superblock.region_bytes, actual_bytes));
  }
  if (Status good = CheckGeometry(GeometryOf(superblock)); !good.ok()) return good.error();
  return superblock;
}

Geometry GeometryOf(const Superblock& superblock) {
  return Geometry{.region_bytes = superblock.region_bytes,
                  .client_slots = superblock.client_slots,
                  .table_slots = superblock.table_slots,
                  .chunk_bytes = superblock.chunk_bytes,
                  .durable = (superblock.flags & kDurablePool) != 0};
}

Task<Superblock> ReadSuperblock(fabric::Op& op, fabric::NodeId node) {
  using Line = std::array<std::byte, sizeof(Superblock)>;
  const Line line = co_await op.InOrder(fabric::ForMaintenance(fabric::Read<Line>(fabric::FarAddr(node, 0))));
  // The node is there, or the READ would have failed.
  Result<Superblock> superblock = CheckSuperblock(line, *fabric::ForNode(op.client().region_bytes(), node));
  if (!superblock.ok()) {
    co_return Error(superblock.error().code(),
                    fmt::format("node {}: {}", Index(node), superblock.error().message()));
  }
  co_return *superblock;
}

Task<Geometry> ReadGeometry(fabric::Op& op, fabric::NodeId node) {
  const Superblock superblock = co_await ReadSuperblock(op, node);
  co_return GeometryOf(superblock);
}

}  // namespace farside::pool
