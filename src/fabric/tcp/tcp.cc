#include "fabric/tcp/tcp.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fabric/tcp/client.h"

namespace farside::fabric::tcp {
namespace {

// With a million ids remembered by the nodes, an id is refused once in 4096 times.
constexpr int kAttempts = 16;
constexpr Nanos kShortestDial = std::chrono::milliseconds(500);

// Ids are drawn by the operating system: two processes that start alike must not draw alike.
ClientId DrawId() {
  uint32_t number = 0;
  while (number == 0) {
    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) number = 0;
  }
  return static_cast<ClientId>(number);
}

}  // namespace

Result<std::unique_ptr<TcpFabric>> TcpFabric::Open(const Options& options) {
  if (options.addresses.empty() || options.addresses.size() > kMostNodes) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} memory nodes were named; 1 to {} are possible",
                                                          options.addresses.size(), kMostNodes));
  }
  std::unique_ptr<TcpFabric> fabric(new TcpFabric());
  fabric->clock_ = options.clock != nullptr ? options.clock : &fabric->steady_clock_;
  fabric->insecure_ = options.insecure;
  fabric->connect_timeout_ = options.connect_timeout;
  fabric->answer_timeout_ = options.answer_timeout;
  if (options.tls.has_value()) {
    Result<TlsContext> context = TlsContext::ForClient(*options.tls);
    if (!context.ok()) return context.error();
    fabric->tls_ = std::move(*context);
  }
  size_t reached = 0;
  std::optional<Error> out_of_reach;  // the first
  const Nanos deadline = SteadyClock().Now() + options.connect_timeout;
  for (size_t node = 0; node < options.addresses.size(); ++node) {
    Result<Endpoint> endpoint = Endpoint::Parse(options.addresses[node]);
    if (!endpoint.ok()) return endpoint.error();
    const DialOptions dial = fabric->DialOptionsFor(deadline, options.addresses.size() - node);
    const Result<Dialled> seen = Dial(*endpoint, ClientId::kNone, dial);
    if (!seen.ok() && seen.error().code() != ErrorCode::kUnavailable) return seen.error();
    if (!seen.ok() && !out_of_reach.has_value()) out_of_reach = seen.error();
    const NodeFacts facts = seen.ok() ? seen->facts : NodeFacts{};
    fabric->endpoints_.push_back(std::move(*endpoint));
    fabric->region_bytes_.push_back(facts.region_bytes);
    fabric->region_ids_.push_back(facts.region_id);
    fabric->why_missing_.push_back(seen.ok() ? "" : seen.error().message());
    fabric->read_only_ |= facts.access == wire::Access::kReadOnly;
    reached += seen.ok() ? 1 : 0;
  }
  if (reached == 0) return *out_of_reach;
  return fabric;
}

// Nodes that hang take no more than their share, and at least what a busy machine may need.
DialOptions TcpFabric::DialOptionsFor(Nanos deadline, size_t nodes) const {
  const Nanos share = (deadline - steady_clock_.Now()) / static_cast<int64_t>(nodes);
  const Nanos timeout = std::max(share, std::min(kShortestDial, connect_timeout_));
  return {.tls = tls_.has_value() ? &*tls_ : nullptr, .insecure = insecure_, .timeout = timeout};
}

Result<std::unique_ptr<Client>> TcpFabric::Connect() {
  Result<std::unique_ptr<Client>> client = ConnectAs(DrawId());
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    if (client.ok() || client.error().code() != ErrorCode::kAlreadyExists) break;
    client = ConnectAs(DrawId());
  }
  return client;
}

Result<std::unique_ptr<Client>> TcpFabric::ConnectAs(ClientId id) {
  std::vector<Link> links;
  size_t reached = 0;
  const Nanos began = steady_clock_.Now();
  const Nanos deadline = began + connect_timeout_;
  for (size_t node = 0; node < endpoints_.size(); ++node) {
    Result<Transport> transport = Reach(node, id, DialOptionsFor(deadline, endpoints_.size() - node));
    if (transport.ok()) {
      ++reached;
      links.emplace_back(std::move(*transport));
    } else if (transport.error().code() == ErrorCode::kUnavailable) {
      links.emplace_back(transport.error());
    } else {
      return transport.error();
    }
  }
  if (reached == 0) return *links.front().down();
  return std::unique_ptr<Client>(
      std::make_unique<TcpClient>(id,
                                  TcpClient::Surroundings{.endpoints = endpoints_,
                                                          .region_bytes = region_bytes_,
                                                          .clock = clock_,
                                                          .answer_timeout = answer_timeout_,
                                                          .waited = steady_clock_.Now() - began,
                                                          .read_only = read_only_,
                                                          .real_time = clock_ == &steady_clock_},
                                  std::move(links)));
}

Result<Transport> TcpFabric::Reach(size_t node, ClientId id, const DialOptions& dial) {
  const std::string address = endpoints_[node].ToString();
  if (region_bytes_[node] == 0) {
    return Error(ErrorCode::kUnavailable, why_missing_[node] + "; then open the pool again");
  }
  Result<Dialled> dialled = Dial(endpoints_[node], id, dial);
  if (!dialled.ok()) return dialled.error();
  if (dialled->facts.region_id != region_ids_[node] || dialled->facts.region_bytes != region_bytes_[node]) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{} has other memory than when the pool was opened (it was restarted); open the "
                             "pool again",
                             address));
  }
  return std::move(dialled->transport);
}

}  // namespace farside::fabric::tcp
