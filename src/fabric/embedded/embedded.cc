#include "fabric/embedded/embedded.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace farside::fabric::embedded {
namespace {

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

}  // namespace

Result<std::unique_ptr<EmbeddedFabric>> EmbeddedFabric::Open(const Options& options) {
  constexpr size_t kMostNodes = size_t{std::numeric_limits<uint16_t>::max()} + 1;
  const size_t nodes = options.region_bytes.size();
  if (nodes == 0 || nodes > kMostNodes) {
    return Refuse(fmt::format("{} memory nodes were asked for; 1 to {} are possible", nodes, kMostNodes));
  }

  std::unique_ptr<EmbeddedFabric> fabric(new EmbeddedFabric());
  Shared& shared = fabric->shared_;
  shared.region_bytes = options.region_bytes;
  shared.clock = options.clock != nullptr ? options.clock : &fabric->steady_clock_;
  for (size_t node = 0; node < nodes; ++node) {
    const uint64_t bytes = options.region_bytes[node];
    if (bytes == 0 || bytes % kLineBytes != 0) {
      return Refuse(fmt::format("the region of node {} has {} bytes; choose a multiple of {}", node, bytes,
                                kLineBytes));
    }
    Result<memory::Mapping> region = memory::Mapping::Create(bytes);
    if (!region.ok()) return region.error();
    shared.nodes.push_back(std::make_unique<Node>(std::move(*region)));
  }
  return fabric;
}

Result<std::unique_ptr<Client>> EmbeddedFabric::Connect() {
  GateRegistry::Registration registration = shared_.gates.Add();
  if (registration.id == ClientId::kNone) {
    return Error(ErrorCode::kUnavailable, "all client ids were given out; open the fabric anew");
  }
  return std::unique_ptr<Client>(std::make_unique<EmbeddedClient>(shared_, std::move(registration)));
}

}  // namespace farside::fabric::embedded
