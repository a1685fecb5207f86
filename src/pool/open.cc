#include "pool/open.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "fabric/embedded/embedded.h"
#include "fabric/memory/region.h"
#include "pool/url.h"

namespace farside::pool {
namespace {

using fabric::memory::Region;

// What a region shall hold, or holds.
struct Shape {
  Geometry geometry;
  RegionId id;
};

// A region that holds a pool.
struct Opened {
  Region region;
  Shape shape;
  bool made;
};

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Result<RegionId> NewRegionId(Random* random) {
  if (random != nullptr) {
    const uint64_t first = random->Next();
    return RegionId{first, random->Next()};
  }
  RegionId id{};
  const ssize_t got = ::getrandom(id.data(), sizeof id, 0);
  if (got == static_cast<ssize_t>(sizeof id)) return id;
  return Error(ErrorCode::kUnavailable,
               fmt::format("the kernel gives no random numbers: {}", std::generic_category().message(errno)));
}

Result<Shape> PlanPool(uint64_t bytes, const OpenOptions& options) {
  const Result<Geometry> geometry = PlanGeometry(bytes, options.format);
  if (!geometry.ok()) return geometry.error();
  const Result<RegionId> id = NewRegionId(options.random);
  if (!id.ok()) return id.error();
  return Shape{*geometry, *id};
}

Result<Opened> MakeEmbedded(uint64_t bytes, const OpenOptions& options) {
  const Result<Shape> shape = PlanPool(bytes, options);
  if (!shape.ok()) return shape.error();
  Result<Region> region = Region::Anonymous(shape->geometry.region_bytes);
  if (!region.ok()) return region.error();
  if (Status made = Format(*region, shape->geometry, shape->id); !made.ok()) return made.error();
  return Opened{std::move(*region), *shape, true};
}

Result<Opened> MakeFile(const std::string& path, uint64_t bytes, const OpenOptions& options) {
  const Result<Shape> shape = PlanPool(bytes, options);
  if (!shape.ok()) return shape.error();
  Result<Region> region = Region::CreateFile(path, shape->geometry.region_bytes, [&](const Region& fresh) {
    return Format(fresh, shape->geometry, shape->id);
  });
  if (!region.ok()) return region.error();
  return Opened{std::move(*region), *shape, true};
}

// Whoever is registered in a file has gone with the process that had it open, or the file would be locked. No
// fabric can fence those clients any more: their numbers are given out anew, so to fence one of them would hit a
// stranger. Hence, before anybody is served, all of them are said to be fenced, which they are (pool/2).
void FenceTheDeparted(std::span<std::byte> region, const Geometry& geometry) {
  uint64_t departed = 0;
  for (uint32_t slot = 0; slot < geometry.client_slots; ++slot) {
    std::byte* const at = region.data() + geometry.client_slot(slot);
    const ClientWord word(LoadU64(at));
    if (word.state() != ClientState::kJoining && word.state() != ClientState::kLive) continue;
    // Bits that nobody should have set stay, so that a check finds them.
    StoreU64(at, ClientWord::FabricClient::Set(word.With(ClientState::kFenced).word(), 0));
    ++departed;
  }
  if (departed == 0) return;
  std::byte* const deaths = region.data() + kDeathsOffset;
  StoreU64(deaths, LoadU64(deaths) + departed);
}

// Everything that can be wrong with a file of the right name. Changes nothing.
Result<Superblock> CheckFile(const PoolUrl& url, std::span<const std::byte> file) {
  const std::string name = Escape(url.path);
  Result<Superblock> superblock = CheckSuperblock(file, file.size());
  if (!superblock.ok()) {
    return Error(superblock.error().code(), fmt::format("{}: {}", name, superblock.error().message()));
  }
  if (superblock->region_bytes < file.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: the superblock says {} bytes, but there are {}; cut off what was "
                             "appended",
                             name, superblock->region_bytes, file.size()));
  }
  if (url.size.has_value() && *url.size / kPage * kPage != superblock->region_bytes) {
    return Refuse(fmt::format(
        "{} has {}, but size={} is asked for; the size of a pool does not change, so leave it out", name,
        FormatSize(superblock->region_bytes), FormatSize(*url.size)));
  }
  return superblock;
}

Result<Opened> OpenFile(const PoolUrl& url, bool read_only) {
  const auto access = read_only ? Region::Access::kPrivate : Region::Access::kShared;
  Result<Region> region = Region::OpenFile(url.path, access);
  if (!region.ok()) return region.error();
  const Result<Superblock> superblock = CheckFile(url, region->bytes());
  if (!superblock.ok()) return superblock.error();
  const Shape shape{GeometryOf(*superblock), superblock->region_id};
  FenceTheDeparted(region->bytes(), shape.geometry);
  return Opened{std::move(*region), shape, false};
}

Result<Opened> OpenOrMakeFile(const PoolUrl& url, const OpenOptions& options) {
  Result<Opened> opened = OpenFile(url, options.read_only);
  if (opened.ok() || opened.error().code() != ErrorCode::kNotFound) return opened;
  if (options.read_only) {
    return Error(ErrorCode::kNotFound, fmt::format("{} does not exist", Escape(url.path)));
  }
  if (!url.size.has_value()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{} does not exist; to make a pool there, add a size, as in ?size=1GiB",
                             Escape(url.path)));
  }
  return MakeFile(url.path, *url.size, options);
}

Result<std::vector<Opened>> OpenNodes(const PoolUrl& url, const OpenOptions& options) {
  std::vector<Opened> nodes;
  if (url.kind == PoolUrl::Kind::kFile) {
    Result<Opened> opened = OpenOrMakeFile(url, options);
    if (!opened.ok()) return opened.error();
    nodes.push_back(std::move(*opened));
    return nodes;
  }
  if (options.read_only)
    return Refuse("an embedded pool is always a new one; to look at a pool, name its file");
  for (uint32_t node = 0; node < url.nodes; ++node) {
    Result<Opened> opened = MakeEmbedded(*url.size, options);
    if (!opened.ok()) return opened.error();
    nodes.push_back(std::move(*opened));
  }
  return nodes;
}

}  // namespace

Result<std::unique_ptr<OpenedPool>> OpenPool(std::string_view url, const OpenOptions& options) {
  const Result<PoolUrl> where = ParseUrl(url);
  if (!where.ok()) return where.error();
  Result<std::vector<Opened>> nodes = OpenNodes(*where, options);
  if (!nodes.ok()) return nodes.error();

  auto pool = std::make_unique<OpenedPool>();
  std::vector<Region> regions;
  for (Opened& node : *nodes) {
    pool->geometries.push_back(node.shape.geometry);
    pool->region_ids.push_back(node.shape.id);
    pool->made = node.made;
    regions.push_back(std::move(node.region));
  }
  auto fabric = fabric::embedded::EmbeddedFabric::Serve(std::move(regions), options.clock);
  if (!fabric.ok()) return fabric.error();
  pool->calls = &(*fabric)->calls();
  pool->fabric = std::move(*fabric);
  return pool;
}

}  // namespace farside::pool
