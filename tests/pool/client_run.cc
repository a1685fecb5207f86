#include "tests/pool/client_run.h"

#include <list>

namespace farside::pool {

namespace {

// The root stands where the catalog would be.
constexpr uint64_t kPinnedBlockBytes = kLine;

// Which block counts, and the id that stands in it; 0: none yet.
struct PinnedRoot {
  uint64_t word = 0;
  uint64_t offset() const { return (word & 0xffffff) * kLine; }
  uint64_t id() const { return word >> 24; }
  static PinnedRoot Of(uint64_t offset, uint64_t id) { return PinnedRoot{id << 24 | offset / kLine}; }
};

struct PinnedScenario {
  PoolRun& run;
  uint64_t next_id = 1;
  uint64_t follows = 0;
};

Task<Done> ReplacePinned(fabric::Op& op, PoolClient& client, PinnedScenario& scenario) {
  const fabric::NodeId node{0};
  const fabric::FarAddr root(node, scenario.run.geometry().catalog());
  const PoolClient::Pin pin = client.Begin();
  const uint64_t id = scenario.next_id++;
  const fabric::FarAddr block = co_await client.allocator(node).Allocate(op, kPinnedBlockBytes);
  co_await op.InOrder(fabric::WriteObject(block, id));
  PinnedRoot old{co_await op.InOrder(fabric::Read<uint64_t>(root))};
  const PinnedRoot mine = PinnedRoot::Of(block.offset, id);
  const uint64_t found = co_await op.InOrder(fabric::Cas(root, old.word, mine.word));
  if (found != old.word) {
    client.allocator(node).FreeUnpublished(block, kPinnedBlockBytes);
  } else if (old.word != 0) {
    client.allocator(node).Retire(fabric::FarAddr(node, old.offset()), kPinnedBlockBytes, pin.epoch(node));
  }
  co_return Done{};
}

Task<Done> FollowPinned(fabric::Op& op, PoolClient& client, PinnedScenario& scenario) {
  const fabric::NodeId node{0};
  const PoolClient::Pin pin = client.Begin();
  const PinnedRoot root{
      co_await op.InOrder(fabric::Read<uint64_t>(fabric::FarAddr(node, scenario.run.geometry().catalog())))};
  if (root.word == 0) co_return Done{};
  for (int i = 0; i < 3; ++i) {
    co_await client.Maintain(op);
    co_await op.Pause(Nanos(2000));
  }
  const uint64_t id = co_await op.InOrder(fabric::Read<uint64_t>(fabric::FarAddr(node, root.offset())));
  if (id != root.id()) scenario.run.Problem("a pinned reader was pointed to a block that was used again");
  ++scenario.follows;
  co_return Done{};
}

Task<Done> WorkPinned(fabric::Client& fabric_client, PinnedScenario& scenario, bool writes, Presence presence,
                      int& left) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  ClientOptions options;
  options.lease.lease = kTestLease;
  const std::vector<Geometry> geometries = {scenario.run.geometry()};
  std::unique_ptr<PoolClient> client = co_await PoolClient::Join(op, fabric_client, geometries, options);
  while (left > 0) {
    --left;
    if (writes) {
      co_await ReplacePinned(op, *client, scenario);
    } else {
      co_await FollowPinned(op, *client, scenario);
    }
    co_await client->Maintain(op);
    if (presence == Presence::kComesAndGoes && left % 3 == 0) {
      co_await client->GoOffline(op);
      if (left % 2 == 0) co_await client->KeepUp(op);
      co_await op.Pause(Nanos(left * 1000));
      co_await client->ComeOnline(op);
    }
  }
  co_await client->Leave(op);
  co_return Done{};
}

}  // namespace

EpochOutcome RunPinned(fabric::sim::SimOptions options, Presence presence) {
  PoolRun run(std::move(options));
  PinnedScenario scenario{run};
  std::list<int> left(4, 12);
  bool writes = true;
  for (int& mine : left) {
    run.StartClient([&scenario, &mine, writes, presence](fabric::Client& client) {
      return WorkPinned(client, scenario, writes, presence, mine);
    });
    writes = !writes;
  }
  run.Drive();
  return EpochOutcome{run.problem(), scenario.follows};
}

}  // namespace farside::pool
