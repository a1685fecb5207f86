#include "tests/engines/sephash/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "check/linearizability.h"

namespace farside::index::sephash {

double DetailOf(const TableStats& stats, std::string_view name) {
  for (const auto& [detail, value] : stats.details) {
    if (detail == name) return value;
  }
  return -1;
}

std::string KeyFor(const std::function<bool(uint64_t)>& fits, int nth) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("k{}", i);
    if (fits(HashOf(key)) && nth-- == 0) return key;
  }
}

std::string KeyOf(uint64_t suffix, uint32_t bits, int nth) {
  return KeyFor([=](uint64_t hash) { return (hash & LowBits(bits)) == suffix; }, nth);
}

std::vector<std::string> KeysWithOneTag(size_t count) {
  std::map<uint64_t, std::vector<std::string>> by_tag;
  for (int i = 0;; ++i) {
    const std::string key = fmt::format("k{}", i);
    std::vector<std::string>& same = by_tag[TagBitsOf(HashOf(key))];
    same.push_back(key);
    if (same.size() == count) return same;
  }
}

// ---- histories -------------------------------------------------------------------------------------------

Member& Play::Enter(const OptionMap& own) {
  OptionMap options = table_;
  for (const auto& [key, value] : own) options[key] = value;
  members_.push_back(std::make_unique<Member>(world, options));
  numbers_.insert_or_assign(members_.back().get(), ++last_number_);
  return *members_.back();
}

void Play::Kill(Member& member) {
  if (!member.crashed()) world.fabric.Crash(member.client().id());
  std::erase_if(tasks_, [&](const auto& task) { return task.first == &member; });
  std::erase_if(members_, [&](const auto& known) { return known.get() == &member; });
}

int Play::NumberOf(const Member& member) const { return numbers_.at(&member); }

void Play::Do(Member& member, const Request& request) {
  keys_[request.key];
  member.Now(in_flight::Record(history_, member, NumberOf(member), request));
}

void Play::Begin(Member& member, const Request& request, uint64_t steps) {
  keys_[request.key];
  tasks_.emplace_back(&member, in_flight::Record(history_, member, NumberOf(member), request));
  const Task<Done>& task = tasks_.back().second;
  tasks_.back().second.Start();
  for (uint64_t step = 0; step < steps && !task.done(); ++step) world.fabric.Step();
}

bool Play::over() const {
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return task.second.done() || task.first->crashed(); });
}

void Play::Finish() {
  world.Drive([&] { return over(); });
  if (!over()) world.Complain("a client waits for ever");
  tasks_.clear();
}

bool Play::DieAt(Member& member, uint64_t verb, FaultKind kind, const Request& request) {
  keys_[request.key];
  return member.RunAndDieAt(verb, kind, in_flight::Record(history_, member, NumberOf(member), request));
}

std::string Play::End() {
  Finish();
  std::map<std::string, std::string> present;
  for (const auto& member : members_) {
    if (member->crashed()) continue;
    for (const auto& [key, unused] : keys_) Do(*member, sephash::Get(key));
  }
  Member& last = Enter();
  for (const auto& [key, unused] : keys_) {
    Do(last, sephash::Get(key));
    const std::string value = last.Now(last.Get(key));
    if (value != "absent") present[key] = value;
  }
  for (const check::Operation& operation : history_.operations()) {
    if (operation.refused()) world.Complain(fmt::format("{}: {}", operation.key, operation.why));
  }
  const check::Verdict verdict = check::CheckLinearizable(history_);
  if (!verdict.ok()) world.Complain(check::ToString(verdict) + "\n" + check::Chart(history_.operations()));
  const auto listed = last.Now(last.List());
  if (!std::equal(listed.begin(), listed.end(), present.begin(), present.end(),
                  [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }))
    world.Complain(fmt::format("the cursor has {} records and not {}", listed.size(), present.size()));
  // They are gone without a word, and the last one finds what they have left.
  while (members_.size() > 1) members_.erase(members_.begin());
  if (world.problem.empty()) last.Audit();
  return world.problem;
}

}  // namespace farside::index::sephash
