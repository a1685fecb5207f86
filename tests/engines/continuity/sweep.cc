#include "tests/engines/continuity/sweep.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "pool/region/layout.h"

namespace farside::index::continuity {
namespace {

using fabric::NodeMemory;

constexpr uint64_t kRegionBytes = 64 * 1024;
// One state in so many is taken further.
constexpr uint64_t kTakenFurther = 64;

std::optional<std::string> ValueIn(const BareModel& model, std::string_view key) {
  const auto found = model.find(key);
  return found == model.end() ? std::optional<std::string>() : found->second;
}

// The memory of a sweep, with a reader that looks after every store.
class WatchedMemory final : public NodeMemory {
 public:
  WatchedMemory(NodeMemory& memory, std::function<void()> look) : memory_(memory), look_(std::move(look)) {}
  uint64_t bytes() const override { return memory_.bytes(); }
  uint64_t Load(uint64_t offset) const override { return memory_.Load(offset); }
  void Store(uint64_t offset, uint64_t word) override {
    memory_.Store(offset, word);
    look_();
  }

 private:
  void FlushLines(uint64_t offset, uint64_t size) override { memory_.Flush(offset, size); }
  void DrainLines() override { memory_.Drain(); }

  NodeMemory& memory_;
  const std::function<void()> look_;
};

class Sweeper {
 public:
  Sweeper(const SweepScript& script, check::SurvivorLimits limits, uint64_t seed)
      : script_(script),
        sweep_(EmptyTable(script.shape, kRegionBytes, seed), limits, seed),
        client_(FirstFree(script.shape)) {
    models_.emplace_back();
    for (const BareChange& change : script.changes) {
      models_.push_back(models_.back());
      ApplyTo(models_.back(), change);
    }
  }

  SweepReport Run() {
    std::vector<check::PowerSweep::Operation> operations;
    for (size_t i = 0; i < script_.changes.size(); ++i)
      operations.emplace_back([this, i](NodeMemory& memory) { Make(memory, i); });
    SweepReport report;
    report.counts = sweep_.Run(operations, [this](std::span<std::byte> survived, size_t acknowledged,
                                                  size_t begun) { Check(survived, acknowledged, begun); });
    report.problem = problem_;
    report.groups = client_.groups();
    report.tables = client_.tables();
    return report;
  }

 private:
  void Complain(size_t change, std::string_view what) {
    if (!problem_.empty()) return;
    problem_ = fmt::format("{}, at change {} of the key {}: {}", script_.name, change,
                           change < script_.changes.size() ? script_.changes[change].key : "", what);
    sweep_.Stop();
  }

  void Make(NodeMemory& memory, size_t change) {
    seen_ = false;
    WatchedMemory watched(memory, [this, change] { Look(change); });
    const Result<Reply> made = client_.Make(watched, script_.changes[change]);
    if (!made.ok()) return Complain(change, made.error().ToString());
    if (const Result<BareContent> content = BareView{.bytes = sweep_.bytes()}.Content(); content.ok())
      CheckMemory(change, client_, content->used, /*at_rest=*/true);
    // Nothing depends on this word after a cut, since it is zeroed at every opening. The next drain makes it
    // durable here, so that its old values do not multiply the states.
    memory.Flush(pool::kHandlerOffset, sizeof(uint64_t));
    Look(change);
    if (models_[change] != models_[change + 1] && !seen_) Complain(change, "no reader sees what was made");
  }

  // A reader between two stores.
  void Look(size_t change) {
    if (!problem_.empty()) return;
    const std::string& key = script_.changes[change].key;
    const auto found = BareView{.bytes = sweep_.bytes(), .live = true}.Find(key);
    if (!found.ok()) {
      if (found.error().code() != ErrorCode::kContended)
        Complain(change, "a reader: " + found.error().message());
      return;
    }
    const std::optional<std::string> before = ValueIn(models_[change], key);
    const std::optional<std::string> after = ValueIn(models_[change + 1], key);
    if (*found != before && *found != after) return Complain(change, "a reader sees what was never there");
    if (before == after) return;
    if (*found == after) {
      seen_ = true;
    } else if (seen_) {
      Complain(change, "a reader sees what was there before");
    }
  }

  static bool Are(const std::vector<std::pair<std::string_view, std::string_view>>& records,
                  const BareModel& model) {
    return std::ranges::equal(records, model, [](const auto& record, const auto& expected) {
      return record.first == expected.first && record.second == expected.second;
    });
  }

  void CheckMemory(size_t change, const BareClient& client, const std::vector<Memory>& used, bool at_rest) {
    const std::string problem = client.Check(used, at_rest);
    if (!problem.empty()) Complain(change, problem);
  }

  void Check(std::span<std::byte> survived, size_t acknowledged, size_t begun) {
    PlainMemory(survived).Store(pool::kHandlerOffset, 0);  // as every opening does
    const Result<BareContent> content = BareView{.bytes = survived}.Content();
    if (!content.ok()) return Complain(acknowledged, content.error().message());
    const bool is_new = Are(content->records, models_[begun]);
    if (!is_new && !Are(content->records, models_[acknowledged]))
      return Complain(acknowledged, "a change is lost");
    CheckMemory(acknowledged, client_, content->used, /*at_rest=*/false);
    if (!is_new && seen_) return Complain(acknowledged, "a reader has seen what is lost");
    if (++states_ % kTakenFurther == 0)
      TakeFurther(survived, acknowledged, models_[is_new ? begun : acknowledged], content->used);
  }

  void TakeFurther(std::span<std::byte> survived, size_t change, const BareModel& model,
                   const std::vector<Memory>& used) {
    PlainMemory memory(survived);
    BareClient client = client_;
    client.KeepOnly(used);
    const Status ended = client.EndGrowth(memory);
    if (!ended.ok()) return Complain(change, "afterwards: " + ended.error().message());
    BareModel left = model;
    while (true) {
      const Result<BareContent> content = BareView{.bytes = survived}.Content();
      if (!content.ok()) return Complain(change, "afterwards: " + content.error().message());
      if (!Are(content->records, left)) return Complain(change, "afterwards, records are lost");
      if (left.empty()) return CheckMemory(change, client, content->used, /*at_rest=*/true);
      const std::string key = left.begin()->first;
      const Result<Reply> removed = client.Make(memory, {.kind = ChangeKind::kDelete, .key = key});
      if (!removed.ok()) return Complain(change, "afterwards: " + removed.error().message());
      if (!removed->applied) return Complain(change, "afterwards, a key cannot be deleted");
      left.erase(left.begin());
    }
  }

  const SweepScript& script_;
  check::PowerSweep sweep_;
  BareClient client_;
  std::vector<BareModel> models_;  // before the first change, before the second, ..., behind the last
  bool seen_ = false;              // a reader has seen the change that is under way
  uint64_t states_ = 0;
  std::string problem_;
};

BareChange Put(std::string key, std::string value) {
  return {.kind = ChangeKind::kPut, .key = std::move(key), .value = std::move(value)};
}
BareChange Delete(std::string key) { return {.kind = ChangeKind::kDelete, .key = std::move(key)}; }
BareChange Touch(std::string key) { return {.kind = ChangeKind::kTouch, .key = std::move(key)}; }
BareChange Move() { return {.moves = true}; }
BareChange Increment(std::string key, uint64_t delta) {
  return {.kind = ChangeKind::kIncrement, .key = std::move(key), .delta = delta};
}
BareChange CompareAndSet(std::string key, std::string expected, std::string value) {
  return {.kind = ChangeKind::kCompareAndSet,
          .key = std::move(key),
          .value = std::move(value),
          .expected = std::move(expected)};
}
std::string Long(char of) { return std::string(70, of); }

constexpr Shape kWide(2, kBucketSlots, kSharedSlots, kGroupSlots, 10);
constexpr Shape kNarrow(1, 1, 1, 1, 0);
constexpr Shape kNarrowWithGroups(1, 1, 2, 2, 1);

// Keys that have pairs of their own in a table of 16 pairs, so that none grows further.
std::vector<std::string> KeysApart(size_t count) {
  std::vector<std::string> keys;
  std::set<uint64_t> pairs;
  for (int i = 0; keys.size() < count; ++i) {
    std::string key = fmt::format("k{}", i);
    if (pairs.insert(HomeOf(Hash64(AsBytes(key)), 16).pair).second) keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

SweepReport Sweep(const SweepScript& script, check::SurvivorLimits limits, uint64_t seed) {
  return Sweeper(script, limits, seed).Run();
}

std::vector<SweepScript> PowerScripts() {
  const std::string full(30, 'f');
  std::vector<SweepScript> scripts = {
      {"small records",
       kWide,
       {Put("a", "1"), Put("b", full), Put("a", "2"), Put("b", "short"), Delete("a"), Put("c", full),
        Put("a", "3"), Put("a", full), Delete("b"), Delete("c"), Put("c", "4")}},
      {"long records",
       kWide,
       {Put("a", Long('1')), Put("a", Long('2')), Put("b", Long('3')), Put("a", "small"), Put("b", "small"),
        Put("a", Long('4')), Touch("a"), Delete("a"), Put("c", Long('5')), Touch("c"), Touch("c"),
        Delete("c"), Put("a", Long('6')), Touch("b")}},
      {"counters and comparisons",
       kWide,
       {Increment("a", 5), Increment("a", 7), Increment(std::string(24, 'k'), 1),
        Increment(std::string(24, 'k'), 2), Put("b", "1"), CompareAndSet("b", "1", "2"),
        CompareAndSet("b", "1", "3"), CompareAndSet("b", "2", Long('x')), CompareAndSet("b", Long('x'), "y"),
        CompareAndSet("none", "1", "2"), Delete("a"), Increment("a", 1)}},
  };
  SweepScript groups{.name = "groups", .shape = kNarrowWithGroups};
  for (int i = 0; i < 7; ++i)
    groups.changes.push_back(Put(fmt::format("g{}", i), i % 2 == 0 ? "v" : Long('v')));
  for (int i = 0; i < 7; ++i) groups.changes.push_back(Put(fmt::format("g{}", i), "w"));
  for (int i = 0; i < 7; i += 2) groups.changes.push_back(Delete(fmt::format("g{}", i)));
  scripts.push_back(std::move(groups));
  SweepScript growth{.name = "growth", .shape = kNarrow};
  const std::vector<std::string> keys = KeysApart(12);
  for (size_t i = 0; i < keys.size(); ++i) {
    growth.changes.push_back(Put(keys[i], i % 3 == 0 ? Long('v') : "v"));
    growth.changes.push_back(Put(keys[i / 2], fmt::format("w{}", i)));
    if (i % 4 == 2) growth.changes.push_back(Move());
    if (i % 3 == 0) growth.changes.push_back(Touch(keys[i]));
  }
  for (size_t i = 0; i < keys.size(); i += 3) growth.changes.push_back(Delete(keys[i]));
  scripts.push_back(std::move(growth));
  return scripts;
}

SweepScript ScriptByChance(uint64_t seed, size_t changes) {
  constexpr Shape kShapes[] = {kNarrow, kNarrowWithGroups, Shape(1, 1, 1, 1, 2), Shape(2, 1, 2, 1, 3)};
  const std::vector<std::string> keys = KeysApart(11);
  Random random(seed);
  SweepScript script{.name = fmt::format("by chance, seed {}", seed), .shape = kShapes[random.Below(4)]};
  auto value = [&random, n = 0]() mutable {
    const std::string text = std::to_string(++n);
    return random.Chance(1, 4) ? text + Long('.') : text;
  };
  for (size_t i = 0; i < changes; ++i) {
    const std::string& key = keys[random.Below(9)];
    switch (random.Below(10)) {
      case 0:
      case 1: script.changes.push_back(Delete(key)); break;
      case 2: script.changes.push_back(Increment(keys[9 + random.Below(2)], i)); break;
      case 3: script.changes.push_back({.kind = ChangeKind::kInsert, .key = key, .value = value()}); break;
      case 4: script.changes.push_back({.kind = ChangeKind::kUpdate, .key = key, .value = value()}); break;
      case 5: script.changes.push_back(random.Chance(1, 2) ? Touch(key) : Move()); break;
      default: script.changes.push_back(Put(key, value())); break;
    }
  }
  return script;
}

}  // namespace farside::index::continuity
