#include "tools/common/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>

#include <fmt/format.h>

namespace farside::tools {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 255;

constexpr std::array<uint8_t, 256> Base64Values() {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kNoDigit;
  for (size_t i = 0; i < kBase64Digits.size(); ++i) {
    values[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

uint32_t ByteAt(std::string_view bytes, size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
}

// The bytes of the character that `text` begins with; 0 if they are no UTF-8.
size_t CharacterBytes(std::string_view text) {
  const auto continues = [&](size_t i) { return (ByteAt(text, i) & 0xc0) == 0x80; };
  const uint32_t first = ByteAt(text, 0);
  const uint32_t second = ByteAt(text, 1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !continues(1)) return 0;
  if (first < 0xe0) return 2;
  // Neither longer than it need be, nor half of a pair of UTF-16.
  if (!continues(2) || (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if (first < 0xf0) return 3;
  // Nor beyond the last character, U+10FFFF.
  if (!continues(3) || (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return 4;
}

struct CodePoints {
  uint32_t first;
  uint32_t last;
};

// Characters that a terminal obeys instead of showing them, or that cannot be seen: with them, text looks
// like other text. Emoji lose the joiners inside of them, which is the price.
constexpr CodePoints kHidden[] = {
    {0x00, 0x1f},        // control characters
    {0x7f, 0x9f},        // more of them; U+009B begins what terminals obey
    {0xad, 0xad},        // soft hyphen
    {0x34f, 0x34f},      // combining grapheme joiner
    {0x61c, 0x61c},      // Arabic letter mark
    {0x115f, 0x1160},    // Hangul fillers
    {0x17b4, 0x17b5},    // Khmer vowels that are not shown
    {0x180b, 0x180f},    // Mongolian selectors and separator
    {0x200b, 0x200f},    // of zero width, and marks of direction
    {0x2028, 0x202e},    // separators of lines and paragraphs; embedding and overriding the direction
    {0x2060, 0x206f},    // joiners, operators that are not shown, isolates of direction
    {0x3164, 0x3164},    // Hangul filler
    {0xfe00, 0xfe0f},    // variation selectors
    {0xfeff, 0xfeff},    // byte order mark, also of zero width
    {0xffa0, 0xffa0},    // Hangul filler
    {0xfff0, 0xfffb},    // not assigned, and annotations
    {0xfffe, 0xffff},    // no characters
    {0x1bca0, 0x1bca3},  // shorthand format controls
    {0x1d173, 0x1d17a},  // musical format controls
    {0xe0000, 0xe0fff},  // tags and variation selectors
};

// Of a character that is UTF-8.
uint32_t CodePoint(std::string_view character) {
  constexpr std::array<uint32_t, 5> kFirstByte = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t code = ByteAt(character, 0) & kFirstByte[character.size()];
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (ByteAt(character, i) & 0x3f);
  return code;
}

bool IsHidden(std::string_view character) {
  const uint32_t code = CodePoint(character);
  return std::any_of(std::begin(kHidden), std::end(kHidden), [code](const CodePoints& hidden) {
    return hidden.first <= code && code <= hidden.last;
  });
}

// The next character of `bytes`, or a byte that belongs to none, is taken away from it and appended to `text`
// as it is or as \xNN.
void AppendVisible(std::string& text, std::string_view& bytes) {
  const size_t whole = CharacterBytes(bytes);
  const std::string_view character = bytes.substr(0, whole == 0 ? 1 : whole);
  bytes.remove_prefix(character.size());
  if (whole > 0 && !IsHidden(character)) {
    text += character;
    return;
  }
  for (size_t i = 0; i < character.size(); ++i)
    fmt::format_to(std::back_inserter(text), "\\x{:02x}", ByteAt(character, i));
}

std::optional<uint32_t> HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return std::nullopt;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t character = CharacterBytes(bytes);
    if (character == 0) return false;
    bytes.remove_prefix(character);
  }
  return true;
}

std::string Readable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const char first = bytes.front();
    if (first == '\\' || first == '\t' || first == '\n') {
      text += first == '\\' ? "\\\\" : first == '\t' ? "\\t" : "\\n";
      bytes.remove_prefix(1);
    } else {
      AppendVisible(text, bytes);
    }
  }
  return text;
}

std::string Harmless(std::string_view message) {
  std::string text;
  text.reserve(message.size());
  while (!message.empty()) {
    if (message.front() == '\n') {
      text += '\n';
      message.remove_prefix(1);
    } else {
      AppendVisible(text, message);
    }
  }
  return text;
}

std::string ToHex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    text += kHexDigits[ByteAt(bytes, i) >> 4];
    text += kHexDigits[ByteAt(bytes, i) & 15];
  }
  return text;
}

std::string ToBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const uint32_t three = ByteAt(bytes, at) << 16 | ByteAt(bytes, at + 1) << 8 | ByteAt(bytes, at + 2);
    const size_t left = bytes.size() - at;
    text += kBase64Digits[three >> 18];
    text += kBase64Digits[three >> 12 & 63];
    text += left > 1 ? kBase64Digits[three >> 6 & 63] : '=';
    text += left > 2 ? kBase64Digits[three & 63] : '=';
  }
  return text;
}

Result<std::string> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) {
    return Refuse(fmt::format("hexadecimal has two digits for each byte; these are {}", text.size()));
  }
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t at = 0; at < text.size(); at += 2) {
    const std::optional<uint32_t> high = HexValue(text[at]);
    const std::optional<uint32_t> low = HexValue(text[at + 1]);
    if (!high.has_value() || !low.has_value()) {
      return Refuse(fmt::format("'{}' is not hexadecimal", Readable(text.substr(at, 2))));
    }
    bytes += static_cast<char>(*high << 4 | *low);
  }
  return bytes;
}

Result<std::string> FromBase64(std::string_view text) {
  static constexpr std::array<uint8_t, 256> kValues = Base64Values();
  if (text.size() % 4 != 0) {
    return Refuse(
        fmt::format("base64 has groups of four characters, padded with '='; these are {}", text.size()));
  }
  size_t padding = 0;
  if (text.ends_with("==")) {
    padding = 2;
  } else if (text.ends_with('=')) {
    padding = 1;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t three = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t value = i < digits ? kValues[ByteAt(text, at + i)] : uint8_t{0};
      if (value == kNoDigit) {
        return Refuse(fmt::format("'{}' is not base64", Readable(text.substr(at, 4))));
      }
      three = three << 6 | value;
    }
    const uint32_t unused = digits == 4 ? 0 : three & (digits == 3 ? 0xff : 0xffff);
    if (unused != 0) {
      return Refuse(fmt::format("'{}' is not how base64 ends: it has bits to spare", text.substr(at, 4)));
    }
    bytes += static_cast<char>(three >> 16);
    if (digits > 2) bytes += static_cast<char>(three >> 8 & 255);
    if (digits > 3) bytes += static_cast<char>(three & 255);
  }
  return bytes;
}

std::string Encode(std::string_view bytes, Encoding encoding) {
  switch (encoding) {
    case Encoding::kPlain: return std::string(bytes);
    case Encoding::kHex: return ToHex(bytes);
    case Encoding::kBase64: return ToBase64(bytes);
  }
  return "";
}

Result<std::string> Decode(std::string_view text, Encoding encoding) {
  switch (encoding) {
    case Encoding::kPlain: return std::string(text);
    case Encoding::kHex: return FromHex(text);
    case Encoding::kBase64: return FromBase64(text);
  }
  return std::string();
}

}  // namespace farside::tools
