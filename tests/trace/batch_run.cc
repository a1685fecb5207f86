#include "tests/trace/batch_run.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "check/workload.h"
#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "index/tables.h"
#include "pool/client.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::trace {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::sim::SimFabric;
using index::Search;

constexpr size_t kClients = 3;
constexpr size_t kKeys = 8;
constexpr int kRounds = 6;
constexpr uint64_t kChunkBytes = 4096;
constexpr uint64_t kChunks = 192;
constexpr char kTable[] = "table";

// One client: joins, opens the table or makes it, changes keys and searches for all of them, and leaves.
class BatchClient {
 public:
  BatchClient(SimFabric& world, index::Engine& engine, uint64_t seed)
      : engine_(engine), random_(seed), client_(std::move(*world.Connect())), task_(Live()) {
    for (size_t i = 0; i < kKeys; ++i)
      keys_.push_back(check::Fitted(fmt::format("key {}", i), engine.traits().fixed_size));
    task_.Start();
  }
  BatchClient(const BatchClient&) = delete;
  BatchClient& operator=(const BatchClient&) = delete;

  bool done() const { return task_.done(); }

 private:
  // Errors end the client. What it posted until then is what counts here.
  Task<Done> Live() {
    Op op(*client_, OpKind::kMaintenance);
    session_ = co_await store::Registration::Join(op, *client_, FindEngine(), pool::ClientOptions());
    table_.emplace(co_await session_->tables().CreateOrOpen(op, kTable, std::string(engine_.name()), {}));
    for (int round = 0; round < kRounds; ++round) {
      co_await ChangeOne(round);
      co_await SearchAll();
      if (session_->pool().MaintenanceDue()) co_await session_->pool().Maintain(op);
    }
    co_await session_->Leave(op);
    op.End(OpKind::kMaintenance, fabric::OpOutcome::kDone);
    co_return Done{};
  }

  index::FindEngine FindEngine() {
    return [engine = &engine_](std::string_view,
                               const index::OptionMap&) -> Result<std::shared_ptr<index::Engine>> {
      return std::shared_ptr<index::Engine>(std::shared_ptr<void>(), engine);
    };
  }

  Task<Done> ChangeOne(int round) {
    const std::string& key = keys_[random_.Below(kKeys)];
    const std::string value =
        check::Fitted(fmt::format("{} of {}", round, Number(client_->id())), engine_.traits().fixed_size);
    if (random_.Chance(1, 4)) {
      Op op(*client_, OpKind::kDelete);
      const Result<bool> deleted = co_await table_->index->Delete(op, key).Outcome();
      if (!deleted.ok() && !GoesOn(deleted.error())) co_return deleted.error();
    } else {
      Op op(*client_, OpKind::kUpdate);
      const Result<index::PutOutcome> put = co_await table_->index->Put(op, key, value).Outcome();
      if (!put.ok() && !GoesOn(put.error())) co_return put.error();
    }
    co_return Done{};
  }

  // As MultiGet of the public API does it: together, then one by one what that has left open.
  Task<Done> SearchAll() {
    std::array<std::string, kKeys> values;
    std::array<Search, kKeys> searches;
    for (size_t i = 0; i < kKeys; ++i) {
      searches[i].key = keys_[i];
      searches[i].value = &values[i];
    }
    if (table_->index->searches_together()) {
      Op op(*client_, OpKind::kSearch);
      const Result<Done> searched = co_await table_->index->SearchTogether(op, searches).Outcome();
      if (!searched.ok() && !GoesOn(searched.error())) co_return searched.error();
    }
    for (const Search& search : searches) {
      if (search.outcome != Search::Outcome::kOpen) continue;
      Op op(*client_, OpKind::kSearch);
      const Result<bool> found = co_await table_->index->Get(op, search.key, *search.value).Outcome();
      if (!found.ok() && !GoesOn(found.error())) co_return found.error();
    }
    co_return Done{};
  }

  // A full table, or one that others have changed too often, ends the operation and not the client.
  static bool GoesOn(const Error& error) {
    return error.code() == ErrorCode::kOutOfMemory || error.code() == ErrorCode::kContended;
  }

  index::Engine& engine_;
  Random random_;
  std::vector<std::string> keys_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<index::OpenTable> table_;
  Task<Done> task_;  // destroyed before what it uses
};

}  // namespace

void RunBatches(index::Engine& engine, uint64_t seed, fabric::sim::VerbDigest& digest) {
  fabric::sim::SimOptions options;
  options.seed = seed;
  options.chaos = fabric::sim::Chaos::ForSeed(seed, false);
  options.region_bytes = {pool::RoundUp(kChunks * kChunkBytes + 4 * engine.empty_bytes(), pool::kPage)};
  options.digest = &digest;
  SimFabric world(std::move(options));
  const pool::FormatOptions format{.table_slots = 4, .chunk_bytes = kChunkBytes};
  (void)*pool::FormatVolatile(world.memory(fabric::NodeId{0}), format, {1, 0});

  std::vector<std::unique_ptr<BatchClient>> clients;
  for (size_t i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<BatchClient>(world, engine, seed * kClients + i));
  const auto all_done = [&clients] {
    for (const auto& client : clients) {
      if (!client->done()) return false;
    }
    return true;
  };
  while (!all_done() && world.Step()) continue;
}

}  // namespace farside::trace
