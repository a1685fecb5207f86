#include "tests/engines/chime/scenarios.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.h"
#include "index/chime/key.h"

namespace farside::index::chime {

std::string ReadersMeetAMove(uint64_t seeds, size_t moves, bool by_scan) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    fabric::sim::Chaos chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false);
    World world({.seed = seed, .chaos = chaos});
    const OptionMap options = SmallLeaves(true);
    Member writer(world, options);
    Member reader(world, options);
    const Crowd crowd = CrowdFor(SmallShape(true), moves, 4);
    for (const std::string& key : crowd.keys) writer.Now(writer.Put(key, "value of"));
    reader.Now(reader.Get(crowd.keys[0]));
    Task<PutOutcome> put = writer.Put(crowd.last, "value of");
    put.Start();
    std::vector<Task<std::string>> gets;
    std::vector<Task<std::vector<Record>>> scans;
    if (by_scan) {
      for (int i = 0; i < 3; ++i) scans.push_back(reader.Scan(KeyRange::All(), 100));
      for (auto& scan : scans) scan.Start();
    } else {
      for (const std::string& key : crowd.keys) gets.push_back(reader.Get(key));
      for (auto& get : gets) get.Start();
    }
    world.Drive([&] {
      return put.done() && std::all_of(gets.begin(), gets.end(), [](auto& get) { return get.done(); }) &&
             std::all_of(scans.begin(), scans.end(), [](auto& scan) { return scan.done(); });
    });
    for (size_t i = 0; i < gets.size(); ++i) {
      const Result<std::string> got = gets[i].TakeResult();
      if (!got.ok()) return got.error().ToString();
      if (*got != "value of") return fmt::format("seed {}: {} is {}", seed, crowd.keys[i], *got);
    }
    for (auto& scan : scans) {
      const Result<std::vector<Record>> page = scan.TakeResult();
      if (!page.ok()) return page.error().ToString();
      for (const std::string& key : crowd.keys) {
        const auto times = std::count_if(page->begin(), page->end(),
                                         [&](const Record& record) { return record.key == key; });
        if (times != 1) return fmt::format("seed {}: a scan has {} {} times", seed, key, times);
      }
    }
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

std::string InserterDies(bool inline_keys, size_t moves, size_t nodes) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    World world({.nodes = nodes});
    const OptionMap options = SmallLeaves(inline_keys);
    auto owner = std::make_unique<Member>(world, options);
    auto writer = std::make_unique<Member>(world, options);
    Member& survivor = *writer;
    Member other(world, options);
    const Crowd crowd = CrowdFor(SmallShape(inline_keys), moves, 4);
    std::map<std::string, std::string> expected;
    for (const std::string& key : crowd.keys) {
      owner->Now(owner->Put(key, "original"));
      expected[key] = "original";
    }
    // The others know the leaf as it was.
    survivor.Now(survivor.Get(crowd.keys[0]));
    other.Now(other.Get(crowd.keys[0]));

    more = owner->RunAndDieAt(verb, kind, owner->Put(crowd.last, "inserted"));
    const bool finished = !owner->crashed();

    // It is not there, and would be in the new leaf. A client that looks for it may insert the pivot of that
    // leaf.
    if (survivor.Now(survivor.Get("kzzzzzzz")) != "absent") return "a key is there that no client put";
    // Every second key is changed by one and looked at by the other, from the last one on: those leave first.
    for (size_t i = crowd.keys.size(); i-- > 0;) {
      const std::string& key = crowd.keys[i];
      if (i % 2 == 0) {
        survivor.Now(survivor.Put(key, "replaced"));
        expected[key] = "replaced";
      }
      const std::string got = other.Now(other.Get(key));
      if (got != expected[key]) return fmt::format("{} is {} and not {}", key, got, expected[key]);
    }
    const std::string last = other.Now(other.Get(crowd.last));
    if (last != "inserted" && (finished || last != "absent")) return fmt::format("the new key is {}", last);
    if (last == "inserted") expected[crowd.last] = last;
    const auto all = other.Now(other.List());
    if (!std::equal(all.begin(), all.end(), expected.begin(), expected.end(),
                    [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }))
      return fmt::format("a cursor returns {} records, there are {}", all.size(), expected.size());
    survivor.Now(survivor.Put(crowd.last, "inserted"));
    // They are gone without a word, and the last one finds what they have left.
    owner.reset();
    writer.reset();
    other.Audit();
    return world.problem;
  });
}

std::string ParentHasNoPivot() {
  World world;
  const OptionMap options = SmallLeaves(true);
  auto owner = std::make_unique<Member>(world, options);
  const Crowd crowd = CrowdFor(SmallShape(true), 0, 4);
  for (const std::string& key : crowd.keys) owner->Now(owner->Put(key, "original"));
  // Its verbs: lock, header, two of the neighbourhood at most, the lines, then the seven of the split, the
  // last of which unlocks the leaf. A client that dies right after that has not inserted the pivot.
  bool died_in_time = false;
  for (uint64_t verb = 6; verb < 16 && !died_in_time; ++verb) {
    owner->RunAndDieAt(verb, FaultKind::kCrashAfter, owner->Put(crowd.last, "inserted"));
    if (!owner->crashed()) return "the writer did not die";
    Member looks(world, options);
    const TableStats stats = looks.Now(looks.Stats());
    died_in_time = DetailOf(stats, "leaves") == 3;  // one of them is for keys from the middle on
    if (!world.problem.empty()) return world.problem;
    owner = std::make_unique<Member>(world, options);
  }
  if (!died_in_time) return "there was no split";
  const std::string moved = *std::max_element(crowd.keys.begin(), crowd.keys.end());
  owner->Now(owner->Get(moved));
  Member fresh(world, options);
  fresh.Now(fresh.Get(moved));
  const uint64_t retries = fresh.tally(fabric::OpKind::kSearch).retries;
  if (retries != 0) return fmt::format("a client that comes later has to go along {} siblings", retries);
  return world.problem;
}

std::string ScanWithOldNodes() {
  World world;
  const OptionMap options = SmallLeaves(true);
  Member writer(world, options);
  Member scanner(world, options);
  std::vector<std::string> keys;
  const auto put = [&](uint64_t i) {
    keys.push_back(EightBytes(i));
    writer.Now(writer.Put(keys.back(), "value of"));
  };
  for (uint64_t i = 0; i < 40; ++i) put(10 * i);
  scanner.Now(scanner.Scan(KeyRange::All(), 1000));
  for (uint64_t i = 0; i < 60; ++i) put(5 * i + 1);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const std::vector<Record> page = scanner.Now(scanner.Scan(KeyRange::All(), 1000));
  if (page.size() != keys.size())
    return fmt::format("a scan returns {} of {} keys", page.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (page[i].key != keys[i]) return fmt::format("{} comes where {} should", page[i].key, keys[i]);
  }
  return world.problem;
}

std::string TwoKeysWithOneTag() {
  std::map<uint64_t, std::string> by_tag;
  std::string first;
  std::string second;
  for (int i = 0; second.empty(); ++i) {
    const std::string key = fmt::format("the same{}", i);
    const auto [known, is_new] = by_tag.emplace(TagOf(Hash64(key)), key);
    if (is_new) continue;
    first = known->second;
    second = key;
  }
  World world;
  Member member(world, {});
  member.Now(member.Put(first, "of the first"));
  if (member.Now(member.Get(second)) != "absent") return "one key is taken for the other";
  member.Now(member.Put(second, "of the second"));
  if (member.Now(member.Get(first)) != "of the first") return "one key has replaced the other";
  return world.problem;
}

std::string KeysOfZerosAndOnes() {
  World world;
  Member member(world, {{"keys", "inline"}});
  const std::string zeros(8, '\0');
  const std::string ones(8, '\xff');
  member.Now(member.Put(zeros, zeros));
  member.Now(member.Put(ones, ones));
  if (member.Now(member.Get(zeros)) != zeros || member.Now(member.Get(ones)) != ones)
    return "one of them is lost";
  if (member.Now(member.Put(zeros, ones)) != PutOutcome::kReplaced) return "zeros were inserted twice";
  if (member.Now(member.List()).size() != 2) return "there are not two of them";
  if (!member.Now(member.Delete(zeros)) || member.Now(member.Get(zeros)) != "absent") return "zeros stay";
  return world.problem;
}

std::string UpdateOfAnAbsentKey() {
  World world;
  Member member(world, {});
  Member other(world, {});
  if (member.Now(member.Update("k", "v"))) return "it was there";
  other.Now(other.Put("k", "v"));
  return world.problem;
}

std::string CacheWithABound() {
  World world({.region_bytes = 8 << 20});
  constexpr uint64_t kBytes = 4096;
  Member member(world, {{"keys", "inline"},
                        {"span", "4"},
                        {"neighbourhood", "4"},
                        {"fanout", "8"},
                        {"hotspot", "0"},
                        {"cache", std::to_string(kBytes)}});
  for (uint64_t i = 0; i < 600; ++i) member.Now(member.Put(EightBytes(i * 7919 % 10007), "value of"));
  for (uint64_t i = 0; i < 600; ++i) {
    if (member.Now(member.Get(EightBytes(i * 7919 % 10007))) != "value of") return "a key is lost";
  }
  const TableStats stats = member.Now(member.Stats());
  if (stats.client_bytes > kBytes) return fmt::format("{} bytes are remembered", stats.client_bytes);
  if (DetailOf(stats, "cached nodes") < 2) return "nothing is remembered";
  return world.problem;
}

}  // namespace farside::index::chime
