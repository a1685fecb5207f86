// Lookups by one thread: an engine on the embedded fabric, 32 at a time, beside tbb::concurrent_hash_map, with the same
// keys in the same order. A program of its own: farside_lookup [RECORDS].
//
// The engine is `shard` if this build has it, else `reference`.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tbb/concurrent_hash_map.h>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/open.h"
#include "store/session.h"
#include "tests/unit/base/heap_count.h"
#include "store/engines.h"
#include "workload/records.h"

namespace farside {
namespace {

using fabric::Op;
using fabric::OpKind;

constexpr uint64_t kDefaultRecords = 10'000'000;
constexpr uint64_t kMostRecords = 100'000'000;
constexpr size_t kDepth = 32;
constexpr uint64_t kLaps = 20;
constexpr size_t kKeyBytes = 8;
constexpr size_t kValueBytes = 8;
constexpr uint64_t kBytesPerRecord = 320;  // on all nodes together, and generous

// Room for every record in the fixed table of the reference engine: 5 of 22 entries of a bucket on average, and at most a
// million buckets on a node.
constexpr uint64_t kRecordsPerNode = 5'000'000;
constexpr uint64_t kRecordsPerBucket = 5;

struct Lap {
  double seconds = 0;
  uint64_t allocations = 0;
  uint64_t wrong = 0;

  void Add(const Lap& other) {
    seconds += other.seconds;
    allocations += other.allocations;
    wrong += other.wrong;
  }
};

std::string KeyOf(uint64_t record) {
  std::string key(kKeyBytes, '\0');
  workload::FillKey(record, key);
  return key;
}
std::string ValueOf(const std::string& key) {
  std::string value(kValueBytes, '\0');
  workload::FillValue(key, 0, value);
  return value;
}

template <class Body>
Lap Measure(Body body) {
  const SteadyClock clock;
  Lap lap;
  const uint64_t allocations = HeapAllocations();
  const Nanos begin = clock.Now();
  lap.wrong = body();
  lap.seconds = std::chrono::duration<double>(clock.Now() - begin).count();
  lap.allocations = HeapAllocations() - allocations;
  return lap;
}

// ---- the engine ----------------------------------------------------------------------------------------

class Engine {
 public:
  explicit Engine(uint64_t records) {
    const uint64_t nodes = (records + kRecordsPerNode - 1) / kRecordsPerNode;
    if (store::MakeEngine(name_, {}).ok()) {
      nodes_ = 1;
    } else {
      name_ = "reference";
      nodes_ = nodes;
      options_["buckets"] = std::to_string(std::max<uint64_t>(1, records / nodes / kRecordsPerBucket));
    }
    bytes_ = ((records * kBytesPerRecord / nodes_) / 4096 + 1) * 4096 + (256 << 20);
  }

  const std::string& name() const { return name_; }
  uint64_t nodes() const { return nodes_; }

  Status Open() {
    Result<std::unique_ptr<pool::OpenedPool>> pool =
        pool::OpenPool(fmt::format("embedded:?size={}&nodes={}", bytes_, nodes_), {});
    if (!pool.ok()) return pool.error();
    pool_ = std::move(*pool);
    Result<std::unique_ptr<fabric::Client>> client = pool_->fabric->Connect();
    if (!client.ok()) return client.error();
    client_ = std::move(*client);
    return fabric::Run(*client_, Join());
  }

  Status Load(std::span<const uint64_t> records) {
    return RunWorkers([&](size_t worker) { return LoadSome(records, worker); });
  }
  // Returns how many were not found, or were wrong.
  uint64_t Look(std::span<const uint64_t> records) {
    wrong_ = 0;
    const Status status = RunWorkers([&](size_t worker) { return LookSome(records, worker); });
    return status.ok() ? wrong_ : records.size();
  }

 private:
  Task<Done> Join() {
    Op op(*client_, OpKind::kMaintenance);
    session_ = co_await store::Session::Join(op, *client_, store::MakeEngine, {});
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "lookup", name_, options_));
    // So that it knows of this change of the catalog before an operation has to wait for something (shard/10).
    co_await session_->pool().Sync(op, /*raise=*/false);
    co_return Done{};
  }

  template <class MakeTask>
  Status RunWorkers(MakeTask make_task) {
    std::vector<Task<Done>> tasks;
    for (size_t worker = 0; worker < kDepth; ++worker) tasks.push_back(make_task(worker));
    if (Status ran = fabric::RunAll<Done>(*client_, tasks); !ran.ok()) return ran;
    for (Task<Done>& task : tasks) {
      if (const Result<Done> done = task.TakeResult(); !done.ok()) return done.error();
    }
    return OkStatus();
  }

  Task<Done> Maintain() {
    Op op(*client_, OpKind::kMaintenance);
    co_await session_->pool().Maintain(op);
    co_return Done{};
  }

  Task<Done> LoadSome(std::span<const uint64_t> records, size_t first) {
    for (size_t i = first; i < records.size(); i += kDepth) {
      const std::string key = KeyOf(records[i]);
      const std::string value = ValueOf(key);
      {
        Op op(*client_, OpKind::kInsert);
        co_await table_->index->Insert(op, key, value);
      }
      if (session_->pool().MaintenanceDue()) co_await Maintain();
    }
    co_return Done{};
  }

  Task<Done> LookSome(std::span<const uint64_t> records, size_t first) {
    std::string key(kKeyBytes, '\0');
    std::string value;
    for (size_t i = first; i < records.size(); i += kDepth) {
      workload::FillKey(records[i], key);
      bool found = false;
      {
        Op op(*client_, OpKind::kSearch);
        found = co_await table_->index->Get(op, key, value);
      }
      if (!found || !workload::IsValueOf(key, value, kValueBytes)) ++wrong_;
      if (session_->pool().MaintenanceDue()) co_await Maintain();
    }
    co_return Done{};
  }

  std::string name_ = "shard";
  index::OptionMap options_;
  uint64_t nodes_ = 1;
  uint64_t bytes_ = 0;
  std::unique_ptr<pool::OpenedPool> pool_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Session> session_;
  std::optional<index::OpenTable> table_;
  uint64_t wrong_ = 0;
};

// ---- the map of TBB --------------------------------------------------------------------------------------

using Map = tbb::concurrent_hash_map<std::string, std::string>;

uint64_t LookInMap(const Map& map, std::span<const uint64_t> records) {
  uint64_t wrong = 0;
  std::string key(kKeyBytes, '\0');
  std::string value;
  for (const uint64_t record : records) {
    workload::FillKey(record, key);
    Map::const_accessor found;
    if (map.find(found, key)) {
      value = found->second;
      found.release();
      if (workload::IsValueOf(key, value, kValueBytes)) continue;
    }
    ++wrong;
  }
  return wrong;
}

// ---- both ----------------------------------------------------------------------------------------------

void PrintRow(std::string_view name, const Lap& lap, uint64_t lookups) {
  const auto count = static_cast<double>(lookups);
  fmt::print("{:<28}{:>10.3f} s{:>14.0f} lookups/s{:>8.1f} ns{:>12.2f} allocations per 1000\n", name,
             lap.seconds, count / lap.seconds, 1e9 * lap.seconds / count,
             1000 * static_cast<double>(lap.allocations) / count);
}

int Main(uint64_t count) {
  std::vector<uint64_t> records(count);
  for (uint64_t i = 0; i < count; ++i) records[i] = i;
  Engine engine(count);
  Status ready = engine.Open();
  if (ready.ok()) ready = engine.Load(records);
  if (!ready.ok()) {
    fmt::print(stderr, "farside_lookup: {}\n", ready.error().ToString());
    return 3;
  }
  Map map;
  for (const uint64_t record : records) {
    std::string key = KeyOf(record);
    std::string value = ValueOf(key);
    map.emplace(std::move(key), std::move(value));
  }
  // Every record once, in an order that no prefetcher guesses.
  Random random(1);
  for (uint64_t i = count; i > 1; --i) std::swap(records[i - 1], records[random.Below(i)]);

  // In turns, so that whatever else the machine does meets both.
  Lap ours;
  Lap theirs;
  for (uint64_t lap = 0; lap < kLaps; ++lap) {
    const uint64_t begin = count * lap / kLaps;
    const std::span<const uint64_t> some =
        std::span(records).subspan(begin, count * (lap + 1) / kLaps - begin);
    ours.Add(Measure([&] { return engine.Look(some); }));
    theirs.Add(Measure([&] { return LookInMap(map, some); }));
  }
  fmt::print("{} records, keys and values of {} bytes, one thread\n", count, kKeyBytes);
  PrintRow(fmt::format("{}, {} at a time", engine.name(), kDepth), ours, count);
  PrintRow("tbb::concurrent_hash_map", theirs, count);
  fmt::print("{} is {:.2f} times as fast\n", engine.name(), theirs.seconds / ours.seconds);
  if (ours.wrong + theirs.wrong == 0) return 0;
  fmt::print("wrong or missing values: {} and {}\n", ours.wrong, theirs.wrong);
  return 1;
}

}  // namespace
}  // namespace farside

int main(int argc, char** argv) {
  uint64_t records = farside::kDefaultRecords;
  if (argc == 2) {
    const std::string_view text(argv[1]);
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), records);
    if (failure != std::errc() || end != text.data() + text.size()) records = 0;
  }
  if (argc > 2 || records == 0 || records > farside::kMostRecords) {
    fmt::print(stderr, "usage: farside_lookup [RECORDS], a number from 1 to {}\n", farside::kMostRecords);
    return 2;
  }
  return farside::Main(records);
}
