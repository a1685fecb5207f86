// What a process may send to the port of a node: a Hello, and frames behind it, through the whole server.
// Each input is a connection of its own; another client must not notice.
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "fabric/tcp/wire.h"
#include "tests/fabric/tcp/world.h"
#include "tests/fuzz/new_id.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

namespace tcp = fabric::tcp;
namespace wire = fabric::tcp::wire;

struct World {
  tcp::TestNode node{8192, tcp::OneThread(), {1, 2}, LogLevel::kError};
  tcp::Bystander bystander{node, 8184};
};
World& TheWorld() {
  static World world;
  return world;
}

Bytes Joined(const wire::Hello& hello, const tcp::Bytes& frames) {
  Bytes input;
  Append(input, hello);
  AppendBytes(input, frames);
  return input;
}

}  // namespace

std::vector<Bytes> Seeds() {
  static const std::array<uint64_t, 9> payload = {1, 2, 3};
  const wire::Hello hello = tcp::HelloAs(9);
  wire::Hello looks;
  looks.flags = wire::Hello::kLookOnly;
  tcp::Bytes frames = tcp::FrameOf({fabric::WriteObject(tcp::At(64), payload).Lower()});
  tcp::Append(frames,
              tcp::FrameOf({fabric::Faa(tcp::At(8), 1).Lower(), fabric::Cas(tcp::At(16), 0, 1).Lower()}));
  tcp::Append(frames, tcp::FrameOf({fabric::FenceVerb(fabric::NodeId{0}, fabric::ClientId{5}).Lower(),
                                    fabric::Faa(tcp::At(8), 1).Lower()}));
  return {Joined(looks, {}), Joined(hello, {}), Joined(hello, frames)};
}

void Try(Input input) {
  World& world = TheWorld();
  Bytes stream(input.rest().begin(), input.rest().end());
  if (stream.size() >= sizeof(wire::Hello)) GiveNewId<wire::Hello>(stream);
  tcp::RawPeer peer(world.node.port());
  peer.Send(std::as_bytes(std::span(stream)));
  ::shutdown(peer.fd(), SHUT_WR);
  Require(peer.NodeHungUp(), "a node that was told that no more comes hangs up");
  world.bystander.ExpectServed();
}

}  // namespace farside::fuzz
