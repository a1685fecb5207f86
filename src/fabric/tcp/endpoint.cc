#include "fabric/tcp/endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace farside::fabric::tcp {
namespace {

Error NotAnAddress(std::string_view text) {
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is not an address; write host:port, as in 10.0.0.7:7170 or [::1]:7170", text));
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return NotAnAddress(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  Endpoint endpoint;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  const bool is_port = error == std::errc() && end == digits.data() + digits.size();
  if (!is_port || host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) {
    return NotAnAddress(text);
  }
  endpoint.host = host;
  return endpoint;
}

std::string Endpoint::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool SocketAddress::IsLoopback() const {
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  if (storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
  }
  return false;
}

uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return 0;
}

uint64_t SocketAddress::Network() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr);
  if (storage.ss_family != AF_INET6) return 0;
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  // An IPv4 address that is mapped into IPv6 is the same address. No other begins with 32 zeros.
  const size_t first = IN6_IS_ADDR_V4MAPPED(&address) ? 12 : 0;
  uint64_t network = 0;
  for (size_t i = first; i < (first == 0 ? 8 : 16); ++i) network = network << 8 | address.s6_addr[i];
  return network;
}

std::string SocketAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = nullptr;
  if (storage.ss_family == AF_INET) address = &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr;
  if (storage.ss_family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  if (address == nullptr || inet_ntop(storage.ss_family, address, text.data(), text.size()) == nullptr) {
    return "an unknown address";
  }
  return Endpoint{text.data(), port()}.ToString();
}

Result<std::vector<SocketAddress>> Resolve(const Endpoint& endpoint, bool to_listen) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed != 0) {
    return Error(ErrorCode::kUnavailable, fmt::format("the host of {} is not known ({}); check the name",
                                                      endpoint.ToString(), gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.bytes = each->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

Status CheckPlainIsAllowed(const Endpoint& endpoint, const std::vector<SocketAddress>& addresses,
                           bool insecure) {
  const auto is_loopback = [](const SocketAddress& address) { return address.IsLoopback(); };
  if (insecure || std::all_of(addresses.begin(), addresses.end(), is_loopback)) return OkStatus();
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} is not on this machine, and without TLS every machine on the way could read and change "
                  "its memory; give certificates (docs/security.md), or say that it may be insecure",
                  endpoint.ToString()));
}

void PrepareSocket(int fd, const SocketAddress& peer) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  // Nothing congests the way to oneself, so nothing has to be paced on it, as bbr would do by timers.
  constexpr std::string_view kUnpaced = "reno";
  if (peer.IsLoopback()) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size());
}

std::string ErrnoText(int error) {
  std::array<char, 128> text{};
  const char* const name = strerrorname_np(error);
  return fmt::format("{} ({})", strerror_r(error, text.data(), text.size()), name == nullptr ? "?" : name);
}

}  // namespace farside::fabric::tcp
