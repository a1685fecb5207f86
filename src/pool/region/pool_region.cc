#include "pool/region/pool_region.h"

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
#include "pool/region/node_identity.h"
#include "pool/region/recover.h"

namespace farside::pool {
namespace {

using fabric::memory::Region;

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

// What a region shall hold.
struct Plan {
  Geometry geometry;
  RegionId id;
};

Result<Plan> PlanPool(uint64_t bytes, const OpenOptions& options) {
  const Result<Geometry> geometry = PlanGeometry(bytes, options.format);
  if (!geometry.ok()) return geometry.error();
  const Result<RegionId> id = NewRegionId(options.random);
  if (!id.ok()) return id.error();
  return Plan{*geometry, *id};
}

Region::Access AccessFor(const OpenOptions& options) {
  if (options.read_only) return Region::Access::kPrivate;
  return options.served ? Region::Access::kServed : Region::Access::kShared;
}

bool IsDurable(const PoolUrl& url) { return url.kind == PoolUrl::Kind::kPmem; }

Result<PoolRegion> MakeFile(const PoolUrl& url, const OpenOptions& wanted) {
  OpenOptions options = wanted;
  options.format.durable = IsDurable(url);
  const std::string& path = url.path;
  const Result<Plan> plan = PlanPool(*url.size, options);
  if (!plan.ok()) return plan.error();
  const auto format = [&](const Region& fresh) { return Format(fresh, plan->geometry, plan->id); };
  Result<Region> region = Region::CreateFile(path, plan->geometry.region_bytes, format, AccessFor(options));
  if (!region.ok()) return region.error();
  return PoolRegion{std::move(*region), plan->geometry, plan->id, /*made=*/true};
}

// Clients that are registered in a file have ended with the process that had it open, or the file would be
// locked. No fabric can fence those clients any more: their numbers are given out anew, so to fence one of
// them would hit a stranger. Hence, before a client is served, all of them are marked as fenced, which they
// are (pool/2).
//
// (A durable pool is put in order in another way: recover.h.)
//
// Not so in a part of a pool of several nodes: its clients have lost this node, but may go on at the others,
// and link there what they have put here before. To be dead they have to be cut off from all nodes, and only
// a client can do that. It need not wait for their leases: it asks this node, which has never heard of them,
// and so knows that they are gone (kGoneClients in fabric/service.h). Ids at served nodes are drawn anew from
// 2^32, so the old ones still name the clients that had them.
void FenceTheDeparted(std::span<std::byte> region, const Geometry& geometry) {
  uint64_t departed = 0;
  for (uint32_t slot = 0; slot < geometry.client_slots; ++slot) {
    std::byte* const at = region.data() + geometry.client_slot(slot);
    const ClientWord word(LoadU64(at));
    if (word.state() == ClientState::kFree || word.state() == ClientState::kFenced) continue;
    // Bits that no client should have set stay, so that a check finds them.
    StoreU64(at, ClientWord::FabricClient::Set(word.With(ClientState::kFenced).word(), 0));
    ++departed;
  }
  if (departed == 0) return;
  std::byte* const deaths = region.data() + kDeathsOffset;
  StoreU64(deaths, LoadU64(deaths) + departed);
}

// What a pool promises about power cuts was decided when it was made, and its tables rely on it.
Error OfOtherDurability(const PoolUrl& url, bool served) {
  const std::string name = Escape(url.path);
  if (IsDurable(url)) {
    return Refuse(fmt::format(
        "{} is not a durable pool, and does not become one; {} {}{}, or import its tables into a new one",
        name, served ? "serve it with --file" : "open it as", served ? "" : "file:", name));
  }
  return Refuse(fmt::format("{} is a durable pool; {} {}{}", name,
                            served ? "serve it with --pmem" : "open it as", served ? "" : "pmem:", name));
}

// Everything that can be wrong with a file of the right name. Changes nothing.
Result<Superblock> CheckFile(const PoolUrl& url, std::span<const std::byte> file, bool served) {
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
  if (GeometryOf(*superblock).durable != IsDurable(url)) return OfOtherDurability(url, served);
  return superblock;
}

Result<PoolRegion> OpenFile(const PoolUrl& url, const OpenOptions& options) {
  Result<Region> region = Region::OpenFile(url.path, AccessFor(options));
  if (!region.ok()) return region.error();
  const Result<Superblock> superblock = CheckFile(url, region->bytes(), options.served);
  if (!superblock.ok()) return superblock.error();
  const NodeIdentity identity(LoadU64(region->bytes().data() + kIdentityOffset));
  if (identity.nodes() > 1 && !options.served) {
    return Refuse(fmt::format(
        "{} is node {} of a pool of {} nodes; serve all of them with 'farside serve {}', and "
        "open the pool by their URL",
        Escape(url.path), identity.number(), identity.nodes(), IsDurable(url) ? "--pmem" : "--file"));
  }
  const Geometry geometry = GeometryOf(*superblock);
  if (geometry.durable) {
    // INVARIANT durable/1. Also after a process that was killed: what it had not made durable is still in the
    // memory of this machine, and in no safer place. Pages whose writing failed would stay there for good.
    if (Status reloaded = region->Reload(); !reloaded.ok()) return reloaded.error();
    const auto persist = [&region](uint64_t offset, uint64_t size) { return region->Persist(offset, size); };
    if (Status durable = Recover(region->bytes(), persist, geometry); !durable.ok()) return durable.error();
  } else {
    StoreU64(region->bytes().data() + kHandlerOffset, 0);  // no handler runs yet
    if (identity.nodes() <= 1) FenceTheDeparted(region->bytes(), geometry);
  }
  return PoolRegion{std::move(*region), geometry, superblock->region_id, /*made=*/false};
}

}  // namespace

std::unique_ptr<fabric::memory::Medium> PoolRegion::NewMedium() const {
  if (!geometry.durable) return nullptr;
  Result<std::unique_ptr<fabric::memory::Medium>> medium = region.NewMedium();
  return medium.ok() ? std::move(*medium) : nullptr;
}

Result<PoolRegion> MakeVolatile(uint64_t bytes, const OpenOptions& options, const MakeRegion& make) {
  const Result<Plan> plan = PlanPool(bytes, options);
  if (!plan.ok()) return plan.error();
  Result<Region> region = make(plan->geometry.region_bytes);
  if (!region.ok()) return region.error();
  if (Status made = Format(*region, plan->geometry, plan->id); !made.ok()) return made.error();
  return PoolRegion{std::move(*region), plan->geometry, plan->id, /*made=*/true};
}

Result<PoolRegion> OpenOrMakeFile(const PoolUrl& url, const OpenOptions& options) {
  Result<PoolRegion> opened = OpenFile(url, options);
  if (opened.ok() || opened.error().code() != ErrorCode::kNotFound) return opened;
  if (options.read_only) {
    return Error(ErrorCode::kNotFound, fmt::format("{} does not exist", Escape(url.path)));
  }
  if (!url.size.has_value()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{} does not exist; to make a pool there, add a size, as in ?size=1GiB",
                             Escape(url.path)));
  }
  return MakeFile(url, options);
}

}  // namespace farside::pool
