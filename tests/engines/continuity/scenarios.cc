#include "tests/engines/continuity/scenarios.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "index/continuity/continuity.h"
#include "index/continuity/handlers.h"
#include "index/continuity/request.h"
#include "pool/region/recover.h"

namespace farside::index::continuity {
namespace {

using fabric::NodeId;

constexpr NodeId kNode{0};
constexpr Nanos kLong = std::chrono::milliseconds(2);
constexpr int kMostSteps = 64;
constexpr uint64_t kMostHandlerSteps = 20;
constexpr uint64_t kSeeds = 6;

class Member : public TableMember {
 public:
  Member(TableWorld& world, OptionMap options)
      : TableMember(world, "continuity", MakeContinuityEngine, std::move(options)) {}
  Task<uint64_t> Increment(std::string key, uint64_t delta) {
    fabric::Op op(client(), fabric::OpKind::kUpdate);
    const uint64_t counter = co_await index().Increment(op, key, delta);
    co_return counter;
  }
};

void RecoverWhenPowerIsBack(TableWorld& world) {
  world.fabric.set_on_power_up([&world](NodeId node, std::span<std::byte> survived) {
    pool::Recover(survived, *fabric::ForNode(world.geometries, node));
  });
}

// A reader of `key` stops after each of its steps in turn, and `meanwhile` happens. It must find one of two
// values.
std::string ReaderStops(const OptionMap& options, const std::string& key,
                        const std::function<void(TableMember& writer)>& before,
                        const std::function<void(TableMember& writer)>& meanwhile) {
  for (int steps = 0; steps < kMostSteps; ++steps) {
    TableWorld world;
    world.beats = false;
    Member writer(world, options);
    before(writer);
    Member reader(world, options);
    Task<std::string> get = reader.Get(key);
    get.Start();
    for (int i = 0; i < steps && !get.done(); ++i) world.fabric.Step();
    const bool stopped = !get.done();
    world.fabric.Hold(reader.client().id(), kNode, kLong);
    meanwhile(writer);
    world.Drive([&] { return get.done(); });
    if (!get.done()) return "the reader waits for ever";
    const Result<std::string> found = get.TakeResult();
    const std::string what = found.ok() ? *found : found.error().ToString();
    if (what != "old" && what != "new") return fmt::format("after {} steps a reader finds: {}", steps, what);
    if (!world.problem.empty()) return world.problem;
    if (!stopped) return "";
  }
  return "the reader has no end";
}

// Puts keys until the table has doubled so often, and does not grow.
void GrowTo(TableWorld& world, TableMember& writer, uint64_t doublings,
            std::map<std::string, std::string>& all) {
  const auto grown = [&] {
    Root root{};
    std::memcpy(&root, world.memory().data() + writer.roots()[0].offset, sizeof root);
    return root.current.doublings() >= doublings && !root.growing();
  };
  for (int i = 0; !grown() && i < 200; ++i) {
    const std::string key = fmt::format("k{}", i % 24);
    writer.Now(writer.Put(key, fmt::format("v{}", i)));
    all[key] = fmt::format("v{}", i);
  }
  if (!grown()) world.Complain("the table does not grow");
}

std::string ReadAll(TableWorld& world, TableMember& reader, const std::map<std::string, std::string>& all) {
  for (const auto& [key, value] : all) {
    const Result<std::string> found = reader.Try(reader.Get(key));
    if (!found.ok()) return fmt::format("{}: {}", key, found.error().ToString());
    if (*found != value) return fmt::format("{} is {} instead of {}", key, *found, value);
  }
  return world.problem;
}

}  // namespace

OptionMap OneOfEach(bool with_group) {
  return {{"pairs", "1"},
          {"bucket_slots", "1"},
          {"shared_slots", "1"},
          {"group_slots", "1"},
          {"group_every", with_group ? "1" : "0"}};
}

std::string KeyOf(bool odd, int number) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("key{}", i);
    if (HomeOf(Hash64(AsBytes(key)), 1).odd == odd && number-- == 0) return key;
  }
}

uint64_t IndicatorOf(TableWorld& world, TableMember& member, const std::string& key) {
  Root root{};
  std::memcpy(&root, world.memory().data() + member.roots()[0].offset, sizeof root);
  const Home home = HomeOf(Hash64(AsBytes(key)), PairsOf(root.shape, root.current.doublings()));
  return PairAt(root.current.offset(), home.pair) + kIndicatorAt;
}

bool StopHandlerAt(TableWorld& world, TableMember& writer, Task<bool>& change, uint64_t steps,
                   Nanos duration) {
  const uint64_t first = world.fabric.handler_steps();
  change.Start();
  while (!change.done() && world.fabric.handler_steps() < first + steps) world.fabric.Step();
  if (change.done()) return false;
  world.fabric.Hold(writer.client().id(), kNode, duration);
  return true;
}

std::string ASlotIsUsedAgainUnderAReader() {
  const std::string key = KeyOf(false, 0);
  return ReaderStops(
      {{"pairs", "1"}}, key, [&](TableMember& writer) { writer.Now(writer.Put(key, "old")); },
      [&](TableMember& writer) {
        writer.Now(writer.Update(key, "new"));
        writer.Now(writer.Put(KeyOf(false, 1), "other"));
      });
}

std::string AGroupSlotIsUsedAgainUnderAReader() {
  const std::string key = KeyOf(false, 2);
  return ReaderStops(
      OneOfEach(true), key,
      [&](TableMember& writer) {
        for (int i = 0; i < 2; ++i) writer.Now(writer.Put(KeyOf(false, i), "other"));
        writer.Now(writer.Put(key, "old"));
      },
      [&](TableMember& writer) {
        writer.Now(writer.Delete(KeyOf(false, 0)));
        writer.Now(writer.Update(key, "new"));
        writer.Now(writer.Put(KeyOf(false, 3), "other"));
      });
}

std::string AReaderLooksWhileAHandlerStandsStill() {
  const OptionMap options{{"pairs", "2"}};
  for (uint64_t step = 0; step < kMostHandlerSteps; ++step) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      TableWorld world({.seed = seed, .durable = true});
      RecoverWhenPowerIsBack(world);
      world.beats = false;
      Member writer(world, options);
      Member reader(world, options);
      writer.Now(writer.Put("a", "old"));
      Task<bool> update = writer.Update("a", "new");
      if (!StopHandlerAt(world, writer, update, step, kLong)) continue;
      Task<std::string> get = reader.Get("a");
      get.Start();
      const Nanos until = world.fabric.Now() + kLong / 4;
      while (!get.done() && world.fabric.Now() < until) world.fabric.Step();
      const std::string seen = get.done() ? *get.TakeResult() : "nothing";
      world.fabric.CutPower(kNode);
      if (!world.problem.empty()) return world.problem;
      Member heir(world, options);
      const std::string left = heir.Now(heir.Get("a"));
      if (!world.problem.empty()) return world.problem;
      if (seen == "new" && left != "new")
        return fmt::format("a reader has seen what step {} has stored, and a power cut took it", step);
    }
  }
  return "";
}

std::string APairWasLeftOdd() {
  const OptionMap options{{"pairs", "2"}};
  TableWorld world;
  Member member(world, options);
  member.Now(member.Put("a", "v"));
  std::byte* indicator = world.memory().data() + IndicatorOf(world, member, "a");
  StoreU64(indicator, Indicator(LoadU64(indicator)).Begun().word());
  const std::string found = member.Now(member.Get("a"));
  if (!world.problem.empty()) return world.problem;
  return found == "v" ? "" : "a pair that was left odd has lost its record";
}

std::string PowerComesBack() {
  const OptionMap options{{"pairs", "2"}};
  for (uint64_t step = 0; step < kMostHandlerSteps; ++step) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      TableWorld world({.seed = seed, .durable = true});
      RecoverWhenPowerIsBack(world);
      world.beats = false;
      Member writer(world, options);
      writer.Now(writer.Put("a", "old"));
      Task<bool> update = writer.Update("a", "new");
      if (!StopHandlerAt(world, writer, update, step, kLong)) continue;
      world.fabric.CutPower(kNode);
      Member heir(world, options);
      for (int look = 0; look < 2; ++look) {
        const Result<std::string> left = heir.Try(heir.Get("a"));
        if (!left.ok()) return fmt::format("cut at step {}: {}", step, left.error().ToString());
        if (*left != (look == 0 ? "old" : "newest") && *left != "new")
          return fmt::format("cut at step {}: the key is {}", step, *left);
        if (look == 0) heir.Now(heir.Update("a", "newest"));
        if (look == 1 && *left != "newest") return "a change after a power cut is lost";
      }
      if (!world.problem.empty()) return world.problem;
    }
  }
  return "";
}

std::string PowerIsCutWhenATableWasMade() {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TableWorld world({.seed = seed, .durable = true});
    RecoverWhenPowerIsBack(world);
    std::ranges::fill(world.memory().subspan(world.geometries[0].first_chunk()), std::byte{0xa5});
    const OptionMap options{{"pairs", "2"}};
    const Member maker(world, options);
    world.fabric.CutPower(kNode);
    Member heir(world, options);
    const Result<std::string> found = heir.Try(heir.Get("a"));
    if (!found.ok()) return found.error().ToString();
    if (*found != "absent") return fmt::format("a new table has a record: {}", *found);
    heir.Now(heir.Put("a", "v"));
    if (heir.Now(heir.Get("a")) != "v") return "a new table cannot be used";
    heir.Now(heir.Verify());
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

std::string ASweepSettlesPairs() {
  constexpr int kKeys = 24;
  uint64_t left_odd = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TableWorld world({.seed = seed, .durable = true});
    RecoverWhenPowerIsBack(world);
    const auto odd = [&world](TableMember& member) {
      uint64_t pairs = 0;
      for (int i = 0; i < kKeys; ++i) {
        const uint64_t at = IndicatorOf(world, member, fmt::format("k{}", i));
        pairs += Indicator(LoadU64(world.memory().data() + at)).odd() ? 1 : 0;
      }
      return pairs;
    };
    {
      Member writer(world, {{"pairs", "8"}});
      for (int i = 0; i < kKeys; ++i) writer.Now(writer.Put(fmt::format("k{}", i), "v"));
      world.fabric.CutPower(kNode);
    }
    Member heir(world, {{"pairs", "8"}});
    left_odd += odd(heir);
    for (int round = 0; round < 20; ++round) {
      heir.Now(heir.Maintain());
      heir.Now(heir.Pause(kLong));
    }
    if (!world.problem.empty()) return world.problem;
    if (odd(heir) != 0) return fmt::format("{} keys stand in pairs that were left odd", odd(heir));
    for (int i = 0; i < kKeys; ++i) {
      const std::string found = heir.Now(heir.Get(fmt::format("k{}", i)));
      if (found != "v") return fmt::format("k{} is {}", i, found);
    }
  }
  return left_odd > 0 ? "" : "no power cut has left a pair odd";
}

std::string AnAnswerIsLost() {
  TableWorld world;
  Member member(world, {{"pairs", "2"}});
  fabric::CallTable handlers;
  Serve(handlers);
  bool lose = true;
  world.fabric.calls().Set(
      kChangeCall, [&](fabric::NodeMemory& memory, fabric::ClientId caller, std::string_view request) {
        Result<std::string> answer = handlers.Handle(kChangeCall, memory, caller, request);
        if (!std::exchange(lose, false)) return answer;
        return Result<std::string>(Error(ErrorCode::kOutcomeUnknown, "the answer is lost"));
      });
  const Result<uint64_t> lost = member.Try(member.Increment("n", 1));
  if (lost.ok() || lost.error().code() != ErrorCode::kOutcomeUnknown)
    return "a change whose answer was lost has an outcome";
  const uint64_t counted = member.Now(member.Increment("n", 0));
  if (counted != 1) return fmt::format("a change whose answer was lost was made {} times", counted);
  return world.problem;
}

std::string ASegmentIsFull() {
  for (const bool with_group : {true, false}) {
    TableWorld world;
    Member member(world, OneOfEach(with_group));
    for (int i = 0; i < 8; ++i) {
      if (!member.Now(member.Insert(KeyOf(false, i), "v"))) return fmt::format("insert {} is refused", i);
    }
    for (int i = 0; i < 8; ++i) {
      if (member.Now(member.Get(KeyOf(false, i))) != "v") return fmt::format("key {} is not there", i);
    }
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

std::string AReaderHasAnOldRoot() {
  for (const uint64_t doublings : {1, 2, 3}) {
    TableWorld world;
    world.beats = false;
    const OptionMap options = OneOfEach(false);
    Member writer(world, options);
    std::map<std::string, std::string> all;
    writer.Now(writer.Put("k0", "v"));
    Member reader(world, options);
    reader.Now(reader.Get("k0"));
    GrowTo(world, writer, doublings, all);
    std::string problem = ReadAll(world, reader, all);
    if (!problem.empty()) return fmt::format("doubled {} times: {}", doublings, problem);
  }
  return "";
}

std::string TheOldTableIsUsedAgain() {
  TableWorld world;
  world.beats = false;
  const OptionMap options = OneOfEach(false);
  Member writer(world, options);
  std::map<std::string, std::string> all;
  writer.Now(writer.Put("k0", "v"));
  Member reader(world, options);
  reader.Now(reader.Get("k0"));
  GrowTo(world, writer, 1, all);
  // Blocks as large as the old table.
  for (int i = 0; i < 4; ++i) {
    const std::string& key = all.begin()->first;
    all[key] = std::string(TableBytes(1) - 64 + static_cast<size_t>(i), 'v');
    writer.Now(writer.Put(key, all[key]));
  }
  return ReadAll(world, reader, all);
}

}  // namespace farside::index::continuity
