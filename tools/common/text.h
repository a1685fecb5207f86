// Bytes as text: what people can read, hexadecimal, base64, and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "farside/result.h"

namespace farside::tools {

// How keys and values are written on the command line.
enum class Encoding : uint8_t { kPlain, kHex, kBase64 };

// Whether it is UTF-8 (RFC 3629), control characters included.
bool IsUtf8(std::string_view bytes);

// For people and for `cut -f`: UTF-8 as it is, and \xNN for every byte that is none or belongs to a character
// that a terminal obeys or does not show (controls, marks of direction, zero width, separators of lines);
// tabs, newlines and backslashes are \t, \n and \\. So it is one line without tabs, and different bytes look
// different.
std::string Readable(std::string_view bytes);
// The same for a message that may have names of others in it: newlines and backslashes stay.
std::string Harmless(std::string_view message);

std::string ToHex(std::string_view bytes);
std::string ToBase64(std::string_view bytes);

// kInvalidArgument, in words that can follow "KEY: " or "line 3: ".
Result<std::string> FromHex(std::string_view text);
// As RFC 4648 has it, with its padding; what it would not write is refused, so that every text is that of
// other bytes.
Result<std::string> FromBase64(std::string_view text);

std::string Encode(std::string_view bytes, Encoding encoding);
Result<std::string> Decode(std::string_view text, Encoding encoding);

}  // namespace farside::tools
