// Dumps of large layouts, for golden bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/bytes.h"

namespace farside {

// A dump without text, in which "*" stands for lines that repeat the one before them.
inline std::string BriefDump(std::span<const std::byte> bytes) {
  constexpr size_t kBytesOfALine = 16;
  constexpr size_t kOffsetColumns = 8;
  std::string dump;
  std::string last;
  bool repeats = false;
  for (size_t at = 0; at < bytes.size(); at += kBytesOfALine) {
    std::string line = HexDump(bytes.subspan(at, kBytesOfALine), at);
    line.resize(line.find("  |"));
    const std::string hex = line.substr(kOffsetColumns);
    if (hex == last && !repeats) dump += "*\n";
    repeats = hex == last;
    if (!repeats) dump += line + "\n";
    last = hex;
  }
  return dump;
}

}  // namespace farside
