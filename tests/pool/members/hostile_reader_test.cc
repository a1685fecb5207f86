// A client that may only read and sends what it likes: nothing but its own slot changes, and when it has gone
// nothing of it is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "fabric/run.h"
#include "pool/members/membership.h"
#include "pool/members/reader_guard.h"
#include "tests/fabric/tcp/world.h"

namespace farside::pool {
namespace {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;
using fabric::tcp::At;
using fabric::tcp::RawPeer;
using fabric::tcp::TestNode;
namespace wire = fabric::tcp::wire;

constexpr Geometry kGeometry{
    .region_bytes = 64 * 1024, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096};
constexpr uint32_t kReader = 7;
constexpr uint32_t kWriter = 777;

// A node whose clients may only read.
class HostileReader : public testing::Test {
 protected:
  using Memory = std::vector<std::byte>;

  HostileReader() : node_(kGeometry.region_bytes, Options()) {}

  static fabric::tcp::ServerOptions Options() {
    fabric::tcp::ServerOptions options = fabric::tcp::OneThread();
    options.plain_access = wire::Access::kReadOnly;
    options.new_reader_guard = GuardReaders(kGeometry);
    return options;
  }

  static uint64_t SlotAt(uint32_t slot) { return kGeometry.client_slot(slot); }
  ClientWord Slot(uint32_t slot) { return ClientWord(node_.Word(SlotAt(slot))); }
  // The slots that name a client.
  std::vector<uint32_t> SlotsOf(uint32_t client) {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot)
      if (Number(Slot(slot).fabric_client()) == client) slots.push_back(slot);
    return slots;
  }
  Memory Snapshot() {
    Memory memory(kGeometry.region_bytes);
    node_.node().memory().Read(0, memory);
    return memory;
  }

  static Verb ReadOf(uint64_t offset, uint64_t size) {
    return fabric::Read(At(offset), {static_cast<std::byte*>(nullptr), size}).Lower();
  }
  static Verb CasOf(uint32_t slot, ClientWord from, ClientWord to) {
    return fabric::Cas(At(SlotAt(slot)), from.word(), to.word()).Lower();
  }
  static Verb PulseOf(uint32_t slot) {
    static constexpr Pulse kPulse{.epoch = 1, .heartbeat = 2, .settled = 3};
    return fabric::WriteObject(At(SlotAt(slot) + kPulseOffset), kPulse).Lower();
  }

  // The kind of the reply; nothing if the node hung up instead.
  static std::optional<wire::ReplyKind> Send(RawPeer& peer, const std::vector<Verb>& verbs) {
    peer.Send(fabric::tcp::FrameOf(verbs));
    const fabric::tcp::Bytes head = peer.Receive(sizeof(wire::ReplyHeader));
    if (head.size() < sizeof(wire::ReplyHeader)) return std::nullopt;
    const auto header = wire::Load<wire::ReplyHeader>(head.data());
    peer.Receive(header.body_bytes);
    return header.kind;
  }
  // Takes a slot and becomes live, as a client of the pool does.
  ClientWord Join(RawPeer& peer, uint32_t slot, uint32_t client) {
    const ClientWord found = Slot(slot);
    const ClientWord joining(ClientState::kJoining, found.generation() + 1, ClientId{client});
    const ClientWord live = joining.With(ClientState::kLive);
    EXPECT_EQ(Send(peer, {CasOf(slot, found, joining), ReadOf(kControlOffset, kLine)}),
              wire::ReplyKind::kAnswers);
    EXPECT_EQ(Send(peer, {PulseOf(slot), CasOf(slot, joining, live)}), wire::ReplyKind::kAnswers);
    EXPECT_EQ(Slot(slot), live);
    return live;
  }
  void AwaitNoConnections() {
    while (node_.server().connections() != 0) std::this_thread::yield();
  }

  TestNode node_;
};

ClientWord FreeAfter(ClientWord word) {
  return ClientWord(ClientState::kFree, word.generation(), ClientId::kNone);
}

TEST_F(HostileReader, JoinsBeatsAndLeaves) {
  // Given a reader that does what a client of the pool does. Expect that it may.
  RawPeer peer(node_.port());
  ASSERT_EQ(peer.Greet(fabric::tcp::HelloAs(kReader)).welcome.status, 0);
  const ClientWord live = Join(peer, 3, kReader);
  EXPECT_EQ(Send(peer, {PulseOf(3), ReadOf(kControlOffset, kLine)}), wire::ReplyKind::kAnswers);
  EXPECT_EQ(Send(peer, {CasOf(3, live, FreeAfter(live))}), wire::ReplyKind::kAnswers);
  EXPECT_EQ(Slot(3), FreeAfter(live));
}

TEST_F(HostileReader, HangsUpWithoutLeaving_ItsSlotIsFree) {
  // Given a reader that is registered, and one that has only begun to register.
  RawPeer registered(node_.port());
  ASSERT_EQ(registered.Greet(fabric::tcp::HelloAs(kReader)).welcome.status, 0);
  const ClientWord live = Join(registered, 3, kReader);
  RawPeer begins(node_.port());
  ASSERT_EQ(begins.Greet(fabric::tcp::HelloAs(kReader + 1)).welcome.status, 0);
  const ClientWord joining(ClientState::kJoining, 1, ClientId{kReader + 1});
  EXPECT_EQ(Send(begins, {CasOf(4, ClientWord(), joining)}), wire::ReplyKind::kAnswers);
  // When they hang up. Expect that the next client finds free slots, and that nothing says that they died.
  registered.Hangup();
  begins.Hangup();
  AwaitNoConnections();
  EXPECT_EQ(Slot(3), FreeAfter(live));
  EXPECT_EQ(Slot(4), FreeAfter(joining));
  EXPECT_EQ(node_.Word(kDeathsOffset), 0u);
}

TEST_F(HostileReader, WantsAllSlots_HasOneAtMost_AndLeavesNone) {
  // Given a reader that takes slot after slot, and puts each into a state that does not exist.
  RawPeer peer(node_.port());
  ASSERT_EQ(peer.Greet(fabric::tcp::HelloAs(kReader)).welcome.status, 0);
  for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot) {
    const ClientWord joining(ClientState::kJoining, 1, ClientId{kReader});
    Send(peer, {CasOf(slot, ClientWord(), joining)});
    for (const uint64_t state : {4, 9, 15})
      Send(peer, {CasOf(slot, joining, ClientWord(ClientWord::State::Set(joining.word(), state)))});
  }
  // Expect that it has one slot, in a state that exists, and none when it is gone.
  EXPECT_EQ(SlotsOf(kReader), (std::vector<uint32_t>{0}));
  EXPECT_EQ(Slot(0).state(), ClientState::kJoining);
  peer.Hangup();
  AwaitNoConnections();
  for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot)
    EXPECT_EQ(Slot(slot).state(), ClientState::kFree) << "slot " << slot;
}

TEST_F(HostileReader, ComesWithManyConnections_LeavesHalfOfTheSlotsToOthers) {
  // Given a reader with a certificate, and as many connections as there are slots.
  constexpr uint32_t kHalf = kGeometry.client_slots / 2;
  std::vector<std::unique_ptr<RawPeer>> peers;
  uint32_t client = kReader;
  const auto take = [&](uint32_t slot) {
    peers.push_back(std::make_unique<RawPeer>(node_.port()));
    ++client;
    EXPECT_EQ(peers.back()->Greet(fabric::tcp::HelloAs(client)).welcome.status, 0);
    return Send(*peers.back(), {CasOf(slot, Slot(slot), Slot(slot).JoinedBy(ClientId{client}))});
  };
  // When each takes a slot. Expect that half of them stay free for clients that may write.
  std::vector<std::optional<wire::ReplyKind>> replies;
  for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot) replies.push_back(take(slot));
  std::vector<std::optional<wire::ReplyKind>> expected(kHalf, wire::ReplyKind::kAnswers);
  expected.resize(kGeometry.client_slots, wire::ReplyKind::kError);
  EXPECT_EQ(replies, expected);
  for (uint32_t slot = kHalf; slot < kGeometry.client_slots; ++slot) EXPECT_EQ(Slot(slot), ClientWord());
  // When those with a slot are gone. Expect that others may have as many again.
  peers.clear();
  AwaitNoConnections();
  for (uint32_t slot = 0; slot < kHalf; ++slot) EXPECT_EQ(take(slot), wire::ReplyKind::kAnswers);
  EXPECT_EQ(take(kHalf), wire::ReplyKind::kError);
}

TEST_F(HostileReader, IsHonestAndComesBesideMany_IsToldThatReadersHaveTheirHalf) {
  // Given readers with half of the slots. When an honest one joins. Expect an error that says so at once.
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (uint32_t slot = 0; slot < kGeometry.client_slots / 2; ++slot) {
    peers.push_back(std::make_unique<RawPeer>(node_.port()));
    ASSERT_EQ(peers.back()->Greet(fabric::tcp::HelloAs(kReader + slot)).welcome.status, 0);
    Join(*peers.back(), slot, kReader + slot);
  }
  const auto fabric = node_.Open();
  const auto client = fabric::tcp::ConnectTo(*fabric);
  Membership member(*client, fabric::NodeId{0}, kGeometry, LeaseOptions{});
  fabric::Op op(*client, fabric::OpKind::kMaintenance);
  const Result<Done> joined = fabric::Run(*client, member.Join(op));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code(), ErrorCode::kOutOfMemory) << joined.error().message();
  EXPECT_NE(joined.error().message().find("half of the 8 client slots of node 0"), std::string::npos)
      << joined.error().message();
}

TEST_F(HostileReader, RegistersOnceInAConnection) {
  // Given a reader that has left. When it registers again, which no client does. Expect that it is refused:
  // otherwise it could soon be back at a generation that was in use before.
  RawPeer peer(node_.port());
  ASSERT_EQ(peer.Greet(fabric::tcp::HelloAs(kReader)).welcome.status, 0);
  const ClientWord live = Join(peer, 3, kReader);
  ASSERT_EQ(Send(peer, {CasOf(3, live, FreeAfter(live))}), wire::ReplyKind::kAnswers);
  const ClientWord again(ClientState::kJoining, 2, ClientId{kReader});
  EXPECT_EQ(Send(peer, {CasOf(3, FreeAfter(live), again)}), wire::ReplyKind::kError);
  EXPECT_EQ(Slot(3), FreeAfter(live));
}

TEST_F(HostileReader, GivesItsSlotBackAndBeatsInOneFrame_TheSlotIsNotItsOwnAnyMore) {
  // Given a registered reader.
  RawPeer peer(node_.port());
  ASSERT_EQ(peer.Greet(fabric::tcp::HelloAs(kReader)).welcome.status, 0);
  const ClientWord live = Join(peer, 3, kReader);
  const Memory before = Snapshot();
  // When it leaves, spends some time, and then writes the pulse of what may be another client's slot by then.
  static constexpr Pulse kFake{.epoch = ~uint64_t{0}, .heartbeat = 99, .settled = ~uint64_t{0}};
  const Verb fake = fabric::WriteObject(At(SlotAt(3) + kPulseOffset), kFake).Lower();
  const auto reply = Send(peer, {CasOf(3, live, FreeAfter(live)), ReadOf(0, kGeometry.region_bytes), fake});
  // Expect that the pulse stays as it was, and that the connection ends.
  EXPECT_EQ(reply, std::nullopt);
  EXPECT_EQ(Slot(3), FreeAfter(live));
  Memory after = Snapshot();
  StoreU64(after.data() + SlotAt(3), live.word());
  EXPECT_EQ(before, after);
}

TEST_F(HostileReader, SaysToBeARegisteredWriter_IsRefused) {
  // Given a node that was restarted, and does not know the client any more that is registered there and lives
  // on at other nodes of the pool.
  const ClientWord writer(ClientState::kLive, 3, ClientId{kWriter});
  node_.node().memory().Store(SlotAt(5), writer.word());
  // When a reader comes with the id of that client. Expect that it is refused, as if the client were there.
  RawPeer peer(node_.port());
  const auto answer = peer.Greet(fabric::tcp::HelloAs(kWriter));
  EXPECT_EQ(answer.welcome.status, wire::StatusOf(ErrorCode::kAlreadyExists)) << answer.message;
  Send(peer, {CasOf(5, writer, FreeAfter(writer))});
  EXPECT_EQ(Slot(5), writer);
}

TEST_F(HostileReader, IsHonestAndComesToARegistryOfTheDead_WaitsForAMemberToClearUp) {
  // Given a registry whose clients have all been fenced, which a reader must not change.
  for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot)
    node_.node().memory().Store(SlotAt(slot), ClientWord(ClientState::kFenced, 1, ClientId::kNone).word());
  const Memory before = Snapshot();
  // When a reader joins. Expect that it does not try, and is told at the end that there is no slot.
  const auto fabric = node_.Open();
  const auto client = fabric::tcp::ConnectTo(*fabric);
  Membership member(*client, fabric::NodeId{0}, kGeometry, {.lease = std::chrono::milliseconds(1)});
  fabric::Op op(*client, fabric::OpKind::kMaintenance);
  const Result<Done> joined = fabric::Run(*client, member.Join(op));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code(), ErrorCode::kOutOfMemory) << joined.error().message();
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(HostileReader, IsHonest_JoinsSyncsLooksAroundAndLeaves) {
  // Given a client of the pool that may only read. Expect that all that a membership does is allowed.
  const auto fabric = node_.Open();
  const auto client = fabric::tcp::ConnectTo(*fabric);
  Membership member(*client, fabric::NodeId{0}, kGeometry, LeaseOptions{});
  const auto works = [&](auto start) {
    fabric::Op op(*client, fabric::OpKind::kMaintenance);
    const auto result = fabric::Run(*client, start(op));
    return result.ok() ? "" : result.error().ToString();
  };
  EXPECT_EQ(works([&](fabric::Op& op) { return member.Join(op); }), "");
  EXPECT_EQ(works([&](fabric::Op& op) { return member.Sync(op, 0, 0, /*raise=*/false); }), "");
  EXPECT_EQ(works([&](fabric::Op& op) { return member.LookAround(op); }), "");
  EXPECT_EQ(works([&](fabric::Op& op) { return member.StandingOf(op, Owner(5, 1)); }), "");
  EXPECT_EQ(Slot(0).state(), ClientState::kLive);
  EXPECT_EQ(works([&](fabric::Op& op) { return member.Leave(op); }), "");
  EXPECT_EQ(Slot(0).state(), ClientState::kFree);
}

// ---- by chance

// Draws frames that are right in form, near what a reader may do and just beyond.
class FrameDrawer {
 public:
  FrameDrawer(uint64_t seed, fabric::memory::LineMemory& memory) : random_(seed), memory_(memory) {}

  std::vector<Verb> Draw(uint32_t reader) {
    payloads_.clear();
    if (random_.Chance(1, 24)) return {DrawCall()};
    std::vector<Verb> verbs;
    const bool each_is_right = random_.Chance(1, 2);
    for (uint64_t left = random_.Between(1, each_is_right ? 3 : 5); left > 0; --left)
      verbs.push_back(each_is_right ? DrawRight(reader) : DrawVerb(reader));
    return verbs;
  }

 private:
  // What a client of the pool might do next. Together in one frame they may be wrong.
  Verb DrawRight(uint32_t reader) {
    const uint32_t slot = DrawSlot(reader, /*surely_its_own=*/true);
    const ClientWord found = Found(slot);
    const fabric::FarAddr at = At(kGeometry.client_slot(slot));
    const bool own = Number(found.fabric_client()) == reader;
    if (!own) return fabric::Cas(at, found.word(), found.JoinedBy(ClientId{reader}).word()).Lower();
    if (random_.Chance(1, 8)) return fabric::Cas(at, found.word(), found.Freed().word()).Lower();
    if (found.state() == ClientState::kJoining && random_.Chance(1, 2))
      return fabric::Cas(at, found.word(), found.With(ClientState::kLive).word()).Lower();
    return DrawWrite(kGeometry.client_slot(slot) + kPulseOffset, random_.Between(1, sizeof(Pulse)));
  }
  Verb DrawVerb(uint32_t reader) {
    const uint32_t slot = DrawSlot(reader);
    switch (random_.Below(12)) {
      case 0: return fabric::Read(At(0), {static_cast<std::byte*>(nullptr), random_.Below(4096)}).Lower();
      case 1: return DrawWrite(DrawAddress(slot), random_.Below(80));
      case 2: return fabric::Faa(At(DrawAddress(slot) / 8 * 8), random_.Next()).Lower();
      case 3: return DrawMasked(slot);
      case 4: return fabric::Cas(At(DrawAddress(slot) / 8 * 8), 0, DrawWord(slot, reader).word()).Lower();
      case 5:
        if (random_.Chance(1, 4)) return fabric::FenceVerb(fabric::NodeId{0}, ClientId{kWriter}).Lower();
        [[fallthrough]];
      case 6:
      case 7: return DrawWrite(kGeometry.client_slot(slot) + kPulseOffset, random_.Between(1, sizeof(Pulse)));
      default:
        return fabric::Cas(At(kGeometry.client_slot(slot)), Expected(slot, reader).word(),
                           DrawWord(slot, reader).word())
            .Lower();
    }
  }
  // Often its own.
  uint32_t DrawSlot(uint32_t reader, bool surely_its_own = false) {
    const auto any = static_cast<uint32_t>(random_.Below(kGeometry.client_slots));
    if (!surely_its_own && random_.Chance(1, 4)) return any;
    for (uint32_t slot = 0; slot < kGeometry.client_slots; ++slot)
      if (Number(Found(slot).fabric_client()) == reader) return slot;
    return any;
  }
  ClientWord Found(uint32_t slot) const { return ClientWord(memory_.Load(kGeometry.client_slot(slot))); }
  // What it finds there, or what the verb before may have put there.
  ClientWord Expected(uint32_t slot, uint32_t reader) {
    return random_.Chance(2, 3) ? Found(slot) : DrawWord(slot, reader);
  }
  ClientWord DrawWord(uint32_t slot, uint32_t reader) {
    const ClientWord found = Found(slot);
    const auto state = static_cast<ClientState>(random_.Chance(1, 8) ? random_.Below(16) : random_.Below(3));
    const std::array<uint32_t, 8> generations = {0,
                                                 found.generation(),
                                                 found.generation(),
                                                 found.generation() + 1,
                                                 found.generation() + 1,
                                                 found.generation() + 2,
                                                 found.generation() - 1,
                                                 0xfffff};
    const uint32_t generation = generations[random_.Below(generations.size())] & 0xfffff;
    const std::array<uint32_t, 8> clients = {reader, reader, reader, reader, 0, 0, kWriter, 1};
    const uint32_t client =
        state == ClientState::kFree && random_.Chance(1, 2) ? 0 : clients[random_.Below(clients.size())];
    const ClientWord word(state, generation, ClientId{client});
    return random_.Chance(1, 16) ? ClientWord(word.word() | 0x10) : word;
  }
  // Somewhere of interest, not aligned.
  uint64_t DrawAddress(uint32_t slot) {
    const std::array<uint64_t, 10> near = {0,
                                           kEpochOffset,
                                           kDeathsOffset,
                                           kCatalogLockOffset,
                                           kIdentityOffset,
                                           kGeometry.client_slot(slot),
                                           kGeometry.client_slot(slot) + kPulseOffset,
                                           kGeometry.client_slot(slot) + kPulseOffset + sizeof(Pulse),
                                           kGeometry.catalog(),
                                           kGeometry.chunk_word(random_.Below(kGeometry.chunks()))};
    if (random_.Chance(1, 8)) return random_.Below(kGeometry.region_bytes - 128);
    return near[random_.Below(near.size())] + (random_.Chance(1, 4) ? random_.Below(16) : 0);
  }
  Verb DrawWrite(uint64_t at, uint64_t size) {
    payloads_.push_back(std::make_unique<std::vector<std::byte>>(size));
    for (std::byte& byte : *payloads_.back()) byte = static_cast<std::byte>(random_.Next());
    Verb verb = fabric::Write(At(at), *payloads_.back()).Lower();
    verb.unreachable = random_.Chance(1, 4);
    return verb;
  }
  Verb DrawMasked(uint32_t slot) {
    const uint64_t mask = random_.Chance(1, 2) ? ~uint64_t{0} : random_.Next();
    return fabric::MaskedCas(At(kGeometry.client_slot(slot)), 0, Found(slot).word(), mask, random_.Next(),
                             mask)
        .Lower();
  }
  Verb DrawCall() {
    const bool own_handler = random_.Chance(1, 2);
    fabric::CallVerb call(fabric::NodeId{0}, own_handler ? fabric::CallId(1, 1) : fabric::kGoneClients, "");
    return call.verb;
  }

  Random random_;
  fabric::memory::LineMemory& memory_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> payloads_;
};

class HostileReaderByChance : public HostileReader {
 protected:
  HostileReaderByChance() {
    Random random(1);
    auto& memory = node_.node().memory();
    node_.node().calls().Set(fabric::CallId(1, 1), [](fabric::NodeMemory& changed, ClientId, auto) {
      changed.Store(0, changed.Load(0) + 1);
      return Result<std::string>("changed");
    });
    for (uint64_t at = 0; at < kGeometry.region_bytes; at += 8) {
      const bool registry = at >= kGeometry.registry() && at < kGeometry.catalog();
      if (!registry) memory.Store(at, random.Next());
    }
    memory.Store(SlotAt(0), ClientWord(ClientState::kLive, 3, ClientId{kWriter}).word());
    memory.Store(SlotAt(1), ClientWord(ClientState::kFenced, 8, ClientId{kWriter + 1}).word());
    memory.Store(SlotAt(2), ClientWord(ClientState::kFree, 0xfffff, ClientId::kNone).word());
    memory.Store(SlotAt(3), ClientWord(ClientState::kFree, 4, ClientId::kNone).word());
  }

  // Whether a reader may have made the second out of the first, by one frame.
  static bool IsOwnChange(ClientWord before, ClientWord after, uint32_t reader) {
    const auto is_own = [reader](ClientWord word) {
      return Number(word.fabric_client()) == reader &&
             (word.state() == ClientState::kJoining || word.state() == ClientState::kLive);
    };
    if (!is_own(before) && before.state() != ClientState::kFree) return false;
    const bool taken = before.state() == ClientState::kFree;
    const uint32_t next = before.generation() == 0xfffff ? 1 : before.generation() + 1;
    const uint32_t generation = taken && after != before ? next : before.generation();
    const ClientWord joining(ClientState::kJoining, generation, ClientId{reader});
    return after == before || after == joining || after == joining.With(ClientState::kLive) ||
           after == FreeAfter(joining);
  }
  // What is wrong with what a frame of the reader has changed; empty if nothing is.
  std::string WhatIsWrong(const Memory& before, const Memory& after, uint32_t reader) {
    for (uint64_t at = 0; at < kGeometry.region_bytes; at += 8) {
      const uint64_t old = LoadU64(before.data() + at);
      const uint64_t now = LoadU64(after.data() + at);
      if (old == now) continue;
      if (at < kGeometry.registry() || at >= kGeometry.registry() + kGeometry.client_slots * kLine)
        return "the word at " + std::to_string(at) + " has changed";
      const uint64_t inside = at % kLine;
      const ClientWord slot_before(LoadU64(before.data() + at - inside));
      const ClientWord slot_after(LoadU64(after.data() + at - inside));
      if (inside == 0 && !IsOwnChange(slot_before, slot_after, reader))
        return "slot at " + std::to_string(at) + " is " + std::to_string(now);
      const bool own = Number(slot_before.fabric_client()) == reader ||
                       Number(slot_after.fabric_client()) == reader || slot_before != slot_after;
      if (inside != 0 && (inside >= kPulseOffset + sizeof(Pulse) || !own))
        return "the word at " + std::to_string(at) + " of a slot has changed";
    }
    return SlotsOf(reader).size() <= 1 ? "" : "the reader has several slots";
  }

  struct Tally {
    size_t lived = 0;     // frames after which a reader was live
    size_t refused = 0;   // frames
    size_t hung_up = 0;   // readers that the node has sent away
    size_t returned = 0;  // slots that came back from readers that hung up
  };
  void RunSeed(uint64_t seed, uint32_t reader, Tally& tally) {
    FrameDrawer drawer(seed, node_.node().memory());
    RawPeer peer(node_.port());
    ASSERT_EQ(peer.Greet(fabric::tcp::HelloAs(reader)).welcome.status, 0);
    for (uint64_t frame = 0; frame < 1 + seed % 40; ++frame) {
      const Memory before = Snapshot();
      const auto reply = Send(peer, drawer.Draw(reader));
      if (!reply.has_value()) AwaitNoConnections();
      ASSERT_EQ(WhatIsWrong(before, Snapshot(), reader), "") << "seed " << seed << ", frame " << frame;
      const std::vector<uint32_t> own = SlotsOf(reader);
      tally.lived += !own.empty() && Slot(own[0]).state() == ClientState::kLive ? 1 : 0;
      tally.refused += reply == wire::ReplyKind::kError ? 1 : 0;
      tally.hung_up += reply.has_value() ? 0 : 1;
      if (!reply.has_value()) break;
    }
    const std::vector<uint32_t> own = SlotsOf(reader);
    peer.Hangup();
    AwaitNoConnections();
    ASSERT_TRUE(SlotsOf(reader).empty()) << "seed " << seed;
    if (own.empty()) return;
    ASSERT_EQ(Slot(own[0]).state(), ClientState::kFree) << "seed " << seed;
    ++tally.returned;
  }
};

TEST_F(HostileReaderByChance, AnyFrames_ChangeItsOwnSlotAtMost_AndNothingIsLeft) {
  // Given a node with tables and members, and readers that send frames by chance, one reader after the other.
  // Expect after each frame that nothing has changed but the reader's own slot, in the order in which a
  // client registers; and after each reader that no slot names it.
  Tally tally;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    RunSeed(seed, static_cast<uint32_t>(1000 + seed), tally);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(node_.node().fences(), 0u);
  // Expect that this was no shadow-boxing.
  EXPECT_GT(tally.lived, 100u);
  EXPECT_GT(tally.refused, 2000u);
  EXPECT_GT(tally.hung_up, 20u);
  EXPECT_GT(tally.returned, 20u);
}

}  // namespace
}  // namespace farside::pool
