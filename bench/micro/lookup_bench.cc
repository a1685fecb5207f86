// Lookups by one thread: an engine on the embedded fabric, 32 at a time, beside tbb::concurrent_hash_map,
// with the same keys in the same order. A program of its own:
//
//   farside_lookup [RECORDS] [--engine NAME] [--option KEY=VALUE ...]
//
// The engine is `shard`, unless another one is named: then its lookups stand beside those of `shard`; and if
// it keeps keys in order, its scans beside those of std::map.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
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
#include "pool/region/open.h"
#include "store/engines.h"
#include "store/registration.h"
#include "tests/support/heap_count.h"
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

constexpr size_t kScanned = 100;           // records of a scan
constexpr uint64_t kRecordsPerScan = 100;  // so every record is met once, on average

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
  Engine(std::string name, index::OptionMap options, uint64_t records)
      : name_(std::move(name)),
        options_(std::move(options)),
        bytes_((records * kBytesPerRecord / 4096 + 1) * 4096 + (256 << 20)) {}

  const std::string& name() const { return name_; }

  Status Open() {
    Result<std::unique_ptr<pool::OpenedPool>> pool =
        pool::OpenPool(fmt::format("embedded:?size={}", bytes_), {});
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
  // Scans some records from each of these. Returns how many scans were wrong.
  uint64_t Scan(std::span<const uint64_t> records) {
    wrong_ = 0;
    const Status status = RunWorkers([&](size_t worker) { return ScanSome(records, worker); });
    return status.ok() ? wrong_ : records.size();
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
    session_ = co_await store::Registration::Join(op, *client_, store::MakeEngine, {});
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "lookup", name_, options_));
    // So that it knows of this change of the catalog before an operation has to wait for something
    // (shard/10).
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

  Task<Done> ScanSome(std::span<const uint64_t> records, size_t first) {
    KeyRange range = KeyRange::From(std::string(kKeyBytes, '\0'));
    std::vector<Record> page;
    for (size_t i = first; i < records.size(); i += kDepth) {
      workload::FillKey(records[i], range.from);
      page.clear();
      {
        Op op(*client_, OpKind::kScan);
        co_await table_->index->Scan(op, range, kScanned, page);
      }
      if (page.empty() || page.front().key != range.from) ++wrong_;
      if (session_->pool().MaintenanceDue()) co_await Maintain();
    }
    co_return Done{};
  }

  const std::string name_;
  const index::OptionMap options_;
  const uint64_t bytes_;
  std::unique_ptr<pool::OpenedPool> pool_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
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

// ---- the map of the standard library ---------------------------------------------------------------------

using OrderedMap = std::map<std::string, std::string>;

// Copies what it finds, as a scan of a table does.
uint64_t ScanMap(const OrderedMap& map, std::span<const uint64_t> records) {
  uint64_t wrong = 0;
  std::string from(kKeyBytes, '\0');
  std::vector<Record> page;
  for (const uint64_t record : records) {
    workload::FillKey(record, from);
    page.clear();
    auto at = map.lower_bound(from);
    for (; at != map.end() && page.size() < kScanned; ++at) page.push_back({at->first, at->second});
    if (page.empty() || page.front().key != from) ++wrong;
  }
  return wrong;
}

// ---- side by side ----------------------------------------------------------------------------------------

void PrintRow(std::string_view name, const Lap& lap, uint64_t count, std::string_view unit) {
  const auto number = static_cast<double>(count);
  fmt::print("{:<28}{:>10.3f} s{:>14.0f} {}/s{:>8.1f} ns{:>12.2f} allocations per 1000\n", name, lap.seconds,
             number / lap.seconds, unit, 1e9 * lap.seconds / number,
             1000 * static_cast<double>(lap.allocations) / number);
}

// In turns, so that whatever else the machine does meets both. Returns how often they were wrong.
template <class Ours, class Theirs>
uint64_t Compare(std::span<const uint64_t> records, uint64_t each, std::string_view unit,
                 const std::pair<std::string, Ours>& ours, const std::pair<std::string, Theirs>& theirs) {
  Lap our_lap;
  Lap their_lap;
  for (uint64_t lap = 0; lap < kLaps; ++lap) {
    const uint64_t begin = records.size() * lap / kLaps;
    const std::span<const uint64_t> some = records.subspan(begin, records.size() * (lap + 1) / kLaps - begin);
    our_lap.Add(Measure([&] { return ours.second(some); }));
    their_lap.Add(Measure([&] { return theirs.second(some); }));
  }
  PrintRow(ours.first, our_lap, records.size() * each, unit);
  PrintRow(theirs.first, their_lap, records.size() * each, unit);
  fmt::print("{} is {:.2f} times as fast\n", ours.first, their_lap.seconds / our_lap.seconds);
  if (our_lap.wrong + their_lap.wrong > 0)
    fmt::print("wrong or missing values: {} and {}\n", our_lap.wrong, their_lap.wrong);
  return our_lap.wrong + their_lap.wrong;
}

struct Command {
  uint64_t records = kDefaultRecords;
  std::string engine = "shard";
  index::OptionMap options;
};

Status Fill(Engine& engine, std::span<const uint64_t> records) {
  Status ready = engine.Open();
  return ready.ok() ? engine.Load(records) : ready;
}

int Main(const Command& command) {
  std::vector<uint64_t> records(command.records);
  for (uint64_t i = 0; i < records.size(); ++i) records[i] = i;
  const Result<std::shared_ptr<index::Engine>> kind = store::MakeEngine(command.engine, command.options);
  Engine engine(command.engine, command.options, records.size());
  Engine shard("shard", {}, records.size());
  const bool beside_shard = command.engine != "shard";
  Status ready = kind.ok() ? Fill(engine, records) : Status(kind.error());
  if (ready.ok() && beside_shard) ready = Fill(shard, records);
  if (!ready.ok()) {
    fmt::print(stderr, "farside_lookup: {}\n", ready.error().ToString());
    return 3;
  }
  Map map;
  OrderedMap ordered;
  const bool scans = (*kind)->traits().ordered && beside_shard;
  for (const uint64_t record : records) {
    std::string key = KeyOf(record);
    std::string value = ValueOf(key);
    if (scans) ordered.emplace(key, value);
    if (!beside_shard) map.emplace(std::move(key), std::move(value));
  }
  // Every record once, in an order that no prefetcher guesses.
  Random random(1);
  for (uint64_t i = records.size(); i > 1; --i) std::swap(records[i - 1], records[random.Below(i)]);

  fmt::print("{} records, keys and values of {} bytes, one thread\n", records.size(), kKeyBytes);
  const auto look = [&](std::span<const uint64_t> some) { return engine.Look(some); };
  const std::pair ours(fmt::format("{}, {} at a time", engine.name(), kDepth), look);
  uint64_t wrong = 0;
  if (beside_shard) {
    const auto look_in_shard = [&](std::span<const uint64_t> some) { return shard.Look(some); };
    wrong += Compare(records, 1, "lookups", ours, std::pair(std::string("shard"), look_in_shard));
  } else {
    const auto look_in_map = [&](std::span<const uint64_t> some) { return LookInMap(map, some); };
    wrong +=
        Compare(records, 1, "lookups", ours, std::pair(std::string("tbb::concurrent_hash_map"), look_in_map));
  }
  if (scans) {
    const auto scan = [&](std::span<const uint64_t> some) { return engine.Scan(some); };
    const auto scan_map = [&](std::span<const uint64_t> some) { return ScanMap(ordered, some); };
    const std::span<const uint64_t> starts =
        std::span(records).first((records.size() + kRecordsPerScan - 1) / kRecordsPerScan);
    fmt::print("scans of {} records\n", kScanned);
    wrong += Compare(starts, kScanned, "records", std::pair(engine.name(), scan),
                     std::pair(std::string("std::map"), scan_map));
  }
  return wrong == 0 ? 0 : 1;
}

// Nothing if the words make no sense.
std::optional<Command> Parse(std::span<char* const> words) {
  Command command;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word(words[i]);
    const bool named = word == "--engine" || word == "--option";
    if (named && ++i == words.size()) return std::nullopt;
    const std::string_view text(words[i]);
    if (word == "--engine") {
      command.engine = text;
    } else if (word == "--option") {
      const size_t equals = text.find('=');
      if (equals == std::string_view::npos) return std::nullopt;
      command.options[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    } else {
      const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), command.records);
      if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
    }
  }
  if (command.records == 0 || command.records > kMostRecords) return std::nullopt;
  return command;
}

}  // namespace
}  // namespace farside

int main(int argc, char** argv) {
  const std::optional<farside::Command> command =
      farside::Parse({argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0)});
  if (!command.has_value()) {
    fmt::print(stderr,
               "usage: farside_lookup [RECORDS] [--engine NAME] [--option KEY=VALUE ...], with RECORDS from "
               "1 to {}\n",
               farside::kMostRecords);
    return 2;
  }
  return farside::Main(*command);
}
