#include "pool/region/remote.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "fabric/shm/shm.h"
#include "fabric/tcp/tcp.h"

namespace farside::pool {
namespace {

constexpr int kSilencesPerLease = 3;
// Operations of a session whose nodes all hang try to connect again, and should not take a lease for it.
constexpr int kConnectsPerLease = 2;
constexpr Nanos kShortestConnect = std::chrono::seconds(1);
constexpr Nanos kLongestConnect = std::chrono::seconds(5);
// A node is not given up because its machine was busy for a moment, whatever the lease is.
constexpr Nanos kShortestPatience = std::chrono::milliseconds(500);
constexpr Nanos kLongestPatience = std::chrono::seconds(30);

template <class OpenFabric>
Result<std::unique_ptr<fabric::Fabric>> Opened(Result<std::unique_ptr<OpenFabric>> fabric) {
  if (!fabric.ok()) return fabric.error();
  return std::unique_ptr<fabric::Fabric>(std::move(*fabric));
}

}  // namespace

Result<std::unique_ptr<fabric::Fabric>> ConnectTo(const PoolUrl& url, Nanos lease, const Clock* clock) {
  assert(url.kind == PoolUrl::Kind::kShm || url.kind == PoolUrl::Kind::kTcp);
  if (url.kind == PoolUrl::Kind::kShm) {
    fabric::shm::Options options;
    options.nodes = url.names;
    options.clock = clock;
    return Opened(fabric::shm::ShmFabric::Open(options));
  }
  fabric::tcp::Options options;
  options.addresses = url.names;
  options.insecure = url.insecure;
  options.clock = clock;
  options.connect_timeout = std::clamp(lease / kConnectsPerLease, kShortestConnect, kLongestConnect);
  options.answer_timeout = std::clamp(lease / kSilencesPerLease, kShortestPatience, kLongestPatience);
  if (!url.ca.empty()) {
    options.tls =
        fabric::tcp::ClientTls{.certificate_file = url.cert, .key_file = url.key, .ca_file = url.ca};
  }
  return Opened(fabric::tcp::TcpFabric::Open(options));
}

}  // namespace farside::pool
