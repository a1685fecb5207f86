// A range of keys of an ordered table, and how far a scan through a range has come.
//
// Keys are ordered by their bytes, taken as unsigned numbers, as memcmp compares them. A key comes before
// every longer key that begins with it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace farside {

struct KeyRange {
  std::string from = {};               // the smallest key of the range; "" is the smallest key of all
  std::optional<std::string> to = {};  // the smallest key beyond the range; none: the range has no end

  static KeyRange All() { return {}; }
  static KeyRange From(std::string_view from) { return {.from = std::string(from)}; }
  static KeyRange Between(std::string_view from, std::string_view to) {
    return {.from = std::string(from), .to = std::string(to)};
  }
  // All keys that begin with `prefix`. The end of the range is the prefix without trailing 0xff bytes, with
  // its last byte raised by one; if no byte is left, the range has no end.
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

// How far a scan through a range has come (Session::Next). It holds the rest of the range, and no position in
// the table. So it may be copied, kept, and used by any session, and inserts and deletes between two calls do
// not disturb it.
struct RangeCursor {
  KeyRange rest = {};         // begins right after the last key that was returned
  size_t page_records = 256;  // the most records of a page; at least 1
  bool at_end = false;        // the scan has returned the whole range
};

}  // namespace farside
