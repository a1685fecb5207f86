// A stretch of the keys of an ordered table, and how far a scan through one has come.
//
// Order is that of the bytes, taken as unsigned, as memcmp has it, and a key comes before every longer one that begins
// with it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace farside {

struct KeyRange {
  std::string from = {};               // the first key that may be in it: all keys are at least ""
  std::optional<std::string> to = {};  // the first that is beyond it; none: no end

  static KeyRange All() { return {}; }
  static KeyRange From(std::string_view from) { return {.from = std::string(from)}; }
  static KeyRange Between(std::string_view from, std::string_view to) {
    return {.from = std::string(from), .to = std::string(to)};
  }
  // All keys that begin with it. The first beyond them is the prefix without its last bytes that are 0xff, its last byte
  // then raised by one; if nothing is left, there is none.
  static KeyRange Prefix(std::string_view prefix) {
    KeyRange range = From(prefix);
    std::string beyond(prefix);
    while (!beyond.empty() && beyond.back() == '\xff') beyond.pop_back();
    if (beyond.empty()) return range;
    beyond.back() = static_cast<char>(static_cast<unsigned char>(beyond.back()) + 1);
    range.to = beyond;
    return range;
  }

  bool Has(std::string_view key) const { return key >= from && !IsBeyond(key); }
  bool IsBeyond(std::string_view key) const { return to.has_value() && key >= *to; }

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// How far a scan through a range has come (Session::Next). It holds what is left of the range, and no place in the table:
// so it may be copied, kept, and used by any session, and what is inserted or deleted meanwhile does not disturb it.
struct RangeCursor {
  KeyRange rest = {};         // from behind the last key that was returned
  size_t page_records = 256;  // of a page, at most; at least 1
  bool at_end = false;        // nothing is left
};

}  // namespace farside
