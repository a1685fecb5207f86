#include "tests/pool/members/sync_listener_run.h"

#include <cstring>
#include <list>
#include <memory>

namespace farside::pool {

namespace {

struct SyncListenerScenario {
  PoolRun& run;
  uint64_t in_force = 0;  // the word that every operation in flight knows
  uint64_t operations = 0;

  // The line stands where the catalog would be.
  uint64_t line() const { return run.geometry().catalog(); }
};

class WordListener final : public SyncListener {
 public:
  explicit WordListener(uint64_t line) : line_(line) {}
  void MissedSync() override {}
  SyncRequest BeforeSync(bool may_add) override {
    return SyncRequest{.add_at = may_add ? line_ + 8 : 0, .delta = 1, .read_at = line_};
  }
  void AfterSync(std::span<const std::byte, kLine> line) override {
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
Task<Done> ActOnWord(fabric::Op& op, PoolClient& client, const WordListener& listener,
                     SyncListenerScenario& scenario) {
  const PoolClient::Pin pin = client.Begin();
  const uint64_t known = listener.known();
  for (int i = 0; i < 4; ++i) {
    if (known < scenario.in_force) scenario.run.Problem("an operation acts on a word that is out of force");
    co_await client.Maintain(op);  // its client goes on meanwhile
  }
  ++scenario.operations;
  co_return Done{};
}

Task<Done> WorkWithListener(fabric::Client& fabric_client, SyncListenerScenario& scenario, bool announces,
                            int& left) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  const fabric::NodeId node{0};
  ClientOptions options;
  options.lease.lease = kTestLease;
  const std::vector<Geometry> geometries = {scenario.run.geometry()};
  std::unique_ptr<PoolClient> client = co_await PoolClient::Join(op, fabric_client, geometries, options);
  const auto listener = std::make_shared<WordListener>(scenario.line());
  client->AddSyncListener(node, listener);
  co_await client->Sync(op, /*raise=*/false);
  while (left > 0) {
    --left;
    if (announces && left % 4 == 0) {
      const uint64_t word = scenario.in_force;
      co_await op.InOrder(fabric::Cas(fabric::FarAddr(node, scenario.line()), word, word + 1));
      bool over = false;
      client->AfterGrace(node, [&scenario, &over, word] {
        scenario.in_force = word + 1;
        over = true;
      });
      while (!over) co_await client->Maintain(op);
    } else {
      co_await ActOnWord(op, *client, *listener, scenario);
    }
    co_await client->Maintain(op);
  }
  client->RemoveSyncListener(node, listener.get());
  co_await client->Leave(op);
  co_return Done{};
}

}  // namespace

EpochOutcome RunSyncListeners(fabric::sim::SimOptions options, bool ordered_reads) {
  options.chaos.ordered_reads = ordered_reads;
  PoolRun run(std::move(options));
  SyncListenerScenario scenario{run};
  std::list<int> left(3, 24);
  bool announces = true;
  for (int& mine : left) {
    run.StartClient([&scenario, &mine, announces](fabric::Client& client) {
      return WorkWithListener(client, scenario, announces, mine);
    });
    announces = false;
  }
  run.Drive();
  return EpochOutcome{run.problem(), scenario.operations};
}

}  // namespace farside::pool
