#include "tests/engines/chime/hotspot_scenarios.h"

#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "index/chime/key.h"

namespace farside::index::chime {

namespace {

// Keys of one home.
std::vector<std::string> KeysOfOneHome(const Shape& shape, size_t count) {
  std::map<size_t, std::vector<std::string>> by_home;
  for (uint64_t i = 0;; ++i) {
    const std::string key = EightBytes(i);
    std::vector<std::string>& keys = by_home[shape.HomeOf(TagOf(Hash64(key)))];
    keys.push_back(key);
    if (keys.size() == count) return keys;
  }
}

constexpr std::array kAllDoings = {Does::kGet, Does::kUpdate, Does::kPut, Does::kDelete};

// Does it, and says whether that was right, by what is there: `expected` has every key of the table.
std::string DoAndCompare(Member& member, Does does, const std::string& key,
                         std::map<std::string, std::string>& expected) {
  const auto known = expected.find(key);
  const bool there = known != expected.end();
  switch (does) {
    case Does::kGet: break;
    case Does::kUpdate:
      if (member.Now(member.Update(key, "replaced")) != there) return "an update is wrong about " + key;
      if (there) known->second = "replaced";
      break;
    case Does::kPut:
      if ((member.Now(member.Put(key, "replaced")) == PutOutcome::kReplaced) != there)
        return "a put is wrong about " + key;
      expected[key] = "replaced";
      break;
    case Does::kDelete:
      if (member.Now(member.Delete(key)) != there) return "a delete is wrong about " + key;
      if (there) expected.erase(known);
      break;
  }
  const auto now = expected.find(key);
  const std::string should = now == expected.end() ? "absent" : now->second;
  const std::string is = member.Now(member.Get(key));
  return is == should ? "" : fmt::format("{} is {} and not {}", key, is, should);
}

// Nothing is lost, and nothing stands twice.
std::string CompareAll(Member& member, const std::map<std::string, std::string>& expected) {
  const auto all = member.Now(member.List());
  if (std::multimap<std::string, std::string>(expected.begin(), expected.end()) != all)
    return fmt::format("there are {} records and not {}", all.size(), expected.size());
  for (const auto& [key, value] : expected) {
    const std::string got = member.Now(member.Get(key));
    if (got != value) return fmt::format("{} is {} and not {}", key, got, value);
  }
  return "";
}

}  // namespace

std::string AnotherKeyStandsThere(bool inline_keys, bool again) {
  for (const Does does : kAllDoings) {
    World world;
    const OptionMap options = WithHotspots(SmallLeaves(inline_keys));
    Member other(world, options);
    Member remembers(world, options);
    const std::vector<std::string> keys = KeysOfOneHome(SmallShape(inline_keys), 2);
    other.Now(other.Put(keys[0], "original"));
    remembers.Now(remembers.Get(keys[0]));
    other.Now(other.Delete(keys[0]));
    other.Now(other.Put(keys[1], "standing"));
    std::map<std::string, std::string> expected = {{keys[1], "standing"}};
    if (again) {
      other.Now(other.Put(keys[0], "returned"));
      expected[keys[0]] = "returned";
    }
    std::string wrong = DoAndCompare(remembers, does, keys[0], expected);
    if (wrong.empty()) wrong = CompareAll(other, expected);
    if (wrong.empty()) wrong = CompareAll(remembers, expected);
    if (!wrong.empty()) return wrong;
    const TableStats stats = remembers.Now(remembers.Stats());
    if (does == Does::kGet && DetailOf(stats, "right speculations") == 1) return "nothing was remembered";
    remembers.Now(remembers.Verify());
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

std::string RememberedKeysGoElsewhere(bool inline_keys, size_t moves) {
  for (const Does does : kAllDoings) {
    World world;
    const OptionMap options = WithHotspots(SmallLeaves(inline_keys));
    Member other(world, options);
    Member remembers(world, options);
    const Crowd crowd = CrowdFor(SmallShape(inline_keys), moves, 4);
    std::map<std::string, std::string> expected;
    for (const std::string& key : crowd.keys) {
      other.Now(other.Put(key, "original"));
      expected[key] = "original";
    }
    for (const std::string& key : crowd.keys) remembers.Now(remembers.Get(key));
    other.Now(other.Put(crowd.last, "inserted"));
    expected[crowd.last] = "inserted";
    for (size_t i = 0; i < crowd.keys.size(); i += 2) {
      other.Now(other.Put(crowd.keys[i], "since..."));
      expected[crowd.keys[i]] = "since...";
    }
    for (const std::string& key : crowd.keys) {
      const std::string wrong = DoAndCompare(remembers, does, key, expected);
      if (!wrong.empty()) return wrong;
    }
    const TableStats stats = remembers.Now(remembers.Stats());
    const double right = DetailOf(stats, "right speculations");
    if (does == Does::kGet && (right == 1 || right == 0)) return "they are all where they were, or none is";
    const std::string wrong = CompareAll(other, expected);
    if (!wrong.empty()) return wrong;
    remembers.Now(remembers.Verify());
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

std::string SpeculationMeetsAMove(uint64_t seeds, bool inline_keys, size_t moves) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    World world({.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    const OptionMap options = WithHotspots(SmallLeaves(inline_keys));
    Member writer(world, options);
    Member remembers(world, options);
    const Crowd crowd = CrowdFor(SmallShape(inline_keys), moves, 4);
    for (const std::string& key : crowd.keys) writer.Now(writer.Put(key, "original"));
    for (const std::string& key : crowd.keys) remembers.Now(remembers.Get(key));
    Task<PutOutcome> put = writer.Put(crowd.last, "inserted");
    put.Start();
    std::vector<Task<std::string>> gets;
    std::vector<Task<bool>> updates;
    std::map<std::string, std::string> expected = {{crowd.last, "inserted"}};
    for (size_t i = 0; i < crowd.keys.size(); ++i) {
      expected[crowd.keys[i]] = i % 2 == 0 ? "original" : "replaced";
      if (i % 2 == 0) gets.push_back(remembers.Get(crowd.keys[i]));
      if (i % 2 != 0) updates.push_back(remembers.Update(crowd.keys[i], "replaced"));
    }
    for (auto& get : gets) get.Start();
    for (auto& update : updates) update.Start();
    const auto done = [](auto& task) { return task.done(); };
    world.Drive([&] {
      return put.done() && std::all_of(gets.begin(), gets.end(), done) &&
             std::all_of(updates.begin(), updates.end(), done);
    });
    for (auto& get : gets) {
      const Result<std::string> got = get.TakeResult();
      if (!got.ok()) return got.error().ToString();
      if (*got != "original") return fmt::format("seed {}: a key is {}", seed, *got);
    }
    for (auto& update : updates) {
      const Result<bool> updated = update.TakeResult();
      if (!updated.ok()) return updated.error().ToString();
      if (!*updated) return fmt::format("seed {}: a key that is there was not updated", seed);
    }
    const std::string wrong = CompareAll(writer, expected);
    if (!wrong.empty()) return fmt::format("seed {}: {}", seed, wrong);
    writer.Now(writer.Verify());
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

std::string HotspotsWithABound() {
  World world({.region_bytes = 8 << 20});
  constexpr uint64_t kBytes = 4096;
  Member member(world, WithHotspots({{"keys", "inline"}}, kBytes));
  constexpr uint64_t kKeys = 1000;
  for (uint64_t i = 0; i < kKeys; ++i) member.Now(member.Put(EightBytes(i), "value of"));
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      if (member.Now(member.Get(EightBytes(i))) != "value of") return "a key is lost";
    }
  }
  const TableStats stats = member.Now(member.Stats());
  const double bytes = DetailOf(stats, "hotspot bytes");
  if (bytes > kBytes) return fmt::format("{} bytes are remembered", bytes);
  if (bytes < kBytes / 2) return "there was room for more";
  if (static_cast<double>(stats.client_bytes) < bytes + DetailOf(stats, "cache bytes"))
    return "they are not counted";
  if (DetailOf(stats, "hotspots") < kBytes / 32.0) return "too little is remembered";
  return world.problem;
}

}  // namespace farside::index::chime
