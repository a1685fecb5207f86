// Options of a table as users give them, `k=v`: an engine lists its options, and how each is read.
//
//   constexpr auto kRules = std::to_array<OptionRule<Options>>({
//       {"slots", [](Options& o, const OptionText& given) { return Set(o.slots, given.Number(1, 64)); }},
//   });
//   Result<Options> parsed = ParseOptions("the shard table", kRules, options);
//
// What is wrong is kInvalidArgument, and names the option and what is expected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"

namespace farside::index {

// One that was given. Its readers return what the text says, or an error.
struct OptionText {
  std::string_view key;
  std::string_view text;

  Result<uint64_t> Number(uint64_t low, uint64_t high) const;
  Result<double> Fraction(double low, double high) const;
  Result<uint64_t> PowerOfTwo(uint64_t most) const;
  Result<uint64_t> MultipleOf(uint64_t unit, uint64_t most) const;
  Result<Nanos> Micros(uint64_t low, uint64_t high) const;
  // A number of things that a client keeps in its own memory, in one piece of so many bytes each: at most a
  // quarter of the machine's memory, since each session has its own.
  Result<uint64_t> NumberInMemory(uint64_t bytes_each) const;
  // The place of the word among these.
  Result<size_t> OneOf(std::span<const std::string_view> words) const;

  Error Expected(std::string_view what) const;
};

// Sets the target if there is a value for it.
template <class Target, class Value>
Status Set(Target& target, const Result<Value>& value) {
  if (!value.ok()) return value.error();
  target = static_cast<Target>(*value);
  return OkStatus();
}

template <class Value>
struct OptionWord {
  std::string_view word;
  Value value;
};
// Sets the target to the value of the word that was given.
template <class Target, size_t kWords>
Status SetToOneOf(Target& target, const OptionText& given,
                  const std::array<OptionWord<Target>, kWords>& words) {
  std::array<std::string_view, kWords> texts;
  for (size_t i = 0; i < kWords; ++i) texts[i] = words[i].word;
  const Result<size_t> chosen = given.OneOf(texts);
  if (!chosen.ok()) return chosen.error();
  target = words[*chosen].value;
  return OkStatus();
}

template <class Options>
struct OptionRule {
  std::string_view key;
  Status (*set)(Options& options, const OptionText& given);
};

inline constexpr std::array kNoYes = {OptionWord<bool>{"no", false}, OptionWord<bool>{"yes", true}};

// ---- what every engine has: how a client waits, and whether its searches of one key share trips
// (keyed_index.h)
template <class Options>
inline constexpr OptionRule<Options> kBackoffRule = {"backoff_us", [](Options& o, const OptionText& given) {
                                                       return Set(o.backoff, given.Micros(1, 1'000'000));
                                                     }};
template <class Options>
inline constexpr OptionRule<Options> kShareSearchesRule = {
    "share_searches",
    [](Options& o, const OptionText& given) { return SetToOneOf(o.share_searches, given, kNoYes); }};

// "the shard table has no option 'x'; it has ...".
Error UnknownOption(std::string_view table, std::string_view key, std::span<const std::string_view> known);

// What was not given keeps its default.
template <class Options, size_t kCount>
Result<Options> ParseOptions(std::string_view table, const std::array<OptionRule<Options>, kCount>& rules,
                             const OptionMap& given) {
  Options parsed;
  for (const auto& [key, text] : given) {
    const OptionRule<Options>* rule = nullptr;
    std::array<std::string_view, kCount> known;
    for (size_t i = 0; i < kCount; ++i) {
      known[i] = rules[i].key;
      if (known[i] == key) rule = &rules[i];
    }
    if (rule == nullptr) return UnknownOption(table, key, known);
    const Status set = rule->set(parsed, OptionText{.key = key, .text = text});
    if (!set.ok()) return set.error();
  }
  return parsed;
}

}  // namespace farside::index
