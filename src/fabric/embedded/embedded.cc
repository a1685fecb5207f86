#include "fabric/embedded/embedded.h"

#include <cassert>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace farside::fabric::embedded {
namespace {

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Status CheckNodes(size_t nodes) {
  constexpr size_t kMost = size_t{std::numeric_limits<uint16_t>::max()} + 1;
  if (nodes >= 1 && nodes <= kMost) return OkStatus();
  return Refuse(fmt::format("{} memory nodes were asked for; 1 to {} are possible", nodes, kMost));
}

Status CheckSize(size_t node, uint64_t bytes) {
  if (bytes != 0 && bytes % kLineBytes == 0) return OkStatus();
  return Refuse(
      fmt::format("the region of node {} has {} bytes; choose a multiple of {}", node, bytes, kLineBytes));
}

}  // namespace

Result<std::unique_ptr<EmbeddedFabric>> EmbeddedFabric::Open(const Options& options) {
  if (Status good = CheckNodes(options.region_bytes.size()); !good.ok()) return good.error();
  std::vector<memory::Region> regions;
  for (size_t node = 0; node < options.region_bytes.size(); ++node) {
    const uint64_t bytes = options.region_bytes[node];
    if (Status good = CheckSize(node, bytes); !good.ok()) return good.error();
    Result<memory::Region> region = memory::Region::Anonymous(bytes);
    if (!region.ok()) return region.error();
    regions.push_back(std::move(*region));
  }
  return Serve(std::move(regions), options.clock);
}

Result<std::unique_ptr<EmbeddedFabric>> EmbeddedFabric::Serve(
    std::vector<memory::Region> regions, const Clock* clock,
    std::vector<std::unique_ptr<memory::Medium>> media) {
  if (Status good = CheckNodes(regions.size()); !good.ok()) return good.error();
  assert(media.empty() || media.size() == regions.size());
  media.resize(regions.size());
  std::unique_ptr<EmbeddedFabric> fabric(new EmbeddedFabric());
  Shared& shared = fabric->shared_;
  shared.clock = clock != nullptr ? clock : &fabric->steady_clock_;
  for (memory::Region& region : regions) {
    const uint64_t bytes = region.bytes().size();
    if (Status good = CheckSize(shared.nodes.size(), bytes); !good.ok()) return good.error();
    shared.region_bytes.push_back(bytes);
    std::unique_ptr<memory::Medium> medium = std::move(media[shared.nodes.size()]);
    shared.nodes.push_back(std::make_unique<Node>(std::move(region), std::move(medium)));
  }
  return fabric;
}

FlushCounts EmbeddedFabric::flushed() const {
  FlushCounts all;
  for (const std::unique_ptr<Node>& node : shared_.nodes) all += node->handler_memory().counts();
  return all;
}

Result<std::unique_ptr<Client>> EmbeddedFabric::Connect() {
  GateRegistry::Registration registration = shared_.gates.Add();
  if (registration.id == ClientId::kNone) {
    return Error(ErrorCode::kUnavailable, "all client ids were given out; open the fabric anew");
  }
  return std::unique_ptr<Client>(std::make_unique<EmbeddedClient>(shared_, std::move(registration)));
}

}  // namespace farside::fabric::embedded
