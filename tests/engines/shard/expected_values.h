// What the keys of a scenario are known to hold.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "tests/engines/shard/world.h"

namespace farside::index::shard {

// One whose writer died holds one of two values.
class ExpectedValues {
 public:
  void Put(Stage& stage, Member& member, const std::string& key, const std::string& value) {
    const Result<PutOutcome> put = member.Try(member.Put(key, value));
    if (!put.ok()) stage.world.Complain("put of " + key + ": " + put.error().ToString());
    known_[key] = {value, value};
  }
  void Delete(Stage& stage, Member& member, const std::string& key) {
    const Result<bool> deleted = member.Try(member.Delete(key));
    if (!deleted.ok()) stage.world.Complain("delete of " + key + ": " + deleted.error().ToString());
    known_[key] = {"absent", "absent"};
  }
  // A client died while it put.
  void MayHold(const std::string& key, const std::string& value) {
    if (!known_.contains(key)) known_[key].first = "absent";
    known_[key].second = value;
  }
  void Holds(const std::string& key, const std::string& value) { known_[key] = {value, value}; }
  void HoldsOneOf(const std::string& key, const std::string& one, const std::string& other) {
    known_[key] = {one, other};
  }
  void Check(Stage& stage, Member& member, const std::string& key) {
    const Result<std::string> found = member.Try(member.Get(key));
    if (!found.ok()) return stage.world.Complain("get of " + key + ": " + found.error().ToString());
    auto& [one, other] = known_[key];
    if (*found != one && *found != other) {
      stage.world.Complain(
          fmt::format("{} holds {}, not {}{}", key, *found, one, one == other ? "" : " or " + other));
    }
    one = other = *found;
  }
  void CheckAll(Stage& stage, Member& member) {
    for (const auto& [key, values] : known_) Check(stage, member, key);
  }
  // Every key once, with what it holds, and nothing else.
  void CheckList(Stage& stage, Member& member) {
    const Result<std::multimap<std::string, std::string>> all = member.Try(member.List());
    if (!all.ok()) return stage.world.Complain("cursor: " + all.error().ToString());
    size_t present = 1;  // Stage::kSeed
    for (const auto& [key, values] : known_) {
      const auto [from, to] = all->equal_range(key);
      const size_t count = std::distance(from, to);
      const bool absent = values.first == "absent";
      if (count != (absent ? 0 : 1))
        stage.world.Complain(fmt::format("the cursor returns {} {} times", key, count));
      if (count == 1 && from->second != values.first && from->second != values.second)
        stage.world.Complain(fmt::format("the cursor says that {} holds {}", key, from->second));
      present += absent ? 0 : 1;
    }
    if (all->size() != present)
      stage.world.Complain(fmt::format("the cursor returns {} records, not {}", all->size(), present));
  }

 private:
  std::map<std::string, std::pair<std::string, std::string>> known_;
};

}  // namespace farside::index::shard
