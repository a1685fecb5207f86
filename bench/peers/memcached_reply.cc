#include "bench/peers/memcached_reply.h"

#include <charconv>
#include <system_error>

namespace farside::peers {
namespace {

using Kind = MemcachedReply::Kind;

constexpr std::string_view kEnd = "\r\n";

// The word at the front of the line, which it is taken from together with the space behind it.
std::string_view TakeWord(std::string_view& line) {
  const size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

bool ParseLength(std::string_view text, size_t& length) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
  return failure == std::errc() && end == text.data() + text.size() && length <= kLongestMemcachedValue;
}

// The line at the front without its end. A lone '\r' or '\n' is no part of a line.
Parsed ParseLine(std::string_view in, std::string_view& line) {
  const size_t end = in.substr(0, kLongestMemcachedLine).find_first_of(kEnd);
  if (end == std::string_view::npos) {
    return in.size() < kLongestMemcachedLine ? Parsed::kMore : Parsed::kMalformed;
  }
  if (in[end] != '\r') return Parsed::kMalformed;
  if (end + 1 == in.size()) return Parsed::kMore;
  if (in[end + 1] != '\n') return Parsed::kMalformed;
  line = in.substr(0, end);
  return Parsed::kComplete;
}

// The bytes behind the line of a value.
Parsed ParseValue(std::string_view in, size_t at, size_t length, std::string_view key, MemcachedReply& reply,
                  size_t& consumed) {
  const std::string_view rest = in.substr(at);
  if (rest.size() > length) {
    const std::string_view end = rest.substr(length, kEnd.size());
    if (end != kEnd.substr(0, end.size())) return Parsed::kMalformed;
  }
  if (rest.size() < length + kEnd.size()) return Parsed::kMore;
  reply = {.kind = Kind::kValue, .key = key, .text = rest.substr(0, length)};
  consumed = at + length + kEnd.size();
  return Parsed::kComplete;
}

bool IsError(std::string_view word) {
  return word == "ERROR" || word == "CLIENT_ERROR" || word == "SERVER_ERROR";
}

// Lines that are whole replies.
bool KindOf(std::string_view word, Kind& kind) {
  if (word == "STORED" || word == "HD") {
    kind = Kind::kStored;
  } else if (word == "END" || word == "EN") {
    kind = Kind::kEnd;
  } else if (word == "NOT_STORED" || word == "NS") {
    kind = Kind::kNotStored;
  } else if (word == "MN") {
    kind = Kind::kNoop;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Parsed ParseMemcached(std::string_view in, MemcachedReply& reply, size_t& consumed) {
  std::string_view line;
  if (const Parsed parsed = ParseLine(in, line); parsed != Parsed::kComplete) return parsed;
  const size_t at = line.size() + kEnd.size();
  std::string_view rest = line;
  const std::string_view word = TakeWord(rest);
  size_t length = 0;
  if (word == "VALUE") {
    const std::string_view key = TakeWord(rest);
    TakeWord(rest);  // flags
    if (key.empty() || !ParseLength(TakeWord(rest), length)) return Parsed::kMalformed;
    return ParseValue(in, at, length, key, reply, consumed);
  }
  if (word == "VA") {
    if (!ParseLength(TakeWord(rest), length)) return Parsed::kMalformed;
    return ParseValue(in, at, length, {}, reply, consumed);
  }

  Kind kind = Kind::kEnd;
  if (word == "VERSION") {
    reply = {.kind = Kind::kVersion, .text = rest};
  } else if (IsError(word)) {
    reply = {.kind = Kind::kError, .text = line};
  } else if (KindOf(word, kind)) {
    reply = {.kind = kind};
  } else {
    return Parsed::kMalformed;
  }
  consumed = at;
  return Parsed::kComplete;
}

}  // namespace farside::peers
