// Records as lines of text, for `import` and `export`: JSON, one object per line.
//
//   {"key":"ada","value":"countess"}
//   {"key":"caf\u00e9","value":"a line\nand another"}          text is UTF-8; \u00e9 and é are the same
//   {"key64":"AP8=","value":"any bytes"}                       bytes that are no UTF-8, in base64 (RFC 4648)
//   {"key":"picture","value64":"iVBORw0KGgo="}
//
// A line has a key, "key" or "key64", and a value, "value" or "value64", in any order, and nothing else.
// Base64 may be used for any bytes. Empty lines mean nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "farside/record.h"
#include "farside/result.h"
#include "farside/session.h"

namespace farside::tools {

// No record needs a longer line: each byte takes six characters at most, as in \u0001; the rest is for
// spaces.
inline constexpr size_t kMostLineBytes = 6 * (kMaxKeyBytes + kMaxValueBytes) + (size_t{1} << 20);

// The line with its newline, which ParseRecord reads back as the same bytes.
std::string FormatRecord(std::string_view key, std::string_view value);

// `"key":"ada"` or `"key64":"AP8="`: a field of any JSON object. `name` is "key" or "value".
std::string FormatField(std::string_view name, std::string_view bytes);

// Any bytes, without their newline. Nothing if there are only spaces. kInvalidArgument says what is wrong in
// words that can follow "line 3: ".
Result<std::optional<Record>> ParseRecord(std::string_view line);

}  // namespace farside::tools
