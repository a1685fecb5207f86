#include "tools/common/columns.h"

#include <algorithm>
#include <cstddef>

namespace farside::tools {
namespace {

// Characters, not bytes, of what is UTF-8; each of them takes one column, nearly always.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Columns(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<size_t> widths(alignment.size(), 0);
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool last = i + 1 == widths.size();
      const std::string padding(widths[i] - Width(row[i]), ' ');
      if (alignment[i] == 'r') text += padding;
      text += row[i];
      if (alignment[i] == 'l' && !last) text += padding;
      text += last ? "\n" : "  ";
    }
  }
  return text;
}

}  // namespace farside::tools
