#include "check/exhaustive/monitor.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace farside::check::exhaustive {
namespace {

void AppendNumber(std::string& text, uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void AppendText(std::string& text, std::string_view part) {
  AppendNumber(text, part.size());
  text += part;
}

// Equal exactly if the outcomes are.
std::string Fingerprint(const Outcome& outcome) {
  std::string text;
  AppendNumber(text, outcome.index());
  if (const auto* found = std::get_if<Found>(&outcome)) {
    AppendNumber(text, found->value.has_value());
    AppendText(text, found->value.value_or(""));
  } else if (const auto* stored = std::get_if<Stored>(&outcome)) {
    AppendNumber(text, stored->inserted.has_value() ? 1 + *stored->inserted : 0);
  } else if (const auto* applied = std::get_if<Applied>(&outcome)) {
    AppendNumber(text, applied->applied);
  } else if (const auto* scanned = std::get_if<Scanned>(&outcome)) {
    AppendNumber(text, scanned->more);
    for (const Record& record : scanned->records) {
      AppendText(text, record.key);
      AppendText(text, record.value);
    }
  } else {
    AppendNumber(text, std::get<Counted>(outcome).value);
  }
  return text;
}

std::string Fingerprint(const Event& event) {
  std::string text;
  AppendNumber(text, static_cast<uint64_t>(event.kind));
  AppendNumber(text, event.operation);
  AppendNumber(text, static_cast<uint64_t>(event.call.client));
  AppendNumber(text, static_cast<uint64_t>(event.call.kind));
  AppendText(text, event.call.key);
  AppendText(text, event.call.value);
  AppendText(text, event.call.expected);
  AppendNumber(text, event.call.delta);
  AppendText(text, event.why);
  return text + Fingerprint(event.outcome);
}

// Numbers are little-endian, 8 bytes; nothing if `value` is no number. Absence counts as 0.
std::optional<uint64_t> CounterIn(const std::optional<std::string>& value) {
  if (!value) return 0;
  if (value->size() != 8) return std::nullopt;
  uint64_t counter = 0;
  for (size_t i = 0; i < 8; ++i) counter |= uint64_t{static_cast<unsigned char>((*value)[i])} << (8 * i);
  return counter;
}

std::string BytesOf(uint64_t counter) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(counter >> (8 * i));
  return bytes;
}

}  // namespace

Monitor::Monitor() {
  NumberOf(std::optional<std::string>());
  Record({});
}

uint32_t Monitor::NumberOf(const Event& event) {
  const auto [at, is_new] =
      event_numbers_.try_emplace(Fingerprint(event), static_cast<uint32_t>(events_.size()));
  if (is_new) events_.push_back(event);
  return at->second;
}

Monitor::History Monitor::Next(History history, uint32_t event) {
  const uint64_t key = uint64_t{history} << 32 | event;
  if (const uint32_t* known = next_.Find(key)) return *known;
  const History next = Compute(history, events_[event], event);
  next_.Insert(key, next);
  return next;
}

Monitor::History Monitor::Compute(History history, const Event& event, uint32_t number) {
  Keys keys = histories_[history];
  KeyState state;
  if (event.kind == EventKind::kInvoke) {
    const auto key =
        key_numbers_.try_emplace(event.call.key, static_cast<uint32_t>(key_numbers_.size())).first;
    const auto known = keys.find(key->second);
    if (known != keys.end()) {
      state = key_states_[known->second];
    } else {
      state.explanations.emplace_back();  // every key is absent at first
    }
    if (!Invoke(state, event.operation, number)) return kTooManyExplanations;
    keys[key->second] = RecordKey(state);
    return Record(keys);
  }
  for (auto& [key, key_state] : keys) {
    state = key_states_[key_state];
    const auto at = std::ranges::find(state.pending, event.operation, &Pending::operation);
    if (at == state.pending.end()) continue;
    End(state, static_cast<size_t>(at - state.pending.begin()), event);
    if (state.explanations.empty()) return kNotLinearizable;
    key_state = RecordKey(state);
    return Record(keys);
  }
  assert(false && "an operation ended that is not in progress");
  return history;
}

bool Monitor::Invoke(KeyState& state, uint32_t operation, uint32_t invocation) {
  const auto at = std::ranges::lower_bound(state.pending, operation, {}, &Pending::operation);
  const auto index = at - state.pending.begin();
  state.pending.insert(at, {operation, invocation});
  for (Explanation& explanation : state.explanations) {
    explanation.fates.insert(explanation.fates.begin() + index, kNotYet);
  }

  std::vector<Explanation> fresh = state.explanations;
  std::set<Explanation> all(fresh.begin(), fresh.end());
  while (!fresh.empty()) {
    const Explanation explanation = std::move(fresh.back());
    fresh.pop_back();
    for (size_t i = 0; i < state.pending.size(); ++i) {
      if (explanation.fates[i] != kNotYet) continue;
      const std::optional<Effect> effect =
          EffectOf(events_[state.pending[i].invocation].call, explanation.value);
      if (!effect) continue;
      Explanation extended = explanation;
      extended.value = effect->value;
      extended.fates[i] = kFirstAnswer + effect->answer;
      if (all.insert(extended).second) fresh.push_back(std::move(extended));
    }
    if (all.size() > kMostExplanations) return false;
  }
  state.explanations.assign(all.begin(), all.end());
  return true;
}

void Monitor::End(KeyState& state, size_t pending, const Event& event) {
  const auto index = static_cast<ptrdiff_t>(pending);
  if (event.kind == EventKind::kLoseAnswer) {
    for (Explanation& explanation : state.explanations) {
      uint32_t& fate = explanation.fates[pending];
      if (fate != kNotYet) fate = kUnheard;
    }
  } else {
    std::erase_if(state.explanations,
                  [&](const Explanation& e) { return !Predicted(e.fates[pending], event); });
    for (Explanation& e : state.explanations) e.fates.erase(e.fates.begin() + index);
    state.pending.erase(state.pending.begin() + index);
  }
  std::ranges::sort(state.explanations);
  const auto repeated = std::unique(state.explanations.begin(), state.explanations.end());
  state.explanations.erase(repeated, state.explanations.end());
}

bool Monitor::Predicted(uint32_t fate, const Event& event) {
  if (event.kind == EventKind::kRefuse) return fate == kNotYet;
  if (fate < kFirstAnswer) return false;
  const Outcome& predicted = outcomes_[fate - kFirstAnswer];
  const auto* stored = std::get_if<Stored>(&event.outcome);
  if (stored != nullptr && !stored->inserted) return true;  // a Put that does not know what it replaced
  return predicted == event.outcome;
}

std::optional<Monitor::Effect> Monitor::EffectOf(const Operation& call, uint32_t value_number) {
  const std::optional<std::string> value = values_[value_number];
  const auto applied_if = [&](bool condition, const std::optional<std::string>& then) {
    return Effect{condition ? NumberOf(then) : value_number, NumberOf(Outcome(Applied{condition}))};
  };
  switch (call.kind) {
    case Kind::kGet: return Effect{value_number, NumberOf(Outcome(Found{value}))};
    case Kind::kPut:
      return Effect{NumberOf(std::optional(call.value)), NumberOf(Outcome(Stored{!value.has_value()}))};
    case Kind::kInsert: return applied_if(!value.has_value(), call.value);
    case Kind::kUpdate: return applied_if(value.has_value(), call.value);
    case Kind::kDelete: return applied_if(value.has_value(), std::nullopt);
    case Kind::kCompareAndSet: return applied_if(value == call.expected, call.value);
    case Kind::kIncrement: {
      const std::optional<uint64_t> counter = CounterIn(value);
      if (!counter) return std::nullopt;
      const uint64_t sum = *counter + call.delta;
      return Effect{NumberOf(std::optional(BytesOf(sum))), NumberOf(Outcome(Counted{sum}))};
    }
    // What is explored are operations on one key: a scan would be reported as one that nothing explains.
    case Kind::kScan:
    case Kind::kLast:
    case Kind::kSeen: break;
  }
  return std::nullopt;
}

uint32_t Monitor::NumberOf(const std::optional<std::string>& value) {
  const auto [at, is_new] = value_numbers_.try_emplace(value, static_cast<uint32_t>(values_.size()));
  if (is_new) values_.push_back(value);
  return at->second;
}

uint32_t Monitor::NumberOf(const Outcome& outcome) {
  const auto [at, is_new] =
      outcome_numbers_.try_emplace(Fingerprint(outcome), static_cast<uint32_t>(outcomes_.size()));
  if (is_new) outcomes_.push_back(outcome);
  return at->second;
}

uint32_t Monitor::RecordKey(const KeyState& state) {
  std::vector<uint32_t> fingerprint{static_cast<uint32_t>(state.pending.size())};
  for (const Pending& pending : state.pending) {
    fingerprint.push_back(pending.operation);
    fingerprint.push_back(pending.invocation);
  }
  for (const Explanation& explanation : state.explanations) {
    fingerprint.push_back(explanation.value);
    fingerprint.insert(fingerprint.end(), explanation.fates.begin(), explanation.fates.end());
  }
  const auto [at, is_new] =
      key_state_numbers_.try_emplace(std::move(fingerprint), static_cast<uint32_t>(key_states_.size()));
  if (is_new) key_states_.push_back(state);
  return at->second;
}

Monitor::History Monitor::Record(const Keys& keys) {
  const auto [at, is_new] = history_numbers_.try_emplace(keys, static_cast<uint32_t>(histories_.size()));
  if (is_new) histories_.push_back(keys);
  return at->second;
}

}  // namespace farside::check::exhaustive
