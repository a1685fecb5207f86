// Fencing and other things that several threads do to one embedded fabric.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/embedded/embedded.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "tests/support/rendezvous.h"

namespace farside::fabric::embedded {
namespace {

constexpr uint64_t kRegionBytes = 16 * 1024;

FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(static_cast<NodeId>(node), offset); }

std::unique_ptr<EmbeddedFabric> OpenFabric(std::vector<uint64_t> region_bytes = {kRegionBytes}) {
  return std::move(*EmbeddedFabric::Open(Options{.region_bytes = std::move(region_bytes)}));
}
std::unique_ptr<Client> ConnectTo(EmbeddedFabric& fabric) { return std::move(*fabric.Connect()); }

Task<Done> Fence(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  co_return Done{};
}
Task<uint64_t> ReadWord(Client& client, FarAddr at) {
  Op op(client, OpKind::kSearch);
  const uint64_t word = co_await op.InOrder(Read<uint64_t>(at));
  co_return word;
}
Task<uint64_t> AddToWord(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  const uint64_t old = co_await op.InOrder(Faa(at, 1));
  co_return old;
}

std::vector<uint64_t> Contents(EmbeddedFabric& fabric, uint16_t node = 0) {
  std::vector<uint64_t> words;
  NodeMemory& memory = fabric.memory(static_cast<NodeId>(node));
  for (uint64_t offset = 0; offset < memory.bytes(); offset += 8) words.push_back(memory.Load(offset));
  return words;
}

// Given a client that was fenced. When it goes on, with trips of any kind. Expect kFenced with the advice to
// connect again, no effect, and no harm to a new client.
TEST(EmbeddedFence, FencedClient_IsRefusedForGood) {
  const auto fabric = OpenFabric();
  const auto victim = ConnectTo(*fabric);
  const auto fencer = ConnectTo(*fabric);
  ASSERT_TRUE(fabric::Run(*victim, AddToWord(*victim, At(0))).ok());
  ASSERT_TRUE(fabric::Run(*fencer, Fence(*fencer, victim->id())).ok());
  for (const size_t concurrency : {1, 4}) {
    victim->set_concurrency(concurrency);
    for (int i = 0; i < 2; ++i) {
      const Result<uint64_t> refused = fabric::Run(*victim, AddToWord(*victim, At(0)));
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code(), ErrorCode::kFenced);
      EXPECT_NE(refused.error().message().find("connect again"), std::string::npos)
          << refused.error().message();
      EXPECT_EQ(fabric::Run(*victim, ReadWord(*victim, At(0))).error().code(), ErrorCode::kFenced);
      EXPECT_EQ(fabric::Run(*victim, Fence(*victim, fencer->id())).error().code(), ErrorCode::kFenced);
    }
    Op op(*victim, OpKind::kUpdate);
    op.Detach(Order::kInOrder, Faa(At(0), 1));
  }
  const auto reborn = ConnectTo(*fabric);
  EXPECT_NE(reborn->id(), victim->id());
  EXPECT_EQ(*fabric::Run(*reborn, AddToWord(*reborn, At(0))), 1u);
  EXPECT_EQ(*fabric::Run(*fencer, AddToWord(*fencer, At(0))), 2u);
}

// Given a trip that the victim has in flight. When the victim is fenced before it polls. Expect that the trip
// fails and has no effect.
TEST(EmbeddedFence, TripInFlight_TakesNoEffectAfterwards) {
  const auto fabric = OpenFabric();
  const auto victim = ConnectTo(*fabric);
  const auto fencer = ConnectTo(*fabric);
  victim->set_concurrency(2);
  Task<uint64_t> task = AddToWord(*victim, At(0));
  task.Start();
  ASSERT_TRUE(fabric::Run(*fencer, Fence(*fencer, victim->id())).ok());
  victim->Poll();
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.TakeResult().error().code(), ErrorCode::kFenced);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 0u);
}

// Given clients that never were, that have departed, or that are fenced already. When they are fenced. Expect
// success.
TEST(EmbeddedFence, OfAClientThatIsGone_Succeeds) {
  const auto fabric = OpenFabric({64, 64, 64});
  const auto fencer = ConnectTo(*fabric);
  const ClientId departed = ConnectTo(*fabric)->id();
  const auto victim = ConnectTo(*fabric);
  for (const ClientId id :
       {ClientId::kNone, departed, static_cast<ClientId>(12345), victim->id(), victim->id()}) {
    EXPECT_TRUE(fabric::Run(*fencer, Fence(*fencer, id)).ok()) << Number(id);
  }
}

Task<Done> FenceThenAdd(Client& client, ClientId victim, bool add_before) {
  Op op(client, OpKind::kUpdate);
  if (add_before) {
    co_await op.InOrder(Faa(At(0), 1), FenceVerb(NodeId{0}, victim), Faa(At(8), 1));
  } else {
    co_await op.InOrder(FenceVerb(NodeId{0}, victim), Faa(At(8), 1));
  }
  co_return Done{};
}

// Given a client that fences itself. Expect that the fence succeeds, that what follows it in the same trip
// has no effect, and that the error tells whether something before it had.
TEST(EmbeddedFence, OfItself_CutsTheRestOfTheTripOff) {
  const auto fabric = OpenFabric();
  const auto first = ConnectTo(*fabric);
  EXPECT_TRUE(fabric::Run(*first, Fence(*first, first->id())).ok());
  EXPECT_EQ(fabric::Run(*first, ReadWord(*first, At(0))).error().code(), ErrorCode::kFenced);

  const auto second = ConnectTo(*fabric);
  EXPECT_EQ(fabric::Run(*second, FenceThenAdd(*second, second->id(), false)).error().code(),
            ErrorCode::kFenced);
  const auto third = ConnectTo(*fabric);
  EXPECT_EQ(fabric::Run(*third, FenceThenAdd(*third, third->id(), true)).error().code(),
            ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 1u);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(8), 0u);

  const auto other = ConnectTo(*fabric);
  EXPECT_TRUE(fabric::Run(*other, FenceThenAdd(*other, third->id(), true)).ok());
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(8), 1u);
}

Task<Done> ChangeManyLines(Client& client, uint64_t number) {
  Op op(client, OpKind::kUpdate);
  std::array<uint64_t, 512> payload;
  payload.fill(number);
  co_await op.Together(Write(At(0, 0), std::as_bytes(std::span(payload))), Faa(At(8192, 0), 1),
                       Faa(At(0, 1), 1), Write(At(4096, 1), std::as_bytes(std::span(payload))));
  co_return Done{};
}

// Given a thread that changes many lines of two nodes, without pause. When another thread fences it. Expect
// that from the moment at which the fence has completed the memory never changes again, although the victim
// goes on trying.
TEST(EmbeddedFence, AgainstAThreadThatHammers_StopsItForGood) {
  const auto fabric = OpenFabric({kRegionBytes, kRegionBytes});
  const auto fencer = ConnectTo(*fabric);
  for (int round = 0; round < 30; ++round) {
    std::atomic<uint64_t> victim_id = 0;
    std::atomic<uint64_t> done = 0;
    std::atomic<uint64_t> refused = 0;
    std::atomic<bool> stop = false;
    std::jthread hammer([&] {
      const auto victim = ConnectTo(*fabric);
      victim_id = Number(victim->id());
      for (uint64_t i = 1; !stop; ++i) {
        const Result<Done> result = fabric::Run(*victim, ChangeManyLines(*victim, i));
        ++(result.ok() ? done : refused);
        if (refused > 0) std::this_thread::yield();
      }
    });
    while (done == 0) std::this_thread::yield();
    ASSERT_TRUE(fabric::Run(*fencer, Fence(*fencer, static_cast<ClientId>(victim_id.load()))).ok());
    const std::vector<uint64_t> first = Contents(*fabric, 0);
    const std::vector<uint64_t> second = Contents(*fabric, 1);
    while (refused < 5) std::this_thread::yield();
    EXPECT_EQ(Contents(*fabric, 0), first);
    EXPECT_EQ(Contents(*fabric, 1), second);
    // The last trip was done whole: the lines of both WRITEs hold the same number.
    EXPECT_EQ(std::count(first.begin(), first.begin() + 512, first[0]), 512);
    EXPECT_EQ(std::count(second.begin() + 512, second.begin() + 1024, first[0]), 512);
    stop = true;
  }
}

// Given two clients, each in the middle of a trip, held there by a handler until the other is in the middle
// of its own.
// When each then fences the other. Expect that neither waits for ever, and that both are fenced.
TEST(EmbeddedFence, OfEachOtherInTheMiddleOfTrips_DoesNotDeadlock) {
  const auto fabric = OpenFabric({64, 64});
  std::atomic<int> inside = 0;
  fabric->calls().Set(CallId(1, 1), [&](NodeMemory&, ClientId, std::string_view) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
    return Result<std::string>("");
  });
  const std::array<std::unique_ptr<Client>, 2> clients = {ConnectTo(*fabric), ConnectTo(*fabric)};
  const auto fence_other = [&](uint16_t self) {
    const auto own_node = static_cast<NodeId>(self);  // a node runs one handler at a time
    CallVerb call(own_node, CallId(1, 1), "");
    std::array<Verb, 2> verbs = {call.Lower(), FenceVerb(own_node, clients[1 - self]->id()).Lower()};
    Trip trip;
    trip.verbs = verbs;
    EXPECT_TRUE(clients[self]->Start(trip));
    EXPECT_FALSE(trip.failed());
  };
  {
    const std::jthread first([&] { fence_other(0); });
    const std::jthread second([&] { fence_other(1); });
  }
  for (const auto& client : clients) {
    EXPECT_EQ(fabric::Run(*client, ReadWord(*client, At(0))).error().code(), ErrorCode::kFenced);
  }
}

// Given a gate. When its client enters and changes something at the very moment at which another thread
// closes it. Expect that nothing changes any more once the closing thread has waited for the turn.
TEST(EmbeddedGate, ClosedAtTheMomentOfEntering_KeepsTheClientOutOrWaits) {
  constexpr uint64_t kRounds = 5000;
  std::vector<Gate> gates(kRounds + 1);
  std::vector<std::atomic<uint64_t>> changes(kRounds + 1);
  std::vector<uint64_t> seen(kRounds + 1);
  Rendezvous rendezvous;
  {
    const std::jthread victim([&] {
      for (uint64_t round = 1; round <= kRounds; ++round) {
        rendezvous.Meet(0, round);
        if (gates[round].Enter()) changes[round].store(round, std::memory_order_relaxed);
        gates[round].Leave();
      }
    });
    const std::jthread fencer([&] {
      for (uint64_t round = 1; round <= kRounds; ++round) {
        rendezvous.Meet(1, round);
        gates[round].Close();
        gates[round].AwaitTurn();
        seen[round] = changes[round].load(std::memory_order_relaxed);
      }
    });
  }
  for (uint64_t round = 1; round <= kRounds; ++round)
    ASSERT_EQ(changes[round], seen[round]) << "round " << round;
}

// Given a victim in the middle of a Call that its node has not answered. When it is fenced. Expect that the
// fence waits for the handler: what it does comes before the fence completes.
TEST(EmbeddedFence, WaitsForTheHandlerThatRunsForTheVictim) {
  std::atomic<bool> handler_runs = false;
  std::atomic<bool> fencer_starts = false;
  const auto fabric = OpenFabric();
  fabric->calls().Set(CallId(1, 1), [&](NodeMemory& memory, ClientId, std::string_view) {
    handler_runs = true;
    while (!fencer_starts) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    memory.Store(0, 42);
    return Result<std::string>("done");
  });
  const auto fencer = ConnectTo(*fabric);
  const auto victim = ConnectTo(*fabric);
  std::jthread thread([&] {
    Op op(*victim, OpKind::kMaintenance);
    Trip trip;
    CallVerb call(NodeId{0}, CallId(1, 1), "");
    Verb verb = call.Lower();
    trip.verbs = std::span(&verb, 1);
    EXPECT_TRUE(victim->Start(trip));
    EXPECT_FALSE(trip.failed());
  });
  while (!handler_runs) std::this_thread::yield();
  fencer_starts = true;
  ASSERT_TRUE(fabric::Run(*fencer, Fence(*fencer, victim->id())).ok());
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 42u);
}

// ---- threads

// Given threads that connect, work and depart at the same time. Expect that no id is given twice and no
// increment lost.
TEST(EmbeddedThreads, ConnectWorkAndDepart) {
  constexpr int kThreads = 4;
  constexpr int kClients = 200;
  const auto fabric = OpenFabric();
  std::array<std::vector<uint32_t>, kThreads> ids;
  {
    std::vector<std::jthread> threads;
    for (std::vector<uint32_t>& own : ids) {
      threads.emplace_back([&] {
        for (int i = 0; i < kClients; ++i) {
          const auto client = ConnectTo(*fabric);
          own.push_back(Number(client->id()));
          EXPECT_TRUE(fabric::Run(*client, AddToWord(*client, At(0))).ok());
        }
      });
    }
  }
  std::vector<uint32_t> all;
  for (const std::vector<uint32_t>& own : ids) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), uint64_t{kThreads} * kClients);
}

Task<Done> AddMany(Client& client, int times) {
  Op op(client, OpKind::kUpdate);
  for (int i = 0; i < times; ++i) co_await op.InOrder(Faa(At(0), 1), Faa(At(64), 1));
  co_return Done{};
}

// Given threads that each run many operations at once on a client of their own. Expect that no increment is
// lost.
TEST(EmbeddedThreads, ManyOperationsOnEach_LoseNothing) {
  constexpr int kThreads = 3;
  constexpr int kOperations = 16;
  constexpr int kTimes = 500;
  const auto fabric = OpenFabric();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const auto client = ConnectTo(*fabric);
        std::vector<Task<Done>> tasks;
        for (int task = 0; task < kOperations; ++task) tasks.push_back(AddMany(*client, kTimes));
        EXPECT_TRUE(RunAll<Done>(*client, tasks).ok());
      });
    }
  }
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), uint64_t{kThreads} * kOperations * kTimes);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(64), uint64_t{kThreads} * kOperations * kTimes);
}

Task<Done> CallMany(Client& client, int times) {
  Op op(client, OpKind::kMaintenance);
  for (int i = 0; i < times; ++i) co_await op.Call(NodeId{0}, CallId(1, 1), "");
  co_return Done{};
}

// Given a handler with state of its own, without locks. When threads call it at the same time. Expect that a
// node runs one handler at a time. (ThreadSanitizer watches the state.)
TEST(EmbeddedThreads, HandlersOfANode_RunOneAtATime) {
  constexpr int kThreads = 3;
  constexpr int kTimes = 1000;
  uint64_t calls = 0;
  const auto fabric = OpenFabric();
  fabric->calls().Set(CallId(1, 1), [&](NodeMemory& memory, ClientId, std::string_view) {
    ++calls;
    memory.Store(0, memory.Load(0) + 1);
    return Result<std::string>("");
  });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const auto client = ConnectTo(*fabric);
        EXPECT_TRUE(fabric::Run(*client, CallMany(*client, kTimes)).ok());
      });
    }
  }
  EXPECT_EQ(calls, uint64_t{kThreads} * kTimes);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), uint64_t{kThreads} * kTimes);
}

}  // namespace
}  // namespace farside::fabric::embedded
