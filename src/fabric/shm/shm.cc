#include "fabric/shm/shm.h"

#include <sys/random.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "fabric/shm/socket.h"

namespace farside::fabric::shm {
namespace {

// A daemon greets at once, unless something is badly wrong.
constexpr int kPatienceMs = 10'000;
// Ids are drawn from 2^32: to meet one that is taken so often in a row does not happen by chance.
constexpr int kIdsToTry = 16;

uint64_t DrawSeed() {
  uint64_t seed = 0;
  [[maybe_unused]] const ssize_t drawn = ::getrandom(&seed, sizeof seed, 0);
  return seed;
}

struct Greeting {
  Welcome welcome;
  Descriptor socket;
  Descriptor control;
  Descriptor region;
};

// Connects and introduces a client; with id 0, only asks for the memory.
Result<Greeting> Greet(const std::string& name, const std::string& path, ClientId id) {
  Result<Descriptor> socket = ConnectTo(path);
  if (!socket.ok()) return socket.error();
  const Hello hello{.magic = kMagic, .version = kVersion, .client = Number(id)};
  const auto silent = [&name] {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("memory node {} does not answer as a farside daemon does", Escape(name)));
  };
  // A daemon that refuses may have said why and hung up before this was sent, so its answer is looked for in
  // any case.
  static_cast<void>(Send(socket->get(), BytesOf(hello), {}, Wait::kYes));
  if (!AwaitMessage(socket->get(), kPatienceMs)) return silent();
  std::array<std::byte, sizeof(Welcome) + kMaxText> buffer;
  Received received = Receive(socket->get(), buffer, Wait::kNo);
  Greeting greeting;
  Welcome& welcome = greeting.welcome;
  if (received.kind != Received::Kind::kMessage || received.bytes < sizeof welcome) return silent();
  std::memcpy(&welcome, buffer.data(), sizeof welcome);
  if (welcome.magic != kMagic || welcome.text_bytes != received.bytes - sizeof welcome) return silent();
  if (welcome.status != kWireOk) {
    const std::string_view text = AsText(std::span(buffer).subspan(sizeof welcome, welcome.text_bytes));
    return Error(FromWire(welcome.status), fmt::format("memory node {}: {}", Escape(name), Escape(text)));
  }
  if (welcome.version != kVersion || received.descriptors.size() != 2) return silent();
  greeting.socket = std::move(*socket);
  greeting.control = std::move(received.descriptors[0]);
  greeting.region = std::move(received.descriptors[1]);
  return greeting;
}

}  // namespace

ShmFabric::ShmFabric(const Options& options)
    : clock_(options.clock != nullptr ? options.clock : &steady_clock_),
      random_(options.seed != 0 ? options.seed : DrawSeed()) {}

Result<std::unique_ptr<ShmFabric>> ShmFabric::Open(const Options& options) {
  constexpr size_t kMost = size_t{std::numeric_limits<uint16_t>::max()} + 1;
  if (options.nodes.empty() || options.nodes.size() > kMost) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} memory nodes were named; 1 to {} are possible",
                                                          options.nodes.size(), kMost));
  }
  std::unique_ptr<ShmFabric> fabric(new ShmFabric(options));
  for (const std::string& name : options.nodes) {
    Result<std::string> path = PathToReach(name);
    if (!path.ok()) return path.error();
    const Result<Greeting> greeting = Greet(name, *path, ClientId::kNone);
    if (!greeting.ok()) return greeting.error();
    const Welcome& welcome = greeting->welcome;
    const Result<std::shared_ptr<Mapping>> tried =
        Mapping::Map(name, welcome, greeting->control, greeting->region);
    if (!tried.ok()) return tried.error();
    for (const memory::RegionId& other : fabric->region_ids_) {
      if (other != welcome.region_id) continue;
      return Error(ErrorCode::kInvalidArgument, fmt::format("memory node {} was named twice", Escape(name)));
    }
    fabric->region_bytes_.push_back(welcome.region_bytes);
    fabric->region_ids_.push_back(welcome.region_id);
    fabric->nodes_.push_back({name, std::move(*path), {}});
  }
  return fabric;
}

Result<std::unique_ptr<Client>> ShmFabric::Connect() {
  if (guard_.forked()) return ForkGuard::Refusal();
  const std::scoped_lock lock(mutex_);
  for (int attempt = 0; attempt < kIdsToTry; ++attempt) {
    const auto id = static_cast<ClientId>(random_.Between(1, std::numeric_limits<uint32_t>::max()));
    std::vector<std::unique_ptr<Link>> links;
    bool taken = false;
    for (size_t node = 0; node < nodes_.size() && !taken; ++node) {
      Result<std::unique_ptr<Link>> link = Introduce(node, id);
      taken = !link.ok() && link.error().code() == ErrorCode::kAlreadyExists;
      if (!link.ok() && !taken) return link.error();
      if (link.ok()) links.push_back(std::move(*link));
    }
    if (taken) continue;
    return std::unique_ptr<Client>(std::make_unique<ShmClient>(id, region_bytes_, *clock_, std::move(links)));
  }
  return Error(ErrorCode::kUnavailable, fmt::format("{} ids in a row were taken; connect again", kIdsToTry));
}

Result<std::unique_ptr<Link>> ShmFabric::Introduce(size_t node, ClientId id) {
  const Node& at = nodes_[node];
  Result<Greeting> greeting = Greet(at.name, at.path, id);
  if (!greeting.ok()) return greeting.error();
  const Welcome& welcome = greeting->welcome;
  if (welcome.region_id != region_ids_[node] || welcome.region_bytes != region_bytes_[node]) {
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("memory node {} has other memory than when the pool was opened (it was restarted); open "
                    "the pool again",
                    Escape(at.name)));
  }
  Result<std::shared_ptr<Mapping>> mapping = MappingOf(node, welcome, greeting->control, greeting->region);
  if (!mapping.ok()) return mapping.error();
  return std::make_unique<Link>(at.name, std::move(greeting->socket), std::move(*mapping), welcome.slot);
}

// The clients share it, unless the daemon was started again with the same region: that has new control
// memory.
Result<std::shared_ptr<Mapping>> ShmFabric::MappingOf(size_t node, const Welcome& welcome,
                                                      const Descriptor& control, const Descriptor& region) {
  if (std::shared_ptr<Mapping> mapped = nodes_[node].mapping.lock();
      mapped != nullptr && mapped->instance() == welcome.instance && welcome.slot < kClientSlots) {
    return mapped;
  }
  Result<std::shared_ptr<Mapping>> fresh = Mapping::Map(nodes_[node].name, welcome, control, region);
  if (fresh.ok()) nodes_[node].mapping = *fresh;
  return fresh;
}

}  // namespace farside::fabric::shm
