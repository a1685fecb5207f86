#include "pool/region/open.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "fabric/embedded/embedded.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/region/node_identity.h"
#include "pool/region/remote.h"
#include "pool/region/superblock.h"
#include "pool/region/url.h"

namespace farside::pool {
namespace {

using fabric::memory::Region;

// ---- in this process ---------------------------------------------------------------------------------

Result<std::vector<PoolRegion>> OpenRegions(const PoolUrl& url, const OpenOptions& options) {
  std::vector<PoolRegion> regions;
  if (url.in_file()) {
    Result<PoolRegion> opened = OpenOrMakeFile(url, options);
    if (!opened.ok()) return opened.error();
    regions.push_back(std::move(*opened));
    return regions;
  }
  if (options.read_only) {
    return Error(ErrorCode::kInvalidArgument,
                 "an embedded pool is always a new one; to look at a pool, name its file or its node");
  }
  for (uint32_t node = 0; node < url.nodes; ++node) {
    Result<PoolRegion> made = MakeVolatile(*url.size, options);
    if (!made.ok()) return made.error();
    regions.push_back(std::move(*made));
  }
  return regions;
}

Result<std::unique_ptr<OpenedPool>> OpenLocal(const PoolUrl& url, const OpenOptions& options) {
  Result<std::vector<PoolRegion>> opened = OpenRegions(url, options);
  if (!opened.ok()) return opened.error();

  auto pool = std::make_unique<OpenedPool>();
  std::vector<Region> regions;
  std::vector<std::unique_ptr<fabric::memory::Medium>> media;
  for (PoolRegion& node : *opened) {
    media.push_back(node.NewMedium());
    pool->geometries.push_back(node.geometry);
    pool->region_ids.push_back(node.id);
    pool->made = node.made;
    regions.push_back(std::move(node.region));
  }
  auto fabric = fabric::embedded::EmbeddedFabric::Serve(std::move(regions), options.clock, std::move(media));
  if (!fabric.ok()) return fabric.error();
  pool->calls = &(*fabric)->calls();
  pool->fabric = std::move(*fabric);
  return pool;
}

// ---- at nodes that others serve ----------------------------------------------------------------------

struct Looked {
  Superblock superblock;
  NodeIdentity identity;
};

Task<Looked> LookAt(fabric::Client& client, fabric::NodeId node) {
  fabric::Op op(client, fabric::OpKind::kMaintenance);
  Looked looked{};
  looked.superblock = co_await ReadSuperblock(op, node);
  const uint64_t identity = co_await op.InOrder(
      fabric::ForMaintenance(fabric::Read<uint64_t>(fabric::FarAddr(node, kIdentityOffset))));
  looked.identity = NodeIdentity(identity);
  op.End(fabric::OpKind::kMaintenance, fabric::OpOutcome::kDone);
  co_return looked;
}

Task<Done> Claim(fabric::Client& client, std::vector<FoundNode> nodes) {
  fabric::Op op(client, fabric::OpKind::kMaintenance);
  co_await ClaimIdentities(op, std::move(nodes));
  op.End(fabric::OpKind::kMaintenance, fabric::OpOutcome::kDone);
  co_return Done{};
}

Result<std::unique_ptr<OpenedPool>> OpenRemote(const PoolUrl& url, const OpenOptions& options) {
  Result<std::unique_ptr<fabric::Fabric>> fabric = ConnectTo(url, options.lease, options.clock);
  if (!fabric.ok()) return fabric.error();
  auto pool = std::make_unique<OpenedPool>();
  pool->fabric = std::move(*fabric);
  pool->remote = true;
  const Result<std::unique_ptr<fabric::Client>> client = pool->fabric->Connect();
  if (!client.ok()) return client.error();
  std::vector<FoundNode> found;
  for (uint16_t node = 0; node < url.nodes; ++node) {
    found.push_back({.name = url.names[node]});
    const Result<Looked> looked = fabric::Run(**client, LookAt(**client, fabric::NodeId{node}));
    if (!looked.ok() && !(*client)->Reaches(fabric::NodeId{node})) {
      pool->geometries.emplace_back();
      pool->region_ids.emplace_back();
      pool->missing.push_back({node, url.names[node], looked.error().message()});
      continue;
    }
    if (!looked.ok()) {
      return Error(looked.error().code(),
                   fmt::format("node {}: {}", url.names[node], looked.error().message()));
    }
    pool->geometries.push_back(GeometryOf(looked->superblock));
    pool->region_ids.push_back(looked->superblock.region_id);
    found.back().reached = true;
    found.back().id = looked->superblock.region_id;
    found.back().identity = looked->identity;
    found.back().durable = pool->geometries.back().durable;
  }
  if (Status fits = CheckIdentities(found); !fits.ok()) return fits.error();
  // A client that only looks decides nothing: an operator may look at each node before they become one pool.
  const bool all_reached = pool->missing.empty();
  if (all_reached && !options.read_only && !(*client)->read_only()) {
    if (Status claimed = fabric::Run(**client, Claim(**client, std::move(found))); !claimed.ok())
      return claimed.error();
  }
  return pool;
}

}  // namespace

Result<std::unique_ptr<OpenedPool>> OpenPool(std::string_view url, const OpenOptions& options) {
  const Result<PoolUrl> where = ParseUrl(url);
  if (!where.ok()) return where.error();
  return where->remote() ? OpenRemote(*where, options) : OpenLocal(*where, options);
}

}  // namespace farside::pool
