// "When things break" of docs/memory-model.md: what holds on every backend.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "tests/fabric/conformance/backend.h"
#include "tests/fabric/conformance/cite.h"

namespace farside::fabric::conformance {
namespace {

class FabricBreaking : public FabricTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FabricBreaking, testing::ValuesIn(AllBackends()), NameOf);

using FourLines = std::array<uint64_t, 32>;
constexpr uint64_t kForEver = 1'000'000'000;

Task<Done> FenceAll(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  co_return Done{};
}

// ---- fencing

// Changes everything it can until it is stopped, in trips that it waits for and trips that it does not.
struct VictimLog {
  std::vector<ErrorCode> errors;  // of the first failed trip, and of some that follow
};
Task<Done> ChangeUntilFenced(Client& client, VictimLog& log) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= kForEver && log.errors.size() < 3; ++i) {
    FourLines lines;
    lines.fill(i);
    const uint16_t node = i % 2;
    op.Detach(Order::kInOrder, Faa(Line(10, node), 1), WriteObject(Line(12, node), lines));
    const auto changed =
        co_await op
            .InOrder(WriteObject(Line(0, node), lines), Faa(Line(6, node), 1), Cas(Line(7, node), i - 1, i))
            .Outcome();
    if (!changed.ok()) log.errors.push_back(changed.error().code());
  }
  co_return Done{};
}

// Another operation of the same client, which changes nothing: so it can always be told so.
Task<Done> ReadUntilFenced(Client& client, VictimLog& log) {
  Op op(client, OpKind::kSearch);
  for (uint64_t i = 1; i <= kForEver && log.errors.size() < 3; ++i) {
    const auto read =
        co_await op.Together(Read<FourLines>(Line(0, 0)), Read<FourLines>(Line(0, 1))).Outcome();
    if (!read.ok()) log.errors.push_back(read.error().code());
  }
  co_return Done{};
}

// Fences it after a while, notes what the regions hold, and looks again and again.
Task<Done> FenceAndWatch(Client& client, ClientId victim, uint64_t patience) {
  Op op(client, OpKind::kMaintenance);
  using Region = std::array<uint64_t, 128>;
  for (uint64_t i = 0; i < patience; ++i) co_await op.InOrder(Read<uint64_t>(Line(6)));
  co_await FenceEverywhere(op, victim);
  const auto [first, second] = co_await op.Together(Read<Region>(Line(0, 0)), Read<Region>(Line(0, 1)));
  for (uint64_t i = 0; i < 20; ++i) {
    const auto [again, too] = co_await op.Together(Read<Region>(Line(0, 0)), Read<Region>(Line(0, 1)));
    EXPECT_EQ(again, first);
    EXPECT_EQ(too, second);
  }
  co_return Done{};
}

// Given a client that changes two nodes as fast as it can, and another that fences it. Expect that nothing
// changes any more once the fence has completed, and that the victim hears of it.
const Cite kFence("fabric/25", "no verb of the victim takes effect on that node");
const Cite kFenced(
    "fabric/26",
    "`kFenced` and changes nothing, or with `kOutcomeUnknown` if it could have changed anything");
TEST_P(FabricBreaking, NothingOfAFencedClientTakesEffect) {
  InManyWorlds({1024, 1024}, [](World& world) {
    const auto victim = world.Connect();
    const auto fencer = world.Connect();
    VictimLog log;
    VictimLog reads;
    const uint64_t patience = Number(fencer->id()) % 8 + Rounds() / 10;
    world.PlayWell(
        std::array{Part{victim.get(), [&](Client& c) { return ChangeUntilFenced(c, log); }},
                   Part{victim.get(), [&](Client& c) { return ReadUntilFenced(c, reads); }},
                   Part{fencer.get(), [&](Client& c) { return FenceAndWatch(c, victim->id(), patience); }}});
    ASSERT_EQ(log.errors.size(), 3u);
    EXPECT_TRUE(log.errors[0] == ErrorCode::kFenced || log.errors[0] == ErrorCode::kOutcomeUnknown);
    EXPECT_EQ(log.errors[1], ErrorCode::kFenced);
    EXPECT_EQ(log.errors[2], ErrorCode::kFenced);
    EXPECT_EQ(reads.errors, std::vector<ErrorCode>(3, ErrorCode::kFenced));
  });
}

Task<Done> AddOne(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Faa(at, 1));
  co_return Done{};
}
Task<Done> ReadOnce(Client& client, FarAddr at) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read<uint64_t>(at));
  co_return Done{};
}

// Given a client that was fenced while it did nothing. Expect `kFenced` for READs and changes, and no change;
// that it can be fenced again, and once more when it is gone; and that its owner connects as a new client,
// which works.
const Cite kFencedIdle("fabric/26", "every trip posted after such a failure fails with `kFenced`");
const Cite kFenceAgain("fabric/27", "A FENCE of a client that is gone, or was fenced before, succeeds");
const Cite kReconnect("fabric/29", "connects anew as another client, and that one works");
TEST_P(FabricBreaking, AFencedClientIsRefusedAndReconnects) {
  InManyWorlds({1024, 1024}, [](World& world) {
    auto victim = world.Connect();
    const ClientId old_id = victim->id();
    const auto fencer = world.Connect();
    const Part fence{fencer.get(), [old_id](Client& c) { return FenceAll(c, old_id); }};
    world.PlayWell(std::array{fence});

    for (const uint16_t node : {0, 1, 0}) {
      const auto results =
          world.Play(std::array{Part{victim.get(), [node](Client& c) { return ReadOnce(c, Line(0, node)); }},
                                Part{victim.get(), [node](Client& c) { return AddOne(c, Line(0, node)); }}});
      for (const auto& result : results) {
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().code(), ErrorCode::kFenced);
      }
    }
    EXPECT_EQ(ReadWord(*fencer, Line(0, 0)), 0u);
    EXPECT_EQ(ReadWord(*fencer, Line(0, 1)), 0u);

    world.PlayWell(std::array{fence});
    victim.reset();
    world.PlayWell(std::array{fence});

    victim = world.Connect();
    EXPECT_NE(victim->id(), old_id);
    world.PlayWell(std::array{Part{victim.get(), [](Client& c) { return AddOne(c, Line(0)); }}});
    EXPECT_EQ(ReadWord(*fencer, Line(0)), 1u);
  });
}

// Given two clients that fence each other, again and again. Expect that both trips end, and that at most the
// winner still works.
const Cite kMutual("fabric/28", "do not wait for each other: both trips end");
TEST_P(FabricBreaking, ClientsMayFenceEachOther) {
  InManyWorlds({1024, 1024}, [](World& world) {
    for (uint64_t i = 0; i < 1 + Rounds() / 200; ++i) {
      const std::array clients = {world.Connect(), world.Connect()};
      std::vector<Part> fences;
      std::vector<Part> adds;
      for (size_t one : {0, 1}) {
        const ClientId other = clients[1 - one]->id();
        fences.push_back({clients[one].get(), [other](Client& c) { return FenceAll(c, other); }});
        adds.push_back({clients[one].get(), [](Client& c) { return AddOne(c, Line(0)); }});
      }
      const auto fenced = world.Play(fences);
      for (const auto& result : fenced) {
        ASSERT_TRUE(result.ok() || result.error().code() == ErrorCode::kFenced);
      }
      const auto added = world.Play(adds);
      ASSERT_FALSE(added[0].ok() && added[1].ok());
      for (size_t one : {0, 1}) {
        // A client that succeeded in fencing the other has really done so.
        ASSERT_FALSE(fenced[one].ok() && added[1 - one].ok());
      }
    }
  });
}

// Given clients that come and go, and are fenced. Expect that no id comes back, and that none is 0.
const Cite kIds("fabric/29", "Ids of clients are not 0 and are never used again");
TEST_P(FabricBreaking, IdsAreNeverUsedAgain) {
  InManyWorlds({1024}, [](World& world) {
    std::set<ClientId> seen = {ClientId::kNone};
    const auto stays = world.Connect();
    EXPECT_TRUE(seen.insert(stays->id()).second);
    for (int i = 0; i < 50; ++i) {
      const auto comes = world.Connect();
      EXPECT_TRUE(seen.insert(comes->id()).second);
      if (i % 5 == 0) {
        const ClientId id = comes->id();
        world.PlayWell(std::array{Part{stays.get(), [id](Client& c) { return FenceAll(c, id); }}});
      }
    }
  });
}

// ---- lost completions

// Verb 0 is a FAA and verb 1 a READ, in one trip or each in its own.
Task<Done> AddAndRead(Client& client, std::array<std::optional<ErrorCode>, 4>& errors) {
  Op op(client, OpKind::kUpdate);
  const auto added = co_await op.InOrder(Faa(Line(0), 1)).Outcome();
  if (!added.ok()) errors[0] = added.error().code();
  const auto read = co_await op.InOrder(Read<uint64_t>(Line(0))).Outcome();
  if (!read.ok()) errors[1] = read.error().code();
  const auto again = co_await op.InOrder(Faa(Line(1), 1)).Outcome();
  if (!again.ok()) errors[2] = again.error().code();
  op.Detach(Order::kInOrder, Faa(Line(1), 1));
  const auto last = co_await op.InOrder(Read<uint64_t>(Line(0))).Outcome();
  if (!last.ok()) errors[3] = last.error().code();
  co_return Done{};
}

// Given a trip whose completion is lost: one that changes something, or one that only reads. Expect the error
// that says so, and that the client is broken for good while others are not.
const Cite kLost("fabric/23", "fails with `kOutcomeUnknown` if it could have changed anything");
const Cite kBroken("fabric/24", "every later trip fails and none of its verbs takes effect");
TEST_P(FabricBreaking, ALostCompletionBreaksTheClient) {
  if (!GetParam().can_lose) GTEST_SKIP() << "completions are not lost on " << GetParam().name;
  for (uint64_t seed = 1; seed <= Worlds(); ++seed) {
    for (uint64_t lost : {0, 1}) {
      WorldOptions options;
      options.seed = seed;
      options.lose_completion_of_verb = lost;
      const auto world = GetParam().open(options);
      const auto client = world->Connect();
      const auto other = world->Connect();
      std::array<std::optional<ErrorCode>, 4> errors;
      world->PlayWell(std::array{Part{client.get(), [&](Client& c) { return AddAndRead(c, errors); }}});
      if (lost == 0) {
        EXPECT_EQ(errors[0], ErrorCode::kOutcomeUnknown);
      } else {
        EXPECT_EQ(errors[0], std::nullopt);
      }
      EXPECT_EQ(errors[1], ErrorCode::kUnavailable);
      EXPECT_EQ(errors[2], ErrorCode::kUnavailable);
      EXPECT_EQ(errors[3], ErrorCode::kUnavailable);
      while (client->Poll()) continue;
      EXPECT_EQ(ReadWord(*other, Line(1)), 0u);
    }
  }
}

// ---- restarts

// Given a node that restarts while clients use it. Expect that their trips end, that none of them is served
// again, that nothing of them lands after the restart, and that a new client is served.
const Cite kRestart("fabric/30", "a client that was connected before a restart is refused ever after");
TEST_P(FabricBreaking, ARestartedNodeRefusesOldClients) {
  if (!GetParam().can_restart) GTEST_SKIP() << "nodes do not restart on " << GetParam().name;
  InManyWorlds({1024, 1024}, [](World& world) {
    const auto old = world.Connect();
    const uint64_t five = 5;
    world.PlayWell(std::array{Part{old.get(), [](Client& c) { return AddOne(c, Line(0)); }}});
    {
      Op op(*old, OpKind::kUpdate);
      op.Detach(Order::kInOrder, WriteObject(Line(1), five));
    }
    world.Restart(NodeId{0});
    const auto fresh = world.Connect();
    const uint64_t landed = ReadWord(*fresh, Line(1));
    EXPECT_TRUE(landed == 0 || landed == five);
    for (int i = 0; i < 3; ++i) {
      const auto results =
          world.Play(std::array{Part{old.get(), [](Client& c) { return AddOne(c, Line(0)); }},
                                Part{old.get(), [](Client& c) { return ReadOnce(c, Line(0)); }}});
      for (const auto& result : results) {
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable);
      }
    }
    world.PlayWell(std::array{Part{fresh.get(), [](Client& c) { return AddOne(c, Line(0)); }}});
    EXPECT_EQ(ReadWord(*fresh, Line(0)), 2u);
    EXPECT_EQ(ReadWord(*fresh, Line(1)), landed);
  });
}

// ---- lines that are held

// A client that was stopped holds a line; it lets go of it when a thread that waits is about to give up.
class LineHolder final : public Clock {
 public:
  explicit LineHolder(memory::Sequence& sequence) : sequence_(sequence) { sequence_.fetch_or(1); }
  Nanos Now() const override {
    if (++looks_ == 2) sequence_.fetch_and(~memory::kHolderMask);
    return looks_ * memory::LinePatience::kLongest;
  }

 private:
  memory::Sequence& sequence_;
  mutable int looks_ = 0;
};

// Given a handler that loads a word, stores it elsewhere and then tells of it by another word, and a line of
// these words that is held for too long. Expect that the client hears that the outcome is unknown, that
// nothing is visible of what the handler stores behind that, and that the next handler does its work.
const Cite kGivesUp("fabric/46",
                    "nothing that it stores from then on becomes visible, and its Call ends with "
                    "`kOutcomeUnknown`");
TEST(FabricBreakingLines, AHandlerThatGivesUpStoresNothingMore) {
  for (uint64_t held = 0; held < 3; ++held) {
    const memory::Region region = *memory::Region::Anonymous(4096);
    const auto stripes = std::make_unique<memory::StripeTable>();
    const LineHolder holder(stripes->sequences[held]);
    memory::ServedNode node(region.bytes(), *stripes, {1, 2}, &holder);
    constexpr uint64_t kRecord = 7;
    node.memory().WriteUnreachable(0, std::as_bytes(std::span(&kRecord, 1)));
    node.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
      memory.Store(kLineBytes, memory.Load(0));
      memory.Store(2 * kLineBytes, 1);
      return std::string();
    });
    const Result<std::string> called = node.Call(CallId(1, 1), ClientId{1}, "");
    ASSERT_FALSE(called.ok());
    EXPECT_EQ(called.error().code(), ErrorCode::kOutcomeUnknown);
    EXPECT_EQ(node.memory().Load(kLineBytes), held == 2 ? kRecord : 0);
    EXPECT_EQ(node.memory().Load(2 * kLineBytes), 0u);
    EXPECT_TRUE(node.Call(CallId(1, 1), ClientId{1}, "").ok());
    EXPECT_EQ(node.memory().Load(kLineBytes), kRecord);
    EXPECT_EQ(node.memory().Load(2 * kLineBytes), 1u);
  }
}

}  // namespace
}  // namespace farside::fabric::conformance
