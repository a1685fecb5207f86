#include "tests/engines/kit/growth_scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/engines/kit/growing_table.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::index::growing {
namespace {

using fabric::FarAddr;
using fabric::sim::FaultKind;

constexpr int kMostRounds = 60;

void Expect(TableWorld& world, bool holds, std::string what) {
  if (!holds) world.Complain(std::move(what));
}

void ExpectState(TableWorld& world, const Member& member, StateWord expected) {
  const uint64_t word = member.state().word();
  Expect(world, word == expected.word(), fmt::format("the state is {:#x}, not {:#x}", word, expected.word()));
}

// What was announced counts, as soon as all clients have published that they know of it.
void Activate(const std::vector<Member*>& members) {
  const uint32_t version = members[0]->state().version();
  for (int round = 0; round < kMostRounds && members[0]->state().version() == version; ++round) {
    for (Member* member : members) {
      member->Now(member->Maintain());
      member->Now(member->Look());
    }
    if (round >= 10) members[0]->Now(members[0]->Pause(std::chrono::milliseconds(1)));
  }
}

}  // namespace

// ---- resizes -----------------------------------------------------------------------------------------

std::string FullTableGrows() {
  TableWorld world;
  Member member(world);
  for (int i = 0; i < 15; ++i) member.Now(member.Put("k", "v"));  // of the 16 that it has room for
  Expect(world, member.part().records() == 15, "the records of this client are not known to it");
  ExpectState(world, member, StateWord::Steady(1));
  member.Now(member.Put("k", "v"));
  member.Now(member.Sync());
  member.Now(member.Look());
  ExpectState(world, member, StateWord::Announced(1, 1));
  Expect(world, member.part().records() == 16, "the records that were reported are not known");
  Expect(world, member.part().times_grown() == 0, "what is announced counts already");
  Activate({&member});
  ExpectState(world, member, StateWord::Steady(2));
  Expect(world, member.part().times_grown() == 1, "the engine was not told that the table has grown");
  member.Audit();
  return world.problem;
}

std::string GrowthWaitsForOperationsInFlight() {
  TableWorld world;
  Member growing(world);
  Member other(world);
  other.Now(other.Look());
  {
    const pool::PoolClient::Pin pin = other.pool().Begin();
    growing.Now(growing.RequestAndLook());
    ExpectState(world, growing, StateWord::Announced(1, 1));
    for (int round = 0; round < 20; ++round) {
      other.Now(other.Sync());
      growing.Now(growing.Maintain());
      growing.Now(growing.Look());
    }
    if (growing.state().phase() != Phase::kAnnounced)
      return "the table has grown under an operation that does not know of the announcement";
  }
  Activate({&growing, &other});
  ExpectState(world, growing, StateWord::Steady(2));
  return world.problem;
}

std::string DirectoryIsReadWhileAResizeIsAnnounced(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, false)};
    options.chaos.ordered_reads = true;
    TableWorld world(options);
    Member growing(world);
    Member reader(world);
    Task<Done> announce = growing.RequestAndLook();
    Task<Done> read = reader.Look();
    announce.Start();
    world.Drive([&] { return announce.done() || growing.state().phase() == Phase::kPreparing; });
    for (uint64_t step = 0; step < seed % 64; ++step) world.fabric.Step();
    read.Start();
    world.Drive([&] { return announce.done() && read.done(); });
    const Result<Done> announced = announce.TakeResult();
    const Result<Done> looked = read.TakeResult();
    if (!announced.ok()) return fmt::format("seed {}: {}", seed, announced.error().ToString());
    if (!looked.ok()) return fmt::format("seed {}: {}", seed, looked.error().ToString());
    ExpectState(world, growing, StateWord::Announced(1, 1));
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

std::string PreparerDies() {
  return AtEveryVerb([](FaultKind kind, uint64_t verb, bool& more) {
    TableWorld world;
    Member follower(world);
    follower.Now(follower.Look());
    {
      Member dying(world);
      more = dying.RunAndDieAt(verb, kind, dying.RequestAndLook());
      if (!dying.crashed()) world.fabric.Crash(dying.client().id());
    }
    for (int round = 0; round < kMostRounds && follower.state().phase() != Phase::kAnnounced; ++round) {
      follower.Now(follower.RequestAndLook());
      follower.Now(follower.Pause(std::chrono::milliseconds(1)));
    }
    ExpectState(world, follower, StateWord::Announced(1, 1));
    Activate({&follower});
    ExpectState(world, follower, StateWord::Steady(2));
    follower.Audit();
    return world.problem;
  });
}

// ---- operations that find no place -------------------------------------------------------------------

std::string RequestedGrowth_HappensWhateverTheLoad() {
  TableWorld world;
  Member member(world);
  member.Now(member.Look());
  Expect(world, !member.part().IsBehind(), "an empty table has something to do");
  Expect(world, member.part().RequestGrowth(), "a table that may grow refuses to");
  Expect(world, member.part().IsBehind(), "the next operation would not see to it");
  member.Now(member.Look());
  ExpectState(world, member, StateWord::Announced(1, 1));
  Expect(world, member.part().RequestGrowth(), "a table that grows refuses to");
  Expect(world, !member.part().IsBehind(), "a resize is begun while one is under way");
  Activate({&member});
  ExpectState(world, member, StateWord::Steady(2));
  Expect(world, !member.part().IsBehind(), "the request is not forgotten when the table has grown");
  Expect(world, member.part().failed_growths() == 0, "a resize is counted as failed");
  member.Audit();
  return world.problem;
}

std::string RequestedGrowth_OutlivesASync() {
  TableWorld world;
  Member member(world);
  member.Now(member.Look());
  member.part().RequestGrowth();
  member.Now(member.Sync());
  member.Now(member.Look());
  ExpectState(world, member, StateWord::Announced(1, 1));
  return world.problem;
}

std::string RequestedGrowth_EndsAtTheMostVersion() {
  TableWorld world;
  Member member(world, {{"most_version", "2"}});
  member.Now(member.RequestAndLook());
  Activate({&member});
  ExpectState(world, member, StateWord::Steady(2));
  Expect(world, !member.part().RequestGrowth(), "a table grows beyond its most version");
  Expect(world, !member.part().IsBehind(), "there is something to do");
  return world.problem;
}

std::string RequestedByTwo_TheTableGrowsOnce() {
  TableWorld world;
  Member first(world);
  Member second(world);
  for (Member* member : {&first, &second}) {
    member->Now(member->Look());
    member->part().RequestGrowth();
  }
  first.Now(first.Look());
  ExpectState(world, first, StateWord::Announced(1, 1));
  second.Now(second.Look());
  Expect(world, second.part().directory().announced,
         "a client that came second does not know what it waits for");
  ExpectState(world, first, StateWord::Announced(1, 1));
  Activate({&first, &second});
  for (Member* member : {&first, &second}) member->Now(member->Look());
  ExpectState(world, first, StateWord::Steady(2));
  return world.problem;
}

std::string RequestedWithoutMemory_IsCountedAndMayBeTriedAgain() {
  TableWorld world({.region_bytes = 1 << 20});
  Member member(world);
  member.Now(member.Look());
  std::vector<FarAddr> taken;
  for (uint64_t bytes = Part::BytesOf(1); bytes >= 64;) {
    const Result<FarAddr> block = member.Try(member.Allocate(bytes));
    if (block.ok() && bytes == Part::BytesOf(1)) taken.push_back(*block);
    if (!block.ok()) bytes /= 2;
  }
  Expect(world, member.part().RequestGrowth(), "a table that may grow refuses to");
  member.Now(member.Look());
  ExpectState(world, member, StateWord::Steady(1));
  Expect(world, member.part().failed_growths() == 1, "a resize that found no memory is not counted");
  Expect(world, !member.part().IsBehind(), "a resize that failed is tried again without a request");
  if (taken.empty()) return "there was no memory to begin with";
  member.pool().allocator(fabric::NodeId{0}).FreeUnpublished(taken.back(), Part::BytesOf(1));
  Expect(world, member.part().RequestGrowth(), "a table that has failed to grow may not try again");
  member.Now(member.Look());
  ExpectState(world, member, StateWord::Announced(1, 1));
  Expect(world, member.part().failed_growths() == 1, "a resize is counted as failed");
  return world.problem;
}

namespace {

class Reader final : public WrappedClient {
 public:
  using WrappedClient::WrappedClient;
  bool read_only() const override { return true; }
};

// An operation of a client that may change nothing, on a table that is open elsewhere.
Task<Done> ReadAndRequest(TableWorld& world, fabric::Client& client, FarAddr root) {
  fabric::Op op(client, fabric::OpKind::kMaintenance);
  const auto find = [](std::string_view, const OptionMap& options) { return MakeGrowingEngine(options); };
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, client, find, {});
  const auto part = std::make_shared<Part>(Options{}, session->pool(), root);
  co_await part->CatchUp(op);
  Expect(world, part->directory().version == 1, "a reader does not find the directory");
  Expect(world, !part->RequestGrowth(), "a client that may change nothing asks for growth");
  Expect(world, !part->IsBehind(), "a reader has something to do");
  co_await session->Leave(op);
  co_return Done{};
}

}  // namespace

std::string RequestedByAReader_IsRefused() {
  TableWorld world;
  Member member(world);
  Reader reader(std::move(*world.fabric.Connect()));
  member.Now(ReadAndRequest(world, reader, member.roots()[0]));
  ExpectState(world, member, StateWord::Steady(1));
  return world.problem;
}

}  // namespace farside::index::growing
