#include "tests/engines/chime/merge_scenarios.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace farside::index::chime {

namespace {

// A leaf for each key, all of them under one parent.
OptionMap LonelyKeys(bool inline_keys) {
  return {{"keys", inline_keys ? "inline" : "bytes"}, {"span", "1"}, {"fanout", "16"}};
}

// Of the same first bytes, so that with keys=bytes separators have blocks of their own.
std::string NthKey(bool inline_keys, char letter) {
  return inline_keys ? std::string("letter: ").replace(7, 1, 1, letter)
                     : std::string("a letter of the alphabet: ") + letter;
}

// A table with the keys a to f.
struct Alphabet {
  explicit Alphabet(bool with_inline_keys, const WorldOptions& options = {})
      : inline_keys(with_inline_keys), world(options) {}

  std::string Key(char letter) const { return NthKey(inline_keys, letter); }
  std::unique_ptr<Member> Enter() { return std::make_unique<Member>(world, LonelyKeys(inline_keys)); }
  void Fill(Member& member) {
    for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'}) member.Now(member.Put(Key(letter), "original"));
    member.Now(member.Maintain());
  }
  // All of them move on, until what any of them has retired is free.
  void LetGo(const std::vector<Member*>& members) {
    for (int round = 0; round < 8; ++round) {
      for (Member* member : members) member->Now(member->Maintain());
    }
  }
  // The survivors look after what the dead have left, all at the same time: a client that sweeps waits for
  // the others to move on.
  static Task<uint32_t> Tend(Member& member) {
    co_await member.Pause(std::chrono::microseconds(300));
    co_await member.Maintain();
    const uint32_t others = co_await member.Others();
    co_return others;
  }
  void ReleaseDeadSlots(const std::vector<Member*>& survivors) {
    std::vector<std::optional<Task<uint32_t>>> tasks(survivors.size());
    int rounds = 0;
    bool released = false;
    world.Drive([&] {
      bool all_done = true;
      for (size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].has_value() && tasks[i]->done()) {
          const Result<uint32_t> others = tasks[i]->TakeResult();
          released |= others.ok() && *others < survivors.size();
          tasks[i].reset();
          ++rounds;
        }
        if (!tasks[i].has_value() && !released && rounds < 1000) {
          tasks[i].emplace(Tend(*survivors[i]));
          tasks[i]->Start();
        }
        all_done &= !tasks[i].has_value();
      }
      return all_done;
    });
    if (!released) world.Complain("the slots of dead clients were never released");
  }
  // Memory that is free is used: by leaves of keys behind all others, which end with this letter.
  void Reuse(Member& member, char letter = 'x') {
    for (int i = 0; i < 60; ++i) {
      std::string key = Key('z');
      key.back() = letter;
      key[key.size() - 2] = static_cast<char>(i);
      key[0] = '~';
      member.Now(member.Put(key, "of reuse"));
    }
  }
  uint64_t Leaves(Member& member) {
    return static_cast<uint64_t>(DetailOf(member.Now(member.Stats()), "leaves"));
  }
  // Says what is wrong with the keys as this client finds them, by all ways.
  std::string Check(Member& member, const std::map<char, std::string>& expected) {
    for (const auto& [letter, value] : expected) {
      const std::string got = member.Now(member.Get(Key(letter)));
      if (got != value) return fmt::format("{} is {} and not {}", letter, got, value);
      const std::vector<Record> page = member.Now(member.Scan(KeyRange::From(Key(letter)), 1));
      const std::string scanned = !page.empty() && page[0].key == Key(letter) ? page[0].value : "absent";
      if (scanned != value) return fmt::format("{} is {} in a scan, and not {}", letter, scanned, value);
      const std::string last = member.Now(member.Last(KeyRange::Between(Key('a'), Key(letter) + '\0')));
      if ((last == Key(letter)) != (value != "absent"))
        return fmt::format("the last one up to {} is \"{}\"", letter, last);
    }
    return "";
  }

  bool inline_keys;
  World world;
};

}  // namespace

std::string KeyGoesAndComesBack(bool inline_keys, bool reused) {
  Alphabet scenario(inline_keys);
  const auto writer = scenario.Enter();
  const auto reader = scenario.Enter();
  scenario.Fill(*writer);
  const std::map<char, std::string> before = {{'a', "original"}, {'b', "original"}, {'c', "original"},
                                              {'d', "original"}, {'e', "original"}, {'f', "original"}};
  std::string problem = scenario.Check(*reader, before);
  const uint64_t leaves = scenario.Leaves(*writer);
  for (const char letter : {'c', 'd'}) writer->Now(writer->Delete(scenario.Key(letter)));
  if (scenario.Leaves(*writer) + 2 != leaves) return "no leaf has gone";
  std::map<char, std::string> after = before;
  after['c'] = after['d'] = "absent";
  if (reused) {
    scenario.LetGo({writer.get(), reader.get()});
    scenario.Reuse(*writer);
  } else if (problem.empty()) {
    problem = scenario.Check(*reader, after);
  }
  // Some others, so that a client that is led to the wrong leaf finds no room or none of its own.
  writer->Now(writer->Put(scenario.Key('d'), "returned"));
  writer->Now(writer->Put(scenario.Key('c'), "returned"));
  after['c'] = after['d'] = "returned";
  if (problem.empty()) problem = scenario.Check(*reader, after);
  if (problem.empty()) problem = scenario.Check(*writer, after);
  reader->Now(reader->Verify());
  return problem.empty() ? scenario.world.problem : problem;
}

std::string KnownPlacesAreForgotten(bool inline_keys) {
  Alphabet scenario(inline_keys);
  const auto writer = scenario.Enter();
  const auto reader = scenario.Enter();
  scenario.Fill(*writer);
  const auto known = [&] { return DetailOf(reader->Now(reader->Stats()), "hotspots"); };
  for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'}) reader->Now(reader->Get(scenario.Key(letter)));
  if (known() != 6) return fmt::format("it knows {} places and not 6", known());
  writer->Now(writer->Delete(scenario.Key('c')));
  scenario.LetGo({writer.get(), reader.get()});
  reader->Now(reader->Get(scenario.Key('a')));
  if (known() != 1) return fmt::format("it knows {} places and not 1", known());
  return scenario.world.problem;
}

std::string ALeafIsSplitAndGoes(bool inline_keys, size_t nodes) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    Alphabet scenario(inline_keys, {.nodes = nodes});
    const auto reader = scenario.Enter();
    const auto owner = scenario.Enter();
    for (const char letter : {'a', 'c', 'e', 'g'}) owner->Now(owner->Put(scenario.Key(letter), "original"));
    for (const char letter : {'a', 'c', 'e', 'g'}) reader->Now(reader->Get(scenario.Key(letter)));
    owner->Now(owner->Put(scenario.Key('d'), "original"));
    more = owner->RunAndDieAt(verb, kind, owner->Delete(scenario.Key('c')));
    const std::string got = reader->Now(reader->Get(scenario.Key('d')));
    return got != "original" ? "d is " + got : scenario.world.problem;
  });
}

std::string TwoLeavesGo(bool inline_keys) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    Alphabet scenario(inline_keys);
    const auto second = scenario.Enter();
    const auto late = scenario.Enter();
    const auto owner = scenario.Enter();
    scenario.Fill(*owner);
    for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'}) late->Now(late->Get(scenario.Key(letter)));
    scenario.LetGo({second.get(), late.get(), owner.get()});  // so that none of them has to sync soon
    more = owner->RunAndDieAt(verb, kind, owner->Delete(scenario.Key('c')));
    for (const char letter : {'f', 'e', 'd'}) {
      second->Now(second->Delete(scenario.Key(letter)));
      second->Now(second->Pause(std::chrono::milliseconds(12)));  // so that it learns which client is dead
    }
    late->Now(late->Put(scenario.Key('c'), "late one"));
    const std::string got = second->Now(second->Get(scenario.Key('c')));
    return got != "late one" ? "c is " + got : scenario.world.problem;
  });
}

std::string CursorStandsAtALeafThatGoes(bool inline_keys) {
  Alphabet scenario(inline_keys);
  const auto writer = scenario.Enter();
  const auto reader = scenario.Enter();
  scenario.Fill(*writer);
  Cursor cursor;
  std::vector<Record> seen;
  const auto next = [&]() -> Task<bool> {
    fabric::Op op(reader->client(), fabric::OpKind::kScan);
    const bool more = co_await reader->index().Next(op, cursor, seen);
    co_return more;
  };
  while (seen.size() < 2) reader->Now(next());
  writer->Now(writer->Delete(scenario.Key('c')));
  scenario.LetGo({writer.get(), reader.get()});
  scenario.Reuse(*writer);
  int pages = 0;
  while (reader->Now(next())) {
    if (++pages > 1000) return "there is no end to it";
  }
  for (const char letter : {'a', 'b', 'd', 'e', 'f'}) {
    const auto is_it = [&](const Record& record) { return record.key == scenario.Key(letter); };
    if (std::none_of(seen.begin(), seen.end(), is_it)) return fmt::format("{} was never returned", letter);
  }
  return scenario.world.problem;
}

std::string DeleterDies(bool inline_keys, size_t nodes) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    Alphabet scenario(inline_keys, {.nodes = nodes});
    const auto reader = scenario.Enter();
    auto silent = scenario.Enter();  // remembers, and looks at nothing until the end
    auto survivor = scenario.Enter();
    auto owner = scenario.Enter();
    scenario.Fill(*owner);
    std::map<char, std::string> expected = {{'a', "original"}, {'b', "original"}, {'c', "original"},
                                            {'d', "original"}, {'e', "original"}, {'f', "original"}};
    std::string problem = scenario.Check(*reader, expected);
    if (problem.empty()) problem = scenario.Check(*silent, expected);
    const std::vector<Member*> survivors = {reader.get(), silent.get(), survivor.get()};
    scenario.LetGo(survivors);
    more = owner->RunAndDieAt(verb, kind, owner->Delete(scenario.Key('c')));

    // A client that comes first finds it, or does not; from then on that is how it is.
    expected['c'] = reader->Now(reader->Get(scenario.Key('c')));
    if (expected['c'] != "original" && expected['c'] != "absent") return "c is " + expected['c'];
    if (problem.empty()) problem = scenario.Check(*reader, expected);
    if (verb % 2 == 0) {
      survivor->Now(survivor->Put(scenario.Key('c'), "amid all"));
      expected['c'] = "amid all";
      if (problem.empty()) problem = scenario.Check(*reader, expected);
    }
    // What it has left is swept, and used again.
    if (owner->crashed()) {
      owner.reset();
      scenario.ReleaseDeadSlots(survivors);
    }
    scenario.LetGo(survivors);
    scenario.Reuse(*survivor);
    scenario.Reuse(*reader, 'y');  // a client that has swept it
    survivor->Now(survivor->Put(scenario.Key('c'), "returned"));
    expected['c'] = "returned";
    // The key itself first: on the way to others it may learn what has happened.
    const std::string got = silent->Now(silent->Get(scenario.Key('c')));
    if (got != "returned" && problem.empty()) problem = "c is " + got + " and not returned";
    if (problem.empty()) problem = scenario.Check(*silent, expected);
    if (problem.empty()) problem = scenario.Check(*reader, expected);
    // They are gone without a word, and the last one finds what they have left.
    owner.reset();
    survivor.reset();
    silent.reset();
    reader->Audit();
    return problem.empty() ? scenario.world.problem : problem;
  });
}

std::string TwoOperationsLearnOfAMerge(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Alphabet scenario(true, {.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    const auto writer = scenario.Enter();
    scenario.Fill(*writer);
    const auto reader = scenario.Enter();  // which knows nothing
    Task<bool> deletes = writer->Delete(scenario.Key('c'));
    deletes.Start();
    for (uint64_t step = 0; step < seed % 16; ++step) scenario.world.fabric.Step();
    std::vector<Task<std::string>> gets;
    for (const char letter : {'d', 'e', 'b', 'f'}) gets.push_back(reader->Get(scenario.Key(letter)));
    for (Task<std::string>& get : gets) get.Start();
    const auto over = [](const auto& get) { return get.done(); };
    scenario.world.Drive([&] { return deletes.done() && std::all_of(gets.begin(), gets.end(), over); });
    for (Task<std::string>& get : gets) {
      const Result<std::string> got = get.TakeResult();
      if (!got.ok() || *got != "original") return fmt::format("seed {}: a key is lost", seed);
    }
    scenario.LetGo({writer.get(), reader.get()});
    scenario.Reuse(*writer);
    writer->Now(writer->Put(scenario.Key('c'), "returned"));
    const std::string got = reader->Now(reader->Get(scenario.Key('c')));
    if (got != "returned") return fmt::format("seed {}: c is {}", seed, got);
    if (!scenario.world.problem.empty()) return fmt::format("seed {}: {}", seed, scenario.world.problem);
  }
  return "";
}

std::string AnOldReadArrivesLate(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Alphabet scenario(true, {.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    World& world = scenario.world;
    const auto writer = scenario.Enter();
    scenario.Fill(*writer);
    const auto reader = scenario.Enter();  // which knows nothing
    scenario.LetGo({writer.get(), reader.get()});
    Task<std::string> get = reader->Get(scenario.Key('d'));
    get.Start();
    for (uint64_t step = 0; step < seed % 24; ++step) world.fabric.Step();
    if (!get.done()) world.fabric.Sleep(reader->client().id(), std::chrono::milliseconds(2));
    writer->Now(writer->Delete(scenario.Key('c')));
    // A cursor begins at the root block, which tells of the merge.
    Cursor cursor;
    reader->Now(reader->Page(cursor));
    world.Drive([&] { return get.done(); });
    const Result<std::string> got = get.TakeResult();
    if (!got.ok() || *got != "original") return fmt::format("seed {}: a key is lost", seed);
    scenario.LetGo({writer.get(), reader.get()});
    scenario.Reuse(*writer);
    writer->Now(writer->Put(scenario.Key('c'), "returned"));
    const std::string back = reader->Now(reader->Get(scenario.Key('c')));
    if (back != "returned") return fmt::format("seed {}: c is {}", seed, back);
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

namespace {

// What is left of a tree without keys, if it is more than the first node of each level; with keys=inline each
// half has a leaf and its parent.
std::string MoreThanFirstNodes(bool inline_keys, const TableStats& stats) {
  const double halves = inline_keys ? 2 : 1;
  const double least = halves + DetailOf(stats, "levels") - 2;  // of inner nodes
  const double leaves = DetailOf(stats, "leaves");
  const double inner_nodes = DetailOf(stats, "inner nodes");
  if (leaves == halves && inner_nodes == least) return "";
  return fmt::format("{} leaves and {} inner nodes were left, not {} and {}", leaves, inner_nodes, halves,
                     least);
}

}  // namespace

std::string KeysComeAndGo(bool inline_keys, size_t nodes) {
  constexpr int kRounds = 12;
  constexpr int kKeys = 240;
  World world({.region_bytes = 8 << 20, .nodes = nodes});
  const OptionMap options = {
      {"keys", inline_keys ? "inline" : "bytes"}, {"span", "8"}, {"neighbourhood", "4"}, {"fanout", "16"}};
  uint64_t least = 0;  // index bytes of the first nodes
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<Member>> members;
    for (int i = 0; i < 3; ++i) members.push_back(std::make_unique<Member>(world, options));
    std::vector<std::string> keys = {std::string(8, '\0'), std::string(8, '\xff')};
    for (int i = 0; i < kKeys; ++i) {
      const int number = (i * 7919 + round * 1117) % 9973;
      keys.push_back(inline_keys ? EightBytes(number)
                                 : fmt::format("a key of many bytes, number {:06}", number));
    }
    // In every second round, one after the other: then no client finds a lock taken.
    const bool in_turn = round % 2 == 0;
    const auto by_all = [&](auto start) {
      const size_t at_once = in_turn ? 1 : members.size();
      for (size_t begin = 0; begin < keys.size(); begin += at_once) {
        std::vector<std::invoke_result_t<decltype(start), Member&, std::string>> tasks;
        for (size_t i = begin; i < begin + at_once && i < keys.size(); ++i)
          tasks.push_back(start(*members[i % members.size()], keys[i]));
        for (auto& task : tasks) task.Start();
        world.Drive(
            [&] { return std::all_of(tasks.begin(), tasks.end(), [](auto& t) { return t.done(); }); });
        for (auto& task : tasks) {
          const auto end = task.TakeResult();
          if (!end.ok()) world.Complain(end.error().ToString());
        }
      }
    };
    by_all([](Member& member, std::string key) { return member.Put(std::move(key), "original"); });
    const auto listed = members[0]->Now(members[0]->List());
    if (listed.size() != keys.size()) return fmt::format("round {}: {} keys are there", round, listed.size());
    by_all([](Member& member, std::string key) { return member.Delete(std::move(key)); });
    if (!members[1]->Now(members[1]->Scan(KeyRange::All(), 10)).empty()) return "there is something left";
    const TableStats stats = members[2]->Now(members[2]->Stats());
    const std::string more = MoreThanFirstNodes(inline_keys, stats);
    if (in_turn && !more.empty()) return fmt::format("round {}: {}", round, more);
    if (in_turn) least = stats.index_bytes;
    // A client that finds a lock taken at each attempt leaves a node where it is for now.
    if (stats.index_bytes > 2 * least)
      return fmt::format("round {}: {} bytes were left, {} before", round, stats.index_bytes, least);
    // The last one that leaves accounts for every byte.
    for (int turn = 0; turn < 8; ++turn) {
      for (const auto& member : members) member->Now(member->Maintain());
    }
    while (members.size() > 1) members.pop_back();
    members[0]->Audit();
    if (!world.problem.empty()) return fmt::format("round {}: {}", round, world.problem);
  }
  return "";
}

std::string ClientWaitsForALock() {
  Alphabet scenario(false);
  const auto other = scenario.Enter();
  const auto waiter = scenario.Enter();
  const auto owner = scenario.Enter();
  scenario.Fill(*owner);
  scenario.LetGo({other.get(), waiter.get(), owner.get()});
  const uint64_t first = scenario.world.fabric.verbs_posted();
  scenario.world.beats = false;
  scenario.world.fabric.set_fault({first, FaultKind::kSleepAfter});
  Task<PutOutcome> slept = owner->Put(scenario.Key('c'), "of owner");
  slept.Start();
  scenario.world.Drive([&] { return slept.done() || scenario.world.fabric.fault_fired(); });
  if (slept.done()) return "the owner did not fall asleep";
  scenario.world.fabric.set_fault({~uint64_t{0}, FaultKind::kCrashBefore});
  Task<PutOutcome> put = waiter->Put(scenario.Key('c'), "of waiter");
  put.Start();
  // The owner is asleep, and its epoch with it; what the waiter has published is its own.
  const fabric::NodeId node{0};
  const uint64_t before = waiter->pool().published_epoch(node);
  other->pool().AfterGrace(node, [] {});
  bool moved = false;
  while (!put.done() && !moved) {
    other->Now(other->Maintain());
    other->Now(other->Pause(std::chrono::microseconds(200)));
    moved = waiter->pool().published_epoch(node) > before;
  }
  if (!moved) return "who waits for a lock keeps its pin";
  scenario.world.Drive([&] { return put.done(); });
  const Result<PutOutcome> end = put.TakeResult();
  if (!end.ok()) return end.error().ToString();
  if (other->Now(other->Get(scenario.Key('c'))) != "of waiter") return "it is lost";
  return scenario.world.problem;
}

std::string TableIsDroppedUnderAWaiter() {
  Alphabet scenario(true);
  World& world = scenario.world;
  const auto owner = scenario.Enter();
  const auto waiter = scenario.Enter();
  const auto dropper = scenario.Enter();
  scenario.Fill(*owner);
  scenario.LetGo({owner.get(), waiter.get(), dropper.get()});
  // All leaves are locked by the owner, which lives.
  const fabric::FarAddr root_block = owner->roots().front();
  const std::span<std::byte> memory = world.fabric.memory(root_block.node);
  const auto set_locks = [&](uint64_t lock) {
    const Shape shape{.span = 1, .neighbourhood = 1, .fanout = 16, .inline_keys = true};
    for (const NodePtr leaf : NodesOf(memory, shape, root_block.offset, 0))
      StoreU64(BytesOf(memory, leaf), lock);
  };
  set_locks(pool::LockWord::HeldBy(owner->pool().member(root_block.node).self()).word());
  Task<PutOutcome> put = waiter->Put(scenario.Key('c'), "too late");
  put.Start();
  Task<Done> drop = dropper->Drop();
  drop.Start();
  // The others move on, as a client that drops a table has to wait for.
  std::array<std::optional<Task<uint32_t>>, 2> tended;
  world.Drive([&] {
    bool all_done = drop.done();
    for (size_t i = 0; i < tended.size(); ++i) {
      if (tended[i].has_value() && tended[i]->done()) tended[i].reset();
      if (!tended[i].has_value() && !drop.done()) {
        tended[i].emplace(Alphabet::Tend(i == 0 ? *owner : *waiter));
        tended[i]->Start();
      }
      all_done &= !tended[i].has_value();
    }
    return all_done;
  });
  const Result<Done> dropped = drop.TakeResult();
  if (!dropped.ok()) return dropped.error().ToString();
  // Whatever the memory is used for now, it is not a leaf that is locked.
  set_locks(0);
  world.Drive([&] { return put.done(); });
  const Result<PutOutcome> end = put.TakeResult();
  if (end.ok()) return "a key was put into a table that was dropped";
  if (end.error().code() != ErrorCode::kContended) return end.error().ToString();
  return world.problem;
}

}  // namespace farside::index::chime
