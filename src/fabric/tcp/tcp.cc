#include "fabric/tcp/tcp.h"

#include <sys/random.h>

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "fabric/tcp/client.h"

namespace farside::fabric::tcp {
namespace {

constexpr size_t kMostNodes = size_t{std::numeric_limits<uint16_t>::max()} + 1;
// With a million ids remembered by the nodes, an id is refused once in 4096 times.
constexpr int kAttempts = 16;

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
  for (const std::string& address : options.addresses) {
    Result<Endpoint> endpoint = Endpoint::Parse(address);
    if (!endpoint.ok()) return endpoint.error();
    const Result<Dialled> seen = Dial(*endpoint, ClientId::kNone, fabric->dial_options());
    if (!seen.ok()) return seen.error();
    fabric->endpoints_.push_back(std::move(*endpoint));
    fabric->region_bytes_.push_back(seen->facts.region_bytes);
    fabric->region_ids_.push_back(seen->facts.region_id);
    fabric->read_only_ |= seen->facts.access == wire::Access::kReadOnly;
  }
  return fabric;
}

DialOptions TcpFabric::dial_options() const {
  return {.tls = tls_.has_value() ? &*tls_ : nullptr, .insecure = insecure_, .timeout = connect_timeout_};
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
  std::vector<Transport> transports;
  for (size_t node = 0; node < endpoints_.size(); ++node) {
    Result<Dialled> dialled = Dial(endpoints_[node], id, dial_options());
    if (!dialled.ok()) return dialled.error();
    if (dialled->facts.region_id != region_ids_[node] || dialled->facts.region_bytes != region_bytes_[node]) {
      return Error(
          ErrorCode::kUnavailable,
          fmt::format("{} has other memory than when the pool was opened (it was restarted); open the pool "
                      "again",
                      endpoints_[node].ToString()));
    }
    transports.push_back(std::move(dialled->transport));
  }
  return std::unique_ptr<Client>(
      std::make_unique<TcpClient>(id,
                                  TcpClient::Surroundings{.endpoints = endpoints_,
                                                          .region_bytes = region_bytes_,
                                                          .clock = clock_,
                                                          .answer_timeout = answer_timeout_},
                                  std::move(transports)));
}

}  // namespace farside::fabric::tcp
