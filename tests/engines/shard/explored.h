// Tiny shard tables of which all interleavings are explored; with and without planted bugs.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "check/exhaustive/index_program.h"
#include "check/perform.h"
#include "index/shard/shard.h"
#include "pool/region/superblock.h"
#include "store/registration.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {

using check::Actor;
using check::Call;
using check::Participant;
using check::Program;
using check::Scenario;

inline const pool::ClientOptions kImpatient{.lease = {.lease = std::chrono::microseconds(1)}};

// What a client does before its first operation.
struct Prelude {
  bool learns = false;             // reads the directory: what happens afterwards it does not know
  std::vector<Call> unrecorded{};  // calls that change no value
  bool activates =
      false;  // makes an announced resize count. Clients that came before know of the announcement
};

// With a lease that does not end.
inline const pool::ClientOptions kPatient{.lease = {.lease = std::chrono::hours(1000)}};

// Steps of a client that are no operations.
inline Call Syncs() { return Call::Get("syncs"); }
inline Call Raises() { return Call::Get("raises"); }  // a sync that raises the epoch
inline Call Reclaims() { return Call::Get("reclaims"); }

// An engine with these options, and a scenario on a table of it. Must not move: programs refer to it.
class Explored {
 public:
  explicit Explored(OptionMap options, pool::ClientOptions pool_options = kImpatient)
      : options_(std::move(options)), pool_options_(pool_options) {
    engine_ = *MakeShardEngine(options_);
    options_["max_load"] = "0.000001";
    grower_ = *MakeShardEngine(options_);
    scenario.set_up = check::Format(*engine_, pool_options_);
    scenario.region_bytes = 2 * check::kExploredRegionBytes;
    scenario.prepare_in_turn = true;
    scenario.max_trips = 50;
  }
  Explored(const Explored&) = delete;
  Explored& operator=(const Explored&) = delete;

  // Phase 0: what is in the table to begin with, and whether a resize is announced then.
  Participant Begin(std::vector<Call> calls, bool announces = false) {
    return {.program = [this, calls = std::move(calls), announces](Actor& self) {
      return BeginWith(self, calls, announces);
    }};
  }
  Program Do(Prelude prelude, std::vector<Call> calls) {
    return [this, prelude = std::move(prelude), calls = std::move(calls)](Actor& self) {
      return Perform(self, prelude, calls);
    };
  }
  Program Verify() { return check::Verify(*engine_, pool_options_); }

  Scenario scenario;

 private:
  static Task<check::Outcome> PerformOne(fabric::Client& client, Index& index, Call call) {
    fabric::Op op(client, fabric::OpKind::kSearch);
    co_return co_await check::Perform(index, op, call);
  }
  FindEngine Only(std::shared_ptr<Engine> engine) const {
    return [engine](std::string_view, const OptionMap&) -> Result<std::shared_ptr<Engine>> { return engine; };
  }

  Task<Done> BeginWith(Actor& self, std::vector<Call> calls, bool announces) {
    fabric::Op op(self.client(), fabric::OpKind::kMaintenance);
    const std::unique_ptr<store::Registration> session = co_await store::Registration::Join(
        op, self.client(), Only(announces ? grower_ : engine_), pool_options_);
    {
      const OpenTable table = co_await session->tables().Open(op, "t");
      for (const Call& call : calls)
        co_await check::Recorded(self, call, PerformOne(self.client(), *table.index, call));
      for (int i = 0; i < 2 && announces; ++i) {
        co_await session->pool().Sync(op, false);
        co_await PerformOne(self.client(), *table.index, Call::Get("looks"));
      }
    }
    co_await session->Leave(op);
    co_return Done{};
  }

  Task<Done> Perform(Actor& self, Prelude prelude, std::vector<Call> calls) {
    fabric::Op op(self.client(), fabric::OpKind::kMaintenance);
    const std::unique_ptr<store::Registration> session =
        co_await store::Registration::Join(op, self.client(), Only(engine_), pool_options_);
    const OpenTable table = co_await session->tables().Open(op, "t");
    const fabric::FarAddr root = table.info.roots[0];
    if (prelude.activates) {
      const RootLine line = co_await op.InOrder(fabric::Read<RootLine>(root));
      const StateWord steady = StateWord::Steady(line.state.version() + line.state.steps());
      if (line.state.phase() != Phase::kAnnounced)
        co_return Error(ErrorCode::kInvalidArgument, "there is no resize that could be made to count");
      co_await op.InOrder(fabric::Cas(root, line.state.word(), steady.word()));
    }
    if (prelude.learns) co_await PerformOne(self.client(), *table.index, Call::Get("looks"));
    for (const Call& call : prelude.unrecorded) co_await PerformOne(self.client(), *table.index, call);
    for (const Call& call : calls) {
      if (call.key == Syncs().key || call.key == Raises().key) {
        co_await session->pool().Sync(op, call.key == Raises().key);
        continue;
      }
      if (call.key == Reclaims().key) {
        co_await session->pool().LookForRoom(op);
        continue;
      }
      co_await check::Recorded(self, call, PerformOne(self.client(), *table.index, call)).Outcome();
    }
    co_return Done{};
  }

  OptionMap options_;
  const pool::ClientOptions pool_options_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Engine> grower_;
};

// ---- scenarios

// One key, put and deleted by two and read by a third; its bucket has a hole that another key has left, so
// that inserts happen under the lock.
inline void PutsAndDeletesThroughAHole(Explored& explored) {
  explored.scenario.participants = {
      explored.Begin({Call::Put("other", "0"), Call::Put("p", "0"), Call::Delete("other")}),
      {.program = explored.Do({.learns = true}, {Call::Put("k", "1"), Call::Delete("k")}), .phase = 1},
      {.program = explored.Do({.learns = true}, {Call::Put("k", "2"), Call::Delete("k")}), .phase = 1},
      {.program = explored.Do({.learns = true}, {Call::Get("k"), Call::Get("k")}), .phase = 1},
      {.program = explored.Verify(), .phase = 2}};
}

// Two append one key at once; one of them may die, or lose a completion.
inline void AppendsOfOneKey(Explored& explored) {
  explored.scenario.participants = {
      {.program = explored.Do({.learns = true}, {Call::Put("k", "1"), Call::Delete("k")}),
       .may_die = true,
       .may_lose_completion = true},
      {.program = explored.Do({.learns = true}, {Call::Put("k", "2")})},
      {.program = explored.Do({.learns = true}, {Call::Get("k")})},
      {.program = explored.Do({}, {Call::Get("k"), Call::Put("k", "3")}), .phase = 1},
      {.program = explored.Verify(), .phase = 2}};
}

// A unit is split by a client that may die, while a client that only knows the announcement appends to it and
// another reads.
inline void SplitMeetsAnAppend(Explored& explored, const std::string& stays, const std::string& moves) {
  explored.scenario.participants = {
      explored.Begin({Call::Put(stays, "0")}, /*announces=*/true),
      {.program = explored.Do({.learns = true}, {Call::Put(moves, "1")}), .phase = 1},
      {.program = explored.Do({.learns = true}, {Call::Get(moves)}), .phase = 1},
      {.program = explored.Do({.learns = true, .activates = true}, {Call::Put(stays, "2")}),
       .may_die = true,
       .phase = 1},
      {.program = explored.Do({}, {Call::Get(moves), Call::Put(moves, "3"), Call::Get(stays)}), .phase = 2},
      {.program = explored.Verify(), .phase = 3}};
}

// Two units of a table of two are split at once. The key that did not fit into the first unit stands in the
// line of level 2 of the second one, and moves with its split: the client that splits the first unit looks
// for that key while it is on its way, to prove that there is none, or not.
struct OverflowKeys {
  std::string first;     // of the first unit, and in its bucket
  std::string overflow;  // of the first unit, and in the line of the second
  std::string second;    // of the second unit
};
inline void SplitsMeetAtLevel2(Explored& explored, const OverflowKeys& keys) {
  explored.scenario.participants = {
      explored.Begin({Call::Put(keys.first, "0"), Call::Put(keys.overflow, "0")}, /*announces=*/true),
      {.program = explored.Do({.learns = true, .activates = true}, {Call::Put(keys.first, "1")}), .phase = 1},
      {.program = explored.Do({.learns = true}, {Call::Put(keys.second, "1")}), .phase = 1},
      {.program = explored.Do({}, {Call::Get(keys.overflow)}), .phase = 2},
      {.program = explored.Verify(), .phase = 3}};
}

// A client remembers where a key is, and changes it. Another one deletes the key, and puts another one with
// the same tag into its slot, into the same block if it was given back by then.
struct TwinKeys {
  std::string fills;  // the other slot
  std::string key;
  std::string twin;  // with the tag of the key
};
inline void RememberedBlockIsReused(Explored& explored, const TwinKeys& keys, Call change) {
  explored.scenario.participants = {
      explored.Begin({Call::Put(keys.fills, "0"), Call::Put(keys.key, "0")}),
      // Its own block, which it can use again as soon as that is safe: as the second one, behind the first
      // block of the key.
      {.program = explored.Do({.learns = true, .unrecorded = {Call::Put(keys.key, "0")}},
                              {Call::Delete(keys.key), Raises(), Raises(), Reclaims(),
                               Call::Put(keys.fills, "1"), Call::Put(keys.twin, "2")}),
       .phase = 1},
      {.program = explored.Do({.learns = true},
                              {Call::Get(keys.key), Syncs(), Syncs(), change, Call::Get(keys.twin)}),
       .phase = 1},
      {.program = explored.Do({}, {Call::Get(keys.key), Call::Get(keys.twin)}), .phase = 2},
      {.program = explored.Verify(), .phase = 3}};
}

inline check::Exploration ExploreReusedBlock(const Call& change) {
  const auto tag = [](const KeyHash& hash) { return TagOf({}, hash.number(Candidate::kLevel1), 1); };
  static const TwinKeys keys{
      .fills = "p",
      .key = "k0",
      .twin = KeyFor([&](const KeyHash& hash) { return tag(hash) == tag(HashOf("k0")); }, 1)};
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}, {"cache", "4"}}, kPatient);
  explored.scenario.freedoms.promise_ordered_reads = true;
  explored.scenario.max_trips = 80;
  RememberedBlockIsReused(explored, keys, change);  // programs refer to the keys
  return check::Explore(explored.scenario);
}

// Two clients put a key, beside a third that changes it otherwise; all of them know where it is, or, without
// a cache, none. The values are counters.
inline check::Exploration ExplorePutsThatLose(const Call& beside, bool remember) {
  static constexpr std::string_view kZero{"\0\0\0\0\0\0\0\0", 8};
  static constexpr std::string_view kOne{"\1\0\0\0\0\0\0\0", 8};
  static constexpr std::string_view kTwo{"\2\0\0\0\0\0\0\0", 8};
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}, {"cache", remember ? "4" : "0"}}, kPatient);
  explored.scenario.freedoms.promise_ordered_reads = true;
  const Prelude learns{.learns = true, .unrecorded = {Call::Get("k")}};
  explored.scenario.participants = {
      explored.Begin({Call::Put("p", "0"), Call::Put("k", kZero), Call::Put("k", kZero)}),
      {.program = explored.Do(learns, {Call::Put("k", kOne), Call::Get("k")}), .phase = 1},
      {.program = explored.Do(learns, {Call::Put("k", kTwo)}), .phase = 1},
      {.program = explored.Do(learns, {beside}), .phase = 1},
      {.program = explored.Do({}, {Call::Get("k")}), .phase = 2},
      {.program = explored.Verify(), .phase = 3}};
  return check::Explore(explored.scenario);
}

// What one of the explorations has found; nothing if nothing is wrong. A client that waits for a lock that is
// never released, because the fabric never gets round to it, waits for ever: such paths are cut.
inline std::string ProblemOf(const check::Exploration& found) {
  const bool only_waits = found.conclusion == check::Conclusion::kCut;
  return found.conclusion == check::Conclusion::kNothing || only_waits ? "" : found.ToString();
}

}  // namespace farside::index::shard
