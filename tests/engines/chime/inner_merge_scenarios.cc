#include "tests/engines/chime/inner_merge_scenarios.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace farside::index::chime {

namespace {

using std::chrono::milliseconds;

std::string NthKey(bool inline_keys, int i) {
  return inline_keys ? fmt::format("key {:04}", i) : fmt::format("a key with a long prefix {:04}", i);
}

// A leaf for each key.
OptionMap LonelyKeys(bool inline_keys, int fanout) {
  return {{"keys", inline_keys ? "inline" : "bytes"}, {"span", "1"}, {"fanout", std::to_string(fanout)}};
}

using Model = std::map<std::string, std::string>;

std::string Check(Member& member, const Model& model) {
  for (const auto& [key, value] : model) {
    const std::string got = member.Now(member.Get(key));
    if (got != value) return fmt::format("{} is {} and not {}", key, got, value);
  }
  size_t present = 0;
  for (const auto& [key, value] : model) present += value != "absent" ? 1 : 0;
  const size_t scanned = member.Now(member.Scan(KeyRange::All(), 1000)).size();
  return scanned == present ? "" : fmt::format("a scan has {} keys, and there are {}", scanned, present);
}

double InnerNodesOf(Member& member) { return DetailOf(member.Now(member.Stats()), "inner nodes"); }

}  // namespace

std::string InnerMergerDies(bool inline_keys, bool first_too, size_t nodes) {
  return AtEveryVerb([&](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    World world({.nodes = nodes});
    const OptionMap options = LonelyKeys(inline_keys, 4);
    const auto reader = std::make_unique<Member>(world, options);
    auto survivor = std::make_unique<Member>(world, options);
    auto owner = std::make_unique<Member>(world, options);
    Model model;
    for (int i = 0; i < 8; ++i) {
      owner->Now(owner->Put(NthKey(inline_keys, 10 * i), "original"));
      model[NthKey(inline_keys, 10 * i)] = "original";
    }
    const auto remove = [&](int i) {
      model[NthKey(inline_keys, 10 * i)] = "absent";
      return owner->Delete(NthKey(inline_keys, 10 * i));
    };
    if (first_too) owner->Now(remove(2));
    std::string problem = Check(*reader, model);
    const double before = InnerNodesOf(*reader);
    LetMemoryGo(world);
    more = owner->RunAndDieAt(verb, kind, remove(3));
    if (!more && InnerNodesOf(*reader) + 1 != before) return "no inner node has gone";

    const std::string third = NthKey(inline_keys, 30);
    model[third] = reader->Now(reader->Get(third));
    if (model[third] != "absent" && (!owner->crashed() || model[third] != "original"))
      return third + " is " + model[third];
    if (problem.empty()) problem = Check(*reader, model);
    // Others go on there.
    for (const int i : {2, 3, 4}) {
      survivor->Now(survivor->Put(NthKey(inline_keys, 10 * i + 1), "new one!"));
      model[NthKey(inline_keys, 10 * i + 1)] = "new one!";
    }
    for (const int i : {7, 6, 5}) {
      survivor->Now(survivor->Delete(NthKey(inline_keys, 10 * i)));
      model[NthKey(inline_keys, 10 * i)] = "absent";
    }
    if (problem.empty()) problem = Check(*reader, model);
    if (problem.empty()) problem = Check(*survivor, model);
    owner.reset();
    survivor.reset();
    reader->Audit();
    return problem.empty() ? world.problem : problem;
  });
}

std::string FirstChildHasMoved(bool inline_keys, size_t nodes) {
  World world({.nodes = nodes});
  const OptionMap options = LonelyKeys(inline_keys, 4);
  Member writer(world, options);
  auto other = std::make_unique<Member>(world, options);
  // Inner nodes of 0 and 10, of 20 and 30, and of the others.
  for (int i = 0; i < 8; ++i) writer.Now(writer.Put(NthKey(inline_keys, 10 * i), "original"));
  LetMemoryGo(world);
  other->Now(
      other->Get(NthKey(inline_keys, 20)));  // which remembers that the leaf is the first of its parent
  const double inner_nodes = InnerNodesOf(writer);
  const double leaves = DetailOf(writer.Now(writer.Stats()), "leaves");
  writer.Now(writer.Delete(NthKey(inline_keys, 30)));
  if (InnerNodesOf(writer) + 1 != inner_nodes) return "no inner node has gone";
  other->Now(other->Delete(NthKey(inline_keys, 20)));
  const double left = DetailOf(writer.Now(writer.Stats()), "leaves");
  if (left + 2 != leaves)
    return fmt::format("there were {} leaves, and two deletes have left {}", leaves, left);
  other.reset();
  writer.Audit();
  return world.problem;
}

std::string SplitterIsSlow(bool the_new_one) {
  bool more = true;
  for (int steps = 0; more; ++steps) {
    World world;
    const OptionMap options = LonelyKeys(true, 4);
    auto slow = std::make_unique<Member>(world, options);
    // Inner nodes of 0 and 10, of 20 and 30, and of the others; then the first becomes full.
    for (const int i : {0, 10, 20, 30, 40, 50, 60, 70, 2, 4})
      slow->Now(slow->Put(NthKey(true, i), "original"));
    auto other = std::make_unique<Member>(world, options);
    LetMemoryGo(world);
    Task<PutOutcome> put = slow->Put(NthKey(true, 6), "original");
    put.Start();
    for (int step = 0; step < steps && !put.done(); ++step) world.fabric.Step();
    more = !put.done();
    if (more) world.fabric.Sleep(slow->client().id(), milliseconds(5));
    Model model;
    for (const int i : {0, 2, 40, 50, 60, 70}) model[NthKey(true, i)] = "original";
    if (the_new_one) {
      other->Now(other->Get(NthKey(true, 10)));  // which inserts the pivot
      other->Now(other->Put(NthKey(true, 7), "original"));
      other->Now(other->Delete(NthKey(true, 7)));
      other->Now(other->Delete(NthKey(true, 10)));
    } else {
      for (const int i : {30, 20}) other->Now(other->Delete(NthKey(true, i)));
    }
    world.Drive([&] { return put.done(); });
    const Result<PutOutcome> end = put.TakeResult();
    if (!end.ok()) return end.error().ToString();
    for (const auto& [key, value] : model) {
      const std::string got = other->Now(other->Get(key));
      if (got != value) return fmt::format("step {}: {} is {}", steps, key, got);
    }
    slow->Now(slow->Leave());
    slow.reset();
    other->Audit();
    if (!world.problem.empty()) return fmt::format("step {}: {}", steps, world.problem);
    if (steps > 2000) return "there is no end to it";
  }
  return "";
}

namespace {

// The scan is `steps` events old when the writer begins. Sets `steps` to the number of events that it took.
std::string ScanUntilAParentDies(int& steps) {
  World world;
  const OptionMap options = LonelyKeys(true, 64);
  Member writer(world, options);
  Member reader(world, options);
  // The parents have 32 leaves each.
  for (int i = 0; i < 100; ++i) writer.Now(writer.Put(NthKey(true, 100 * i), "original"));
  LetMemoryGo(world);
  for (int i = 0; i < 100; i += 8) reader.Now(reader.Get(NthKey(true, 100 * i)));
  Task<std::vector<Record>> scan = reader.Scan(KeyRange::All(), 1000);
  scan.Start();
  int step = 0;
  for (; step < steps && !scan.done(); ++step) world.fabric.Step();
  if (!scan.done()) world.fabric.Sleep(reader.client().id(), milliseconds(4));
  steps = step;
  for (int i = 33; i < 64; ++i) writer.Now(writer.Delete(NthKey(true, 100 * i)));
  for (int i = 0; i < 2; ++i) writer.Now(writer.Maintain());
  // Another operation of the same client learns of it.
  reader.Now(reader.Maintain());
  reader.Now(reader.Get(NthKey(true, 0)));
  world.Drive([&] { return scan.done(); });
  if (!scan.TakeResult().ok()) return "the scan has failed";
  LetMemoryGo(world);
  // The memory becomes that of another inner node, which begins before the dead one.
  std::vector<int> numbers;
  for (int i = 1; i < 400; ++i) {
    if (i % 100 != 0) numbers.push_back(i);
  }
  for (const int i : numbers) writer.Now(writer.Put(NthKey(true, i), "of reuse"));
  reader.Now(reader.Get(NthKey(true, 1)));
  for (const int i : numbers) {
    const KeyRange up_to = KeyRange::Between(NthKey(true, 0), NthKey(true, i) + '\0');
    const std::string last = reader.Now(reader.Last(up_to));
    if (last != NthKey(true, i)) return fmt::format("step {}: the last one up to {} is {}", step, i, last);
    const std::string got = reader.Now(reader.Get(NthKey(true, i)));
    if (got != "of reuse") return fmt::format("step {}: {} is {}", step, i, got);
  }
  reader.Now(reader.Verify());
  return world.problem;
}

}  // namespace

std::string ScanComesToADeadParent() {
  constexpr int kParts = 8;
  int all = 1'000'000;
  std::string problem = ScanUntilAParentDies(all);
  for (int part = 1; part < kParts && problem.empty(); ++part) {
    int steps = all * part / kParts;
    problem = ScanUntilAParentDies(steps);
  }
  return problem;
}

std::string BothHalvesBecomeEmpty() {
  World world;
  Member member(world, LonelyKeys(true, 4));
  std::vector<std::string> keys;
  for (const char first : {'\x10', '\xf0'}) {
    for (char i = 0; i < 12; ++i) keys.push_back(std::string{first, i} + "......");
  }
  for (const std::string& key : keys) member.Now(member.Put(key, "original"));
  for (const std::string& key : keys) member.Now(member.Delete(key));
  member.Now(member.Verify());
  for (const std::string& key : keys) member.Now(member.Put(key, "returned"));
  for (const std::string& key : keys) {
    if (member.Now(member.Get(key)) != "returned") return "a key is lost";
  }
  member.Audit();
  return world.problem;
}

}  // namespace farside::index::chime
