#include "tests/engines/sephash/full_pool_scenarios.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/engines/sephash/world.h"

namespace farside::index::sephash {

std::string TwoDeleteInAFullPool(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .region_bytes = 256 << 10};
    options.chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false);
    World world(options);
    const OptionMap table = {{"entries", "4"}, {"main", "64"}, {"segments", "2"}};
    Member one(world, table);
    Member other(world, table);
    std::vector<std::string> keys;
    while (true) {
      std::string key = fmt::format("k{}", keys.size());
      Member& member = keys.size() % 2 == 0 ? one : other;
      const Result<PutOutcome> put = member.Try(member.Put(key, std::string(100, 'v')));
      if (!put.ok() && put.error().code() == ErrorCode::kOutOfMemory) break;
      if (!put.ok()) return fmt::format("seed {}: {}", seed, put.error().ToString());
      keys.push_back(std::move(key));
    }
    std::set<std::string> left(keys.begin(), keys.end());
    for (size_t i = 0; i + 1 < keys.size(); i += 2) {
      std::vector<Task<bool>> tasks;
      tasks.push_back(one.Delete(keys[i]));
      tasks.push_back(other.Delete(keys[i + 1]));
      for (Task<bool>& task : tasks) task.Start();
      world.Drive([&] { return tasks[0].done() && tasks[1].done(); });
      if (!tasks[0].done() || !tasks[1].done()) return fmt::format("seed {}: a delete never ends", seed);
      std::vector<Result<bool>> ends = {tasks[0].TakeResult(), tasks[1].TakeResult()};
      tasks.clear();
      for (size_t k = 0; k < 2; ++k) {
        // Each may wait for the memory that the other one has retired; one after the other, they do not.
        if (!ends[k].ok() && ends[k].error().code() == ErrorCode::kOutOfMemory) {
          LetMemoryGo(world);
          Member& member = k == 0 ? one : other;
          ends[k] = member.Try(member.Delete(keys[i + k]));
        }
        if (!ends[k].ok())
          return fmt::format("seed {}: delete {}: {}", seed, i + k, ends[k].error().ToString());
        if (!*ends[k]) return fmt::format("seed {}: a key is not there", seed);
      }
      left.erase(keys[i]);
      left.erase(keys[i + 1]);
    }
    const auto listed = one.Now(one.List());
    if (listed.size() != left.size()) return fmt::format("seed {}: {} keys are left", seed, listed.size());
    other.Now(other.Verify());
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

namespace {

constexpr auto kNap = std::chrono::milliseconds(4);

// Two segments, each with one slot left in its round, in a pool without free memory.
class FullPool {
 public:
  explicit FullPool(uint64_t seed = 1)
      : play({{"entries", "4"}, {"main", "64"}, {"segments", "2"}},
             {.seed = seed, .region_bytes = 512 << 10}) {
    for (Member*& member : members) member = &play.Enter();
    for (int i = 0; i < kKeys; ++i) {
      play.Do(*members[0], Put(Key(0, i), "of one"));
      play.Do(*members[1], Put(Key(1, i), "of other"));
    }
    LetMemoryGo(play.world);
    for (Member* member : members) {
      for (uint64_t bytes = 4096; bytes > 0; bytes -= pool::kLine) {
        while (member->Try(member->Hold(bytes)).ok()) continue;
      }
    }
  }
  uint64_t merges() const { return members[0]->merge_counts().merges + members[1]->merge_counts().merges; }
  std::string End() {
    play.Finish();
    for (Member* member : members) member->GiveBack();
    return play.End();
  }

  static constexpr int kKeys = 7;
  static std::string Key(uint64_t segment, int nth) { return KeyOf(segment, 1, nth); }

  Play play;
  std::array<Member*, 2> members{};
};

}  // namespace

// Each client deletes a key of one of the segments. A delete writes no block; but the merge behind it needs
// memory, of which there are the two spares and nothing else.
std::string TwoNeedASpare(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    FullPool pool(seed);
    const uint64_t merges = pool.merges();
    pool.play.Begin(*pool.members[0], Delete(FullPool::Key(0, 0)), seed % 8);
    pool.play.Begin(*pool.members[1], Delete(FullPool::Key(1, 0)));
    pool.play.Finish();
    const uint64_t merged = pool.merges() - merges;
    const Root root = pool.play.image().root();
    const std::string problem = pool.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
    // The one that comes second to a spare takes the other one.
    if (merged != 2) return fmt::format("seed {}: {} clients had memory to merge", seed, merged);
    if (root.spares[0].offset() != 0 || root.spares[1].offset() != 0)
      return fmt::format("seed {}: a spare was left", seed);
  }
  return "";
}

// The first spare becomes the MainSegment of segment 0, which the sleeper reads. The second one replaces it,
// and it becomes a spare again. Then segment 1 needs memory.
std::string SpareIsStillRead() {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    FullPool pool;
    Member& writer = *pool.members[0];
    Member& sleeper = pool.play.Enter();
    pool.play.Do(writer, Delete(FullPool::Key(0, 0)));
    const uint64_t main = pool.play.image().MetaAt(0).main();
    pool.play.Begin(sleeper, Get(FullPool::Key(0, FullPool::kKeys - 1)), steps);
    more = !pool.play.over();
    pool.play.world.fabric.Sleep(sleeper.client().id(), kNap);
    for (int i = 1; i <= 4; ++i) pool.play.Do(writer, Delete(FullPool::Key(0, i)));
    const auto spares = pool.play.image().root().spares;
    if (std::none_of(spares.begin(), spares.end(), [&](SpareWord word) { return word.offset() == main; }))
      return "the MainSegment is no spare";
    pool.play.Do(writer, Delete(FullPool::Key(1, 0)));
    const std::string problem = pool.End();
    if (!problem.empty()) return fmt::format("asleep after {} steps: {}", steps, problem);
  }
  return "";
}

}  // namespace farside::index::sephash
