// Keys and bounds: byte strings in the order of their bytes. Comparisons look at the first 8 bytes first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

inline constexpr size_t kPrefixBytes = 8;

// The first 8 bytes as a big-endian number, a shorter key padded with zeros. If the prefixes of two keys
// differ, the keys have the same order as the prefixes.
inline uint64_t PrefixOf(std::string_view key) {
  if (key.size() >= kPrefixBytes) return __builtin_bswap64(LoadU64(AsBytes(key).data()));
  uint64_t prefix = 0;
  for (size_t i = 0; i < kPrefixBytes; ++i)
    prefix = prefix << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
  return prefix;
}
// The first bytes of a prefix.
inline std::string TextOf(uint64_t prefix, size_t bytes) {
  std::string text(std::min(bytes, kPrefixBytes), '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(prefix >> (56 - 8 * i));
  return text;
}

inline uint64_t TagOf(uint64_t hash) { return hash >> 48; }

// A key that is searched for; a view.
struct Key {
  explicit Key(std::string_view key) : text(key), prefix(PrefixOf(key)) {}
  std::string_view text;
  uint64_t prefix;
};

// A fence or a pivot: a byte string, which need not be a key of the table, or infinity.
struct Bound {
  static Bound Beyond() { return {.infinite = true}; }
  static Bound Of(std::string_view text) { return {.prefix = PrefixOf(text), .text = std::string(text)}; }

  uint64_t prefix = 0;
  bool infinite = false;
  std::string text = {};

  friend bool operator==(const Bound&, const Bound&) = default;
};

inline bool IsBelow(const Key& key, const Bound& bound) {
  if (bound.infinite) return true;
  if (key.prefix != bound.prefix) return key.prefix < bound.prefix;
  return key.text < bound.text;
}

// The shortest byte string that is above `low` and not above `high`; low < high.
inline std::string Separator(std::string_view low, std::string_view high) {
  const size_t common = static_cast<size_t>(
      std::mismatch(low.begin(), low.begin() + static_cast<std::ptrdiff_t>(std::min(low.size(), high.size())),
                    high.begin())
          .first -
      low.begin());
  return std::string(high.substr(0, common + 1));
}

}  // namespace farside::index::chime
