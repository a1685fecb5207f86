#include "bench/peers/resp.h"

#include <charconv>
#include <system_error>

namespace farside::peers {
namespace {

using Kind = RespToken::Kind;

constexpr std::string_view kEnd = "\r\n";

// The whole text is a number: digits, perhaps after a minus.
bool ParseNumber(std::string_view text, int64_t& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

// The line at the front without its end. A lone '\r' or '\n' is no part of a line.
Parsed ParseLine(std::string_view in, std::string_view& line) {
  const size_t end = in.substr(0, kLongestRespLine).find_first_of(kEnd);
  if (end == std::string_view::npos) return in.size() < kLongestRespLine ? Parsed::kMore : Parsed::kMalformed;
  if (in[end] != '\r') return Parsed::kMalformed;
  if (end + 1 == in.size()) return Parsed::kMore;
  if (in[end + 1] != '\n') return Parsed::kMalformed;
  line = in.substr(0, end);
  return Parsed::kComplete;
}

Parsed ParseBytes(std::string_view in, size_t at, int64_t length, RespToken& token, size_t& consumed) {
  if (length < -1 || length > kLongestRespBytes) return Parsed::kMalformed;
  if (length == -1) {
    token = {.kind = Kind::kNil};
    consumed = at;
    return Parsed::kComplete;
  }
  const auto bytes = static_cast<size_t>(length);
  const std::string_view rest = in.substr(at);
  if (rest.size() > bytes) {
    const std::string_view end = rest.substr(bytes, kEnd.size());
    if (end != kEnd.substr(0, end.size())) return Parsed::kMalformed;
  }
  if (rest.size() < bytes + kEnd.size()) return Parsed::kMore;
  token = {.kind = Kind::kBytes, .text = rest.substr(0, bytes)};
  consumed = at + bytes + kEnd.size();
  return Parsed::kComplete;
}

}  // namespace

Parsed ParseResp(std::string_view in, RespToken& token, size_t& consumed) {
  if (in.empty()) return Parsed::kMore;
  const char type = in.front();
  if (std::string_view("+-:$*").find(type) == std::string_view::npos) return Parsed::kMalformed;
  std::string_view line;
  if (const Parsed parsed = ParseLine(in.substr(1), line); parsed != Parsed::kComplete) return parsed;
  const size_t at = 1 + line.size() + kEnd.size();
  if (type == '+' || type == '-') {
    token = {.kind = type == '+' ? Kind::kText : Kind::kError, .text = line};
    consumed = at;
    return Parsed::kComplete;
  }

  int64_t number = 0;
  if (!ParseNumber(line, number)) return Parsed::kMalformed;
  if (type == '$') return ParseBytes(in, at, number, token, consumed);
  if (type == ':') {
    token = {.kind = Kind::kNumber, .number = number};
  } else {
    if (number < -1 || number > kLongestRespArray) return Parsed::kMalformed;
    token = {.kind = number < 0 ? Kind::kNil : Kind::kArray, .number = number < 0 ? 0 : number};
  }
  consumed = at;
  return Parsed::kComplete;
}

}  // namespace farside::peers
