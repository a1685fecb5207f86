#include "base/bytes.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace farside {
namespace {

constexpr size_t kBytesPerLine = 16;

void AppendHexLine(std::string& out, std::span<const std::byte> line, uint64_t offset) {
  fmt::format_to(std::back_inserter(out), "{:08x} ", offset);
  for (size_t i = 0; i < kBytesPerLine; ++i) {
    if (i % 8 == 0) out += ' ';
    if (i < line.size()) {
      fmt::format_to(std::back_inserter(out), "{:02x} ", std::to_integer<unsigned>(line[i]));
    } else {
      out += "   ";
    }
  }
  out += " |";
  for (const char c : AsText(line)) out += IsPrintableAscii(c) ? c : '.';
  out += "|\n";
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (IsPrintableAscii(c)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string EscapeAtMost(std::string_view text, size_t most) {
  return text.size() <= most ? Escape(text) : Escape(text.substr(0, most)) + "...";
}

std::string HexDump(std::span<const std::byte> bytes, uint64_t offset) {
  std::string out;
  for (size_t done = 0; done < bytes.size(); done += kBytesPerLine) {
    AppendHexLine(out, bytes.subspan(done, std::min(kBytesPerLine, bytes.size() - done)), offset + done);
  }
  return out;
}

}  // namespace farside
