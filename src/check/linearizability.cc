#include "check/linearizability.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "check/linearizability/key_check.h"
#include "check/scans.h"

namespace farside::check {
namespace {

using linearizability::KeyCheck;

// A violation before giving up, then the earlier event.
bool IsWorse(const Verdict& a, const Verdict& b) {
  auto rank = [](Answer answer) {
    switch (answer) {
      case Answer::kLinearizable: return 0;
      case Answer::kUndecided: return 1;
      case Answer::kNotLinearizable: return 2;
    }
    return 0;
  };
  if (a.answer != b.answer) return rank(a.answer) > rank(b.answer);
  return a.answer != Answer::kLinearizable && a.event < b.event;
}

std::vector<uint32_t> IndicesByKey(std::span<const Operation> operations) {
  std::vector<uint32_t> indices(operations.size());
  for (uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
  std::sort(indices.begin(), indices.end(), [&](uint32_t a, uint32_t b) {
    const int order = operations[a].key.compare(operations[b].key);
    return order != 0 ? order < 0 : operations[a].invoked < operations[b].invoked;
  });
  return indices;
}

}  // namespace

Verdict CheckLinearizable(std::span<const Operation> operations, const CheckOptions& options) {
  if (const std::optional<MalformedScan> malformed = FindMalformedScan(operations)) {
    return {.answer = Answer::kNotLinearizable,
            .key = {},
            .event = malformed->scan->returned,
            .malformed = malformed->why};
  }
  std::vector<Operation> apart;
  if (HasScans(operations)) {
    apart = TakeScansApart(operations, options);
    operations = apart;
  }
  const std::vector<uint32_t> indices = IndicesByKey(operations);
  KeyCheck check(options);
  Verdict worst;
  uint64_t steps = 0;
  for (size_t begin = 0, end = 0; begin < indices.size(); begin = end) {
    const std::string& key = operations[indices[begin]].key;
    while (end < indices.size() && operations[indices[end]].key == key) ++end;
    check.Begin(operations, std::span(indices).subspan(begin, end - begin));
    while (check.Advance()) {
    }
    steps += check.steps();
    if (check.answer() == Answer::kLinearizable) continue;
    Verdict verdict{.answer = check.answer(), .key = key, .event = check.event()};
    if (IsWorse(verdict, worst)) worst = std::move(verdict);
  }
  worst.steps = steps;
  return worst;
}

std::string ToString(const Verdict& verdict) {
  switch (verdict.answer) {
    case Answer::kLinearizable: return "linearizable";
    case Answer::kNotLinearizable:
      if (!verdict.malformed.empty()) {
        return fmt::format("the scan that returned at event {} is wrong by itself: {}", verdict.event,
                           verdict.malformed);
      }
      return fmt::format("key {} is not linearizable: nothing explains event {}", Printable(verdict.key),
                         verdict.event);
    case Answer::kUndecided:
      return fmt::format("key {} is undecided: gave up at event {}", Printable(verdict.key), verdict.event);
  }
  return "unknown answer";
}

std::optional<Restart> LastRestart(std::span<const Operation> operations, uint64_t before,
                                   const CheckOptions& options) {
  const std::vector<uint32_t> indices = IndicesByKey(operations);
  assert(indices.empty() || operations[indices.front()].key == operations[indices.back()].key);
  KeyCheck check(options, KeyCheck::Values::kNamed);
  check.Begin(operations, indices);
  std::optional<Restart> last;
  size_t events_until_last = 0;
  for (size_t events = 1; check.Advance() && check.event() < before; ++events) {
    std::optional<std::string> value;
    if (!check.ValueIsKnown(&value)) continue;
    last = Restart{.event = check.event(), .value = std::move(value), .rest = {}};
    events_until_last = events;
  }
  if (!last) return std::nullopt;
  check.Begin(operations, indices);
  for (size_t i = 0; i < events_until_last; ++i) check.Advance();
  last->rest = check.Rest();
  return last;
}

}  // namespace farside::check
