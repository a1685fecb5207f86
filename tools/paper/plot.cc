#include "tools/paper/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

namespace farside::tools::paper {
namespace {

constexpr size_t kMargin = 14;
constexpr std::array<std::string_view, 9> kEighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::vector<double> Narrowed(const std::vector<double>& columns, size_t width) {
  if (columns.size() <= width) return columns;
  std::vector<double> narrow;
  for (size_t i = 0; i < width; ++i) {
    const size_t begin = i * columns.size() / width;
    const size_t end = (i + 1) * columns.size() / width;
    narrow.push_back(std::accumulate(columns.begin() + static_cast<ptrdiff_t>(begin),
                                     columns.begin() + static_cast<ptrdiff_t>(end), 0.0) /
                     static_cast<double>(end - begin));
  }
  return narrow;
}

// What a column of this height, in rows, shows in the row that begins at `floor`.
std::string_view Cell(double height, double floor, bool unicode) {
  const double part = std::clamp(height - floor, 0.0, 1.0);
  if (unicode) return kEighths[static_cast<size_t>(std::lround(part * 8))];
  return part >= 0.5 ? "#" : " ";
}

std::string MarkLine(const Plot& plot, size_t width) {
  std::string line(width, ' ');
  for (const auto& [at, mark] : plot.marks) {
    const double column = std::clamp(at, 0.0, 1.0) * static_cast<double>(width);
    line[std::min(static_cast<size_t>(column), width - 1)] = mark;
  }
  return line;
}

std::string WithoutTrailingSpace(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string PlotText(const Plot& plot, bool unicode, size_t width, size_t height) {
  const std::vector<double> columns = Narrowed(plot.columns, std::max<size_t>(width, 1));
  if (columns.empty() || height == 0) return "";
  const double top = *std::max_element(columns.begin(), columns.end());
  std::string text = plot.title + "\n";
  for (size_t row = height; row-- > 0;) {
    std::string label;
    if (row == height - 1) label = fmt::format("{:.2f} {}", top, plot.y_unit);
    if (row == 0) label = "0";
    std::string line = fmt::format("{:>{}} |", label, kMargin);
    for (const double column : columns) {
      const double rows = top > 0 ? column / top * static_cast<double>(height) : 0;
      line += Cell(rows, static_cast<double>(row), unicode);
    }
    text += WithoutTrailingSpace(std::move(line));
  }
  const std::string indent(kMargin + 2, ' ');
  if (!plot.marks.empty()) text += WithoutTrailingSpace(indent + MarkLine(plot, columns.size()));
  const size_t gap = columns.size() > plot.x_begin.size() + plot.x_end.size()
                         ? columns.size() - plot.x_begin.size() - plot.x_end.size()
                         : 1;
  text += indent + plot.x_begin + std::string(gap, ' ') + plot.x_end + "\n";
  if (!plot.legend.empty()) text += indent + plot.legend + "\n";
  return text;
}

}  // namespace farside::tools::paper
