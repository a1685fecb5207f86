// What a process may send to the socket of a node that serves shared memory. An input is a row of messages,
// each behind its length in two bytes; the first one is a Hello, if the input wants to be a client.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/socket.h"
#include "tests/fabric/shm/daemon.h"
#include "tests/fuzz/new_id.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

namespace shm = fabric::shm;

struct World {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/node";
  const shm::Daemon daemon{path, {.max_clients = 4}, shm::NewRegionId(), LogLevel::kError};
};
World& TheWorld() {
  static World world;
  return world;
}

void AddMessage(Bytes& input, const Bytes& message) {
  Append(input, static_cast<uint16_t>(message.size()));
  input.insert(input.end(), message.begin(), message.end());
}

template <class T>
Bytes MessageOf(const T& head, std::string_view payload = {}) {
  Bytes message;
  Append(message, head);
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

}  // namespace

std::vector<Bytes> Seeds() {
  const shm::Hello looks{.magic = shm::kMagic, .version = shm::kVersion, .client = 0};
  const shm::Hello comes{.magic = shm::kMagic, .version = shm::kVersion, .client = 17};
  const shm::Request call{
      .kind = shm::RequestKind::kCall, .payload_bytes = 8, .engine = 0xffff, .operation = 1, .victim = 0};
  const shm::Request fence{
      .kind = shm::RequestKind::kFence, .payload_bytes = 0, .engine = 0, .operation = 0, .victim = 3};
  std::vector<Bytes> seeds(3);
  AddMessage(seeds[0], MessageOf(looks));
  AddMessage(seeds[1], MessageOf(comes));
  AddMessage(seeds[1], MessageOf(call, "12345678"));
  AddMessage(seeds[2], MessageOf(comes));
  AddMessage(seeds[2], MessageOf(fence));
  AddMessage(seeds[2], MessageOf(call, "12345678"));
  return seeds;
}

void Try(Input input) {
  World& world = TheWorld();
  {
    const Descriptor socket = std::move(*shm::ConnectTo(world.path));
    while (!input.empty()) {
      const std::span<const uint8_t> bytes = input.TakeBytes(input.Take<uint16_t>());
      if (bytes.empty()) continue;  // a message of no bytes would be the end
      Bytes message(bytes.begin(), bytes.end());
      if (message.size() == sizeof(shm::Hello)) GiveNewId<shm::Hello>(message);
      if (!shm::Send(socket.get(), std::as_bytes(std::span(message)), {}, shm::Wait::kYes)) break;
    }
  }
  // A node that still takes clients in has dealt with the messages: it takes connections in their order.
  const auto fabric = shm::OpenAt(world.path);
  Require(fabric->region_bytes()[0] == shm::Daemon::kRegionBytes, "the node still serves its memory");
}

}  // namespace farside::fuzz
