// What a client that may only read may send to the port of a node: a Hello, and frames behind it, through the
// whole server. Nothing but its own slot changes, and when its connection has ended the slot is free.
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "fabric/tcp/wire.h"
#include "pool/members/reader_guard.h"
#include "pool/region/layout.h"
#include "tests/fabric/tcp/world.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

namespace tcp = fabric::tcp;
namespace wire = fabric::tcp::wire;
using fabric::ClientId;
using fabric::Verb;
using pool::ClientState;
using pool::ClientWord;

constexpr pool::Geometry kGeometry{
    .region_bytes = 32 * 1024, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096};
constexpr uint32_t kFreeSlot = 3;
constexpr uint32_t kFreeGeneration = 4;
constexpr ClientId kOther{777};
// In the seeds, of the reader. A node does not admit an id twice, so each input gets another in its place.
constexpr uint32_t kReader = 0x5ead0001;

tcp::ServerOptions ForReaders() {
  tcp::ServerOptions options = tcp::OneThread();
  options.plain_access = wire::Access::kReadOnly;
  options.new_reader_guard = pool::GuardReaders(kGeometry);
  return options;
}

// A region of any bytes, with a registry in which some slots are free.
class World {
 public:
  World() : before_(kGeometry.region_bytes) {
    Random random(1);
    for (uint64_t at = 0; at < before_.size(); at += 8) {
      const bool registry = at >= kGeometry.registry() && at < kGeometry.catalog();
      StoreU64(before_.data() + at, registry ? 0 : random.Next());
    }
    SetSlot(0, ClientWord(ClientState::kLive, 3, kOther));
    SetSlot(1, ClientWord(ClientState::kFenced, 8, ClientId{778}));
    SetSlot(kFreeSlot, ClientWord(ClientState::kFree, kFreeGeneration, ClientId::kNone));
    node_.node().memory().Write(0, before_);
  }

  uint16_t port() const { return node_.port(); }
  // A reader has come and gone.
  void Check() {
    while (node_.server().connections() != 0) std::this_thread::yield();
    std::vector<std::byte> after(before_.size());
    node_.node().memory().Read(0, after);
    size_t used = 0;  // slots
    for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot) {
      const uint64_t at = kGeometry.client_slot(slot);
      if (std::memcmp(after.data() + at, before_.data() + at, pool::kLine) == 0) continue;
      ++used;
      Require(IsLeft(SlotIn(before_, slot), SlotIn(after, slot)),
              "the slot of a reader is free when it has gone");
      std::memcpy(after.data() + at, before_.data() + at, pool::kPulseOffset + sizeof(pool::Pulse));
    }
    Require(used <= 1, "a reader has one slot at most");
    Require(after == before_, "a reader changes nothing but its slot");
    if (used != 0) node_.node().memory().Write(0, before_);
  }

 private:
  void SetSlot(uint32_t slot, ClientWord word) {
    StoreU64(before_.data() + kGeometry.client_slot(slot), word.word());
  }
  static ClientWord SlotIn(const std::vector<std::byte>& region, uint32_t slot) {
    return ClientWord(LoadU64(region.data() + kGeometry.client_slot(slot)));
  }
  // Whether a reader may have taken the slot and given it back.
  static bool IsLeft(ClientWord before, ClientWord after) {
    return before.state() == ClientState::kFree && after == before.JoinedBy(kOther).Freed();
  }

  std::vector<std::byte> before_;
  tcp::TestNode node_{kGeometry.region_bytes, ForReaders(), {1, 2}, LogLevel::kError};
};
World& TheWorld() {
  static World world;
  return world;
}

Verb CasOf(ClientWord from, ClientWord to) {
  return fabric::Cas(tcp::At(kGeometry.client_slot(kFreeSlot)), from.word(), to.word()).Lower();
}

// Puts an id that the node has not seen yet in the place of kReader, wherever it stands.
void GiveNewId(Bytes& stream) {
  static uint32_t last_id = 1'000'000;
  ++last_id;
  for (size_t at = 0; at + sizeof last_id <= stream.size(); ++at) {
    if (std::memcmp(stream.data() + at, &kReader, sizeof kReader) == 0)
      std::memcpy(stream.data() + at, &last_id, sizeof last_id);
  }
}

}  // namespace

// A reader that comes, beats and hangs up, one that leaves, and one that is refused.
std::vector<Bytes> Seeds() {
  static constexpr pool::Pulse kPulse{.epoch = 1, .heartbeat = 2, .settled = 3};
  const ClientWord free(ClientState::kFree, kFreeGeneration, ClientId::kNone);
  const ClientWord joining = free.JoinedBy(ClientId{kReader});
  const ClientWord live = joining.With(ClientState::kLive);
  const uint64_t pulse_at = kGeometry.client_slot(kFreeSlot) + pool::kPulseOffset;
  const Verb beat = fabric::WriteObject(tcp::At(pulse_at), kPulse).Lower();
  const Verb read = fabric::Read(tcp::At(0), {static_cast<std::byte*>(nullptr), 4096}).Lower();
  const tcp::Bytes joins = tcp::FrameOf({CasOf(free, joining), read});
  const tcp::Bytes comes = tcp::FrameOf({beat, CasOf(joining, live)});
  const tcp::Bytes beats = tcp::FrameOf({beat, read});
  const tcp::Bytes leaves = tcp::FrameOf({CasOf(live, joining.Freed()), read});
  const tcp::Bytes writes = tcp::FrameOf({fabric::Faa(tcp::At(8), 1).Lower(), beat});
  const auto stream = [&](const std::vector<tcp::Bytes>& frames) {
    Bytes seed;
    Append(seed, tcp::HelloAs(kReader));
    for (const tcp::Bytes& frame : frames) AppendBytes(seed, frame);
    return seed;
  };
  return {stream({joins, comes, beats}), stream({joins, comes, leaves, beats}),
          stream({joins, writes, comes, beats}), stream({joins})};
}

void Try(Input input) {
  World& world = TheWorld();
  Bytes bytes(input.rest().begin(), input.rest().end());
  GiveNewId(bytes);
  {
    tcp::RawPeer peer(world.port());
    peer.Send(std::as_bytes(std::span(bytes)));
    ::shutdown(peer.fd(), SHUT_WR);
    Require(peer.NodeHungUp(), "a node that was told that no more comes hangs up");
  }
  world.Check();
}

}  // namespace farside::fuzz
