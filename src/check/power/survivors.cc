#include "check/power/survivors.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace farside::check {
namespace {

// A part of memory that is left by itself, and what it may be: whole lines, or words.
struct Part {
  uint64_t offset = 0;
  std::vector<std::vector<uint64_t>> values;  // each as many words; no two are the same; the visible one last
};

// The newest last, so that equal ones of before fall away.
void AddNew(std::vector<std::vector<uint64_t>>& values, std::vector<uint64_t> value) {
  std::erase(values, value);
  values.push_back(std::move(value));
}

std::vector<Part> AsLines(const PendingLines& pending) {
  std::vector<Part> parts;
  for (const auto& [offset, line] : pending.lines()) {
    Part part{.offset = offset};
    for (const LineWords& version : line.versions) AddNew(part.values, {version.begin(), version.end()});
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<Part> AsWords(const PendingLines& pending) {
  std::vector<Part> parts;
  for (const auto& [offset, line] : pending.lines()) {
    for (size_t word = 0; word < LineWords().size(); ++word) {
      Part part{.offset = offset + word * sizeof(uint64_t)};
      for (const LineWords& version : line.versions) AddNew(part.values, {version[word]});
      if (part.values.size() > 1) parts.push_back(std::move(part));
    }
  }
  return parts;
}

// How many states there are; `most` + 1 if they are more than that.
uint64_t StatesOf(const std::vector<Part>& parts, uint64_t most) {
  uint64_t states = 1;
  for (const Part& part : parts) {
    states *= part.values.size();
    if (states > most) return most + 1;
  }
  return states;
}

void Put(std::span<std::byte> bytes, const Part& part, size_t value) {
  const std::vector<uint64_t>& words = part.values[value];
  std::memcpy(bytes.data() + part.offset, words.data(), words.size() * sizeof(uint64_t));
}

// False: it was told to stop.
bool VisitAll(const std::vector<Part>& parts, std::span<std::byte> bytes, uint64_t& states,
              const std::function<bool()>& visit) {
  std::vector<size_t> chosen(parts.size(), 0);
  for (const Part& part : parts) Put(bytes, part, 0);
  while (true) {
    ++states;
    if (!visit()) return false;
    size_t next = 0;
    while (next < parts.size() && ++chosen[next] == parts[next].values.size()) {
      chosen[next] = 0;
      Put(bytes, parts[next], 0);
      ++next;
    }
    if (next == parts.size()) return true;
    Put(bytes, parts[next], chosen[next]);
  }
}

bool VisitSome(const std::vector<Part>& parts, uint64_t samples, Random& random, std::span<std::byte> bytes,
               uint64_t& states, const std::function<bool()>& visit) {
  for (uint64_t sample = 0; sample < samples; ++sample) {
    // From nearly all old to nearly all new: few mistakes need parts that are half and half.
    const uint64_t newest_of_eight = random.Below(9);
    for (const Part& part : parts) {
      const size_t newest = part.values.size() - 1;
      Put(bytes, part, random.Chance(newest_of_eight, 8) ? newest : random.Below(part.values.size()));
    }
    ++states;
    if (!visit()) return false;
  }
  return true;
}

}  // namespace

SurvivorCounts VisitSurvivors(const PendingLines& pending, const SurvivorLimits& limits, Random& random,
                              std::span<std::byte> bytes, const std::function<bool()>& visit) {
  SurvivorCounts counts;
  const std::vector<Part> words = AsWords(pending);
  const std::vector<Part> lines = AsLines(pending);
  if (StatesOf(words, limits.most_states) <= limits.most_states) {
    counts.complete = VisitAll(words, bytes, counts.states, visit);
  } else {
    const bool few_lines = StatesOf(lines, limits.most_states) <= limits.most_states;
    const bool goes_on = few_lines
                             ? VisitAll(lines, bytes, counts.states, visit)
                             : VisitSome(lines, limits.most_states, random, bytes, counts.states, visit);
    if (goes_on) VisitSome(words, limits.samples, random, bytes, counts.states, visit);
  }
  for (const Part& part : lines) Put(bytes, part, part.values.size() - 1);
  return counts;
}

}  // namespace farside::check
