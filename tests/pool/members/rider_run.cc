#include "tests/pool/members/rider_run.h"

#include <cstring>
#include <list>
#include <memory>

namespace farside::pool {

namespace {

struct RiderScene {
  PoolRun& run;
  uint64_t in_force = 0;  // the word that every operation in flight knows
  uint64_t operations = 0;

  // The line stands where the catalog would be.
  uint64_t line() const { return run.geometry().catalog(); }
};

class WordRider final : public SyncRider {
 public:
  explicit WordRider(uint64_t line) : line_(line) {}
  void Missed() override {}
  Ride Board() override { return Ride{.add_at = line_ + 8, .delta = 1, .read_at = line_}; }
  void Arrive(std::span<const std::byte, kLine> line) override {
    uint64_t word = 0;
    std::memcpy(&word, line.data(), sizeof word);
    known_ = std::max(known_, word);
  }
  uint64_t known() const { return known_; }

 private:
  const uint64_t line_;
  uint64_t known_ = 0;
};

// What it knows when it begins is what it acts on, until it ends.
Task<Done> ActOnWord(fabric::Op& op, PoolClient& client, const WordRider& rider, RiderScene& scene) {
  const PoolClient::Pin pin = client.Begin();
  const uint64_t known = rider.known();
  for (int i = 0; i < 4; ++i) {
    if (known < scene.in_force) scene.run.Problem("an operation acts on a word that is out of force");
    co_await client.Maintain(op);  // its client goes on meanwhile
  }
  ++scene.operations;
  co_return Done{};
}

Task<Done> WorkWithRider(fabric::Client& fabric_client, RiderScene& scene, bool announces, int& left) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  const fabric::NodeId node{0};
  ClientOptions options;
  options.lease.lease = kTestLease;
  const std::vector<Geometry> geometries = {scene.run.geometry()};
  std::unique_ptr<PoolClient> client = co_await PoolClient::Join(op, fabric_client, geometries, options);
  const auto rider = std::make_shared<WordRider>(scene.line());
  client->AddRider(node, rider);
  co_await client->Sync(op, /*raise=*/false);
  while (left > 0) {
    --left;
    if (announces && left % 4 == 0) {
      const uint64_t word = scene.in_force;
      co_await op.InOrder(fabric::Cas(fabric::FarAddr(node, scene.line()), word, word + 1));
      bool over = false;
      client->AfterGrace(node, [&scene, &over, word] {
        scene.in_force = word + 1;
        over = true;
      });
      while (!over) co_await client->Maintain(op);
    } else {
      co_await ActOnWord(op, *client, *rider, scene);
    }
    co_await client->Maintain(op);
  }
  client->RemoveRider(node, rider.get());
  co_await client->Leave(op);
  co_return Done{};
}

}  // namespace

EpochOutcome RunRiders(fabric::sim::SimOptions options) {
  options.chaos.ordered_reads = true;  // what the contract promises of READs in one trip
  PoolRun run(std::move(options));
  RiderScene scene{run};
  std::list<int> left(3, 24);
  bool announces = true;
  for (int& mine : left) {
    run.StartClient([&scene, &mine, announces](fabric::Client& client) {
      return WorkWithRider(client, scene, announces, mine);
    });
    announces = false;
  }
  run.Drive();
  return EpochOutcome{run.problem(), scene.operations};
}

}  // namespace farside::pool
