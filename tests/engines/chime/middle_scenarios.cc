#include "tests/engines/chime/middle_scenarios.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include "base/hash.h"

namespace farside::index::chime {

namespace {

std::string Printed(const std::string& key) {
  return key.size() == kPrefixBytes ? fmt::format("{:#018x}", PrefixOf(key)) : key;
}

// Keys around the middle and at both ends, and their twins, which differ in the top bit only.
std::vector<std::string> KeysAndTwins() {
  std::vector<std::string> keys;
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{0x4000'0000'0000'0000},
                                kMiddle / 3, kMiddle - 3, kMiddle - 2, kMiddle - 1}) {
    keys.push_back(KeyOfNumber(number));
    keys.push_back(KeyOfNumber(number | kMiddle));
  }
  return keys;
}

// Says what is wrong with the table as this client finds it, by all ways. `model` has every key of the table.
std::string CompareByAllWays(Member& member, const std::map<std::string, std::string>& model) {
  for (const std::string& key : KeysAndTwins()) {
    const auto known = model.find(key);
    const std::string should = known == model.end() ? "absent" : known->second;
    const std::string is = member.Now(member.Get(key));
    if (is != should) return fmt::format("{} is {} and not {}", Printed(key), is, should);
  }
  std::vector<KeyRange> ranges = {KeyRange::All(), KeyRange::From("\x80"), KeyRange::From("\x7f")};
  for (const std::string& from : {KeyOfNumber(kMiddle - 1), KeyOfNumber(kMiddle), KeyOfNumber(1)}) {
    ranges.push_back(KeyRange::From(from));
    for (const std::string& to : {KeyOfNumber(kMiddle - 1), KeyOfNumber(kMiddle), KeyOfNumber(kMiddle + 1),
                                  std::string("\x80"), KeyOfNumber(~uint64_t{0})})
      ranges.push_back(KeyRange::Between(from, to));
  }
  for (const KeyRange& range : ranges) {
    std::vector<Record> expected;
    for (const auto& [key, value] : model) {
      if (range.Has(key)) expected.push_back({key, value});
    }
    const std::vector<Record> page = member.Now(member.Scan(range, 100));
    if (page != expected)
      return fmt::format("a scan from {} returns {} records, or others than {}", Printed(range.from),
                         page.size(), expected.size());
    const std::vector<Record> first = member.Now(member.Scan(range, 1));
    if (!first.empty() && first[0] != expected[0])
      return fmt::format("the first from {} on is {}", Printed(range.from), Printed(first[0].key));
    const std::string last = member.Now(member.Last(range));
    if (last != (expected.empty() ? "absent" : expected.back().key))
      return fmt::format("the last from {} on is {}", Printed(range.from), Printed(last));
  }
  const std::multimap<std::string, std::string> all = member.Now(member.List());
  if (!std::equal(all.begin(), all.end(), model.begin(), model.end(),
                  [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }))
    return fmt::format("a cursor returns {} records, or others than {}", all.size(), model.size());
  return "";
}

}  // namespace

std::string KeysOfBothHalves(const OptionMap& shape, size_t nodes) {
  OptionMap options = shape;
  options["keys"] = "inline";
  for (uint64_t order = 0; order < 4; ++order) {
    World world({.nodes = nodes});
    Member member(world, options);
    Member other(world, options);  // which learns of nothing but by what it finds
    std::map<std::string, std::string> model;
    std::vector<std::string> keys = KeysAndTwins();
    if (order == 0 || order == 1) std::sort(keys.begin(), keys.end());
    if (order == 1) std::reverse(keys.begin(), keys.end());
    Random random(order);
    for (size_t i = keys.size(); order > 1 && i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
    std::string wrong;
    const auto compare = [&] {
      if (wrong.empty()) wrong = CompareByAllWays(other, model);
      if (wrong.empty()) wrong = CompareByAllWays(member, model);
      if (wrong.empty()) wrong = world.problem;
      return wrong.empty();
    };
    for (const std::string& key : keys) {
      if (member.Now(member.Put(key, "inserted")) != PutOutcome::kInserted)
        return Printed(key) + " was there before it was put";
      model[key] = "inserted";
      if (!compare()) return wrong;
    }
    for (size_t i = 0; i < keys.size(); i += 2) {
      if (!other.Now(other.Update(keys[i], "replaced"))) return Printed(keys[i]) + " was not there";
      model[keys[i]] = "replaced";
    }
    if (!compare()) return wrong;
    for (const std::string& key : keys) {
      if (!member.Now(member.Delete(key))) return Printed(key) + " was not there to be deleted";
      if (other.Now(other.Update(key, "replaced"))) return Printed(key) + " was deleted, and updated";
      model.erase(key);
      if (!compare()) return wrong;
    }
    member.Now(member.Verify());
    // Where leaves were merged, keys come back.
    for (const std::string& key : keys) {
      other.Now(other.Put(key, "returned"));
      model[key] = "returned";
    }
    if (!compare()) return wrong;
    member.Now(member.Verify());
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

std::string ParentsAreSplitByTheDead(size_t fanout, bool with_fsck) {
  const OptionMap options = {
      {"keys", "inline"}, {"span", "1"}, {"fanout", std::to_string(fanout)}, {"hotspot", "0"}};
  for (const FaultKind kind : {FaultKind::kCrashBefore, FaultKind::kCrashMid, FaultKind::kCrashAfter}) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      World world;
      Member survivor(world, options);
      Member owner(world, options);
      // Two leaves for each half: a parent of two is full, and so would be one of four that had both halves.
      std::map<std::string, std::string> expected;
      for (const uint64_t number : {uint64_t{0x10}, uint64_t{0x20}, 0x10 | kMiddle, 0x20 | kMiddle})
        expected[KeyOfNumber(number)] = number < kMiddle ? "of lower" : "of upper";
      for (const auto& [key, value] : expected) owner.Now(owner.Put(key, value));
      // So that the survivor has heard of all that has happened, and need not hear of it when it waits for
      // the dead.
      for (int round = 0; round < 8; ++round) {
        owner.Now(owner.Maintain());
        survivor.Now(survivor.Maintain());
      }
      const uint64_t first = world.fabric.verbs_posted();
      world.beats = false;
      world.fabric.set_fault({first + verb, kind});
      owner.RunOrDie(owner.Put(KeyOfNumber(0x18), "of lower"));
      more = owner.crashed() || world.fabric.verbs_posted() > first + verb;
      world.fabric.set_fault({~uint64_t{0}, FaultKind::kCrashBefore});
      world.beats = true;
      const std::string where = fmt::format("{} at verb {}: ", Name(kind), verb);
      // The last ones first: those would be led to the nearest leaf below the middle.
      for (const auto& [key, value] : std::views::reverse(expected)) {
        const std::string is = survivor.Now(survivor.Get(key));
        if (is != value) return where + fmt::format("{} is {} and not {}", Printed(key), is, value);
      }
      survivor.Now(survivor.Put(KeyOfNumber(0x18), "of lower"));
      survivor.Now(survivor.Put(KeyOfNumber(0x18 | kMiddle), "of upper"));
      if (with_fsck) survivor.Now(survivor.Verify());
      if (!world.problem.empty()) return where + world.problem;
      if (verb > 300) return "there is no end to it";
    }
  }
  return "";
}

std::string TwinsWithHashesThatAreAlike() {
  // Of 16 sets, bits 31 to 28 choose one; 47 to 32 are the fingerprint.
  constexpr uint64_t kNumber = 712'638;
  const uint64_t difference = Hash64(KeyOfNumber(kNumber)) ^ Hash64(KeyOfNumber(kNumber | kMiddle));
  if ((difference >> 28 & 0xf'ffff) != 0) return "they are not alike";
  for (const bool lower_first : {true, false}) {
    World world;
    Member member(world, WithHotspots({{"keys", "inline"}}, 1024));
    const std::string key = KeyOfNumber(lower_first ? kNumber : kNumber | kMiddle);
    const std::string twin = KeyOfNumber(lower_first ? kNumber | kMiddle : kNumber);
    member.Now(member.Put(key, "original"));
    if (member.Now(member.Get(key)) != "original") return "the key is lost";
    if (DetailOf(member.Now(member.Stats()), "hotspots") != 1) return "nothing is remembered";
    if (member.Now(member.Get(twin)) != "absent") return "a key is taken for its twin";
    member.Now(member.Get(key));
    if (member.Now(member.Update(twin, "replaced"))) return "a key was updated for its twin";
    member.Now(member.Get(key));
    if (member.Now(member.Put(twin, "of twins")) != PutOutcome::kInserted)
      return "a key was replaced for its twin";
    if (member.Now(member.Get(key)) != "original" || member.Now(member.Get(twin)) != "of twins")
      return "one has the value of the other";
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

}  // namespace farside::index::chime
