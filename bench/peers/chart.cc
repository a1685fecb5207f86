#include "bench/peers/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench/peers/report.h"

namespace farside::peers {
namespace {

// ---- sizes, in pixels

constexpr double kPanelWidth = 390;
constexpr double kPanelHeight = 250;
constexpr double kLeft = 62;  // of a panel's frame: the numbers of its axis
constexpr double kRight = 14;
constexpr double kTop = 34;     // its title
constexpr double kBottom = 42;  // the depths
constexpr double kHead = 58;    // of the picture: title and what is shown
constexpr double kLegendRow = 20;
constexpr size_t kLegendColumns = 3;

// Of middle brightness, so that they stand out on white and on black.
constexpr std::array<std::string_view, 8> kColours = {"#2f81f7", "#e8590c", "#2f9e44", "#ae3ec9",
                                                      "#c92a6b", "#0c8599", "#a07200", "#6c7a89"};
constexpr std::string_view kInk = "#7a828c";

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '&': escaped += "&amp;"; break;
      case '"': escaped += "&quot;"; break;
      // XML has no place for control characters, and bytes beyond ASCII may not be UTF-8.
      default: escaped += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return escaped;
}

// A marker of its own for each system, for those who do not see the colours.
std::string Marker(size_t system, double x, double y) {
  const std::string_view colour = kColours[system % kColours.size()];
  switch (system % 4) {
    case 0: return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"/>)", x, y, colour);
    case 1:
      return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="7" height="7" fill="{}"/>)", x - 3.5, y - 3.5,
                         colour);
    case 2: return fmt::format(R"(<path d="M{:.1f} {:.1f}l5 8h-10z" fill="{}"/>)", x, y - 5, colour);
    default: return fmt::format(R"(<path d="M{:.1f} {:.1f}l5 5l-5 5l-5 -5z" fill="{}"/>)", x, y - 5, colour);
  }
}

std::string Text(double x, double y, std::string_view anchor, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, style,
                     Escaped(text));
}

constexpr std::string_view kBold = " font-weight=\"600\"";

// From throughput to height, by powers of ten.
class Scale {
 public:
  explicit Scale(const Results& results) {
    double low = 1e300;
    double high = 0;
    for (const Cell& cell : results.cells) {
      for (const Entry& entry : cell.entries) {
        if (!(entry.Slowest() > 0) || !std::isfinite(entry.Fastest())) continue;
        low = std::min(low, entry.Slowest());
        high = std::max(high, entry.Fastest());
      }
    }
    if (high == 0) low = high = 1;
    first_ = static_cast<int>(std::floor(std::log10(low)));
    last_ = std::max(first_ + 1, static_cast<int>(std::ceil(std::log10(high))));
  }

  int first() const { return first_; }
  int last() const { return last_; }
  // 0 at the bottom of the axis and 1 at its top.
  double At(double value) const {
    if (!(value > 0) || !std::isfinite(value)) return 0;
    return std::clamp((std::log10(value) - first_) / (last_ - first_), 0.0, 1.0);
  }

 private:
  int first_ = 0;  // powers of ten
  int last_ = 1;
};

struct Panel {
  Operation operation;
  size_t clients;
  std::vector<const Cell*> cells;  // one for each depth
};

std::vector<Panel> PanelsOf(const Results& results) {
  std::vector<Panel> panels;
  for (const Cell& cell : results.cells) {
    const auto same = [&](const Panel& panel) {
      return panel.operation == cell.operation && panel.clients == cell.clients;
    };
    auto found = std::find_if(panels.begin(), panels.end(), same);
    if (found == panels.end()) found = panels.insert(found, {cell.operation, cell.clients, {}});
    found->cells.push_back(&cell);
  }
  // A row for each number of clients, GET beside SET.
  std::stable_sort(panels.begin(), panels.end(),
                   [](const Panel& a, const Panel& b) { return a.clients < b.clients; });
  return panels;
}

class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, const Scale& scale, size_t systems, double x, double y)
      : panel_(panel), scale_(scale), systems_(systems), x_(x + kLeft), y_(y + kTop) {}

  std::string Draw() {
    Frame();
    for (size_t system = 0; system < systems_; ++system) Row(system);
    return std::move(svg_);
  }

 private:
  static constexpr double kWidth = kPanelWidth - kLeft - kRight;
  static constexpr double kHeight = kPanelHeight - kTop - kBottom;
  static constexpr double kFilled = 0.85;  // of the width of a depth; the rest is the gap to the next one

  // The middle of a depth's share of the width; and a system's place in it, in the order of the legend.
  double X(size_t cell) const {
    return x_ + kWidth * (static_cast<double>(cell) + 0.5) / static_cast<double>(panel_.cells.size());
  }
  double X(size_t cell, size_t system) const {
    const double share = kWidth / static_cast<double>(panel_.cells.size());
    const double offset = (static_cast<double>(system) + 0.5) / static_cast<double>(systems_) - 0.5;
    return X(cell) + kFilled * share * offset;
  }
  double Y(double value) const { return y_ + kHeight * (1 - scale_.At(value)); }

  void Frame() {
    svg_ += Text(x_, y_ - 12, "start", kBold,
                 fmt::format("{}, {} client{}", Name(panel_.operation), panel_.clients,
                             panel_.clients == 1 ? "" : "s"));
    for (int power = scale_.first(); power <= scale_.last(); ++power) {
      const double y = Y(std::pow(10, power));
      fmt::format_to(std::back_inserter(svg_),
                     R"(<path d="M{:.1f} {:.1f}h{:.1f}" stroke="{}" stroke-opacity="0.35"/>)", x_, y, kWidth,
                     kInk);
      svg_ += Text(x_ - 6, y + 4, "end", "", AxisNumber(power));
      if (power == scale_.last()) continue;
      for (const int between : {2, 5}) {
        fmt::format_to(std::back_inserter(svg_),
                       R"(<path d="M{:.1f} {:.1f}h{:.1f}" stroke="{}" stroke-opacity="0.15"/>)", x_,
                       Y(between * std::pow(10, power)), kWidth, kInk);
      }
    }
    for (size_t cell = 0; cell < panel_.cells.size(); ++cell) {
      svg_ += Text(X(cell), y_ + kHeight + 18, "middle", "", std::to_string(panel_.cells[cell]->depth));
    }
    svg_ += Text(x_ + kWidth / 2, y_ + kHeight + 35, "middle", "", "operations at a time (depth)");
  }

  static std::string AxisNumber(int power) {
    const int unit = std::clamp(power / 3, 0, 3);
    const std::string_view name =
        std::array<std::string_view, 4>{"", " k", " M", " G"}[static_cast<size_t>(unit)];
    return fmt::format("{:.0f}{}", std::pow(10, power - 3 * unit), name);
  }

  // At each depth the median, on a stem, and a line from the slowest round to the fastest one.
  void Row(size_t system) {
    const std::string_view colour = kColours[system % kColours.size()];
    for (size_t cell = 0; cell < panel_.cells.size(); ++cell) {
      for (const Entry& entry : panel_.cells[cell]->entries) {
        if (entry.system != system || entry.rounds.empty()) continue;
        const double x = X(cell, system);
        const double y = Y(entry.Middle().ops_per_second);
        fmt::format_to(std::back_inserter(svg_),
                       R"(<path d="M{:.1f} {:.1f}V{:.1f}" stroke="{}" stroke-opacity="0.4"/>)", x,
                       y_ + kHeight, y, colour);
        fmt::format_to(std::back_inserter(svg_),
                       R"(<path d="M{:.1f} {:.1f}V{:.1f}" stroke="{}" stroke-width="2"/>)", x,
                       Y(entry.Slowest()), Y(entry.Fastest()), colour);
        svg_ += Marker(system, x, y) + "\n";
      }
    }
  }

  const Panel& panel_;
  const Scale& scale_;
  const size_t systems_;
  const double x_;  // of the frame
  const double y_;
  std::string svg_;
};

std::string Legend(const Results& results, double y) {
  std::string svg;
  const double step = (2 * kPanelWidth - kLeft) / kLegendColumns;
  for (size_t system = 0; system < results.systems.size(); ++system) {
    const double x = kLeft + static_cast<double>(system % kLegendColumns) * step;
    const double row = y + kLegendRow * static_cast<double>(system / kLegendColumns);
    svg += Marker(system, x + 5, row - 4);
    svg += Text(x + 16, row, "start", "", results.systems[system].name);
  }
  return svg;
}

}  // namespace

std::string Chart(const Results& results) {
  const std::vector<Panel> panels = PanelsOf(results);
  const Scale scale(results);
  const size_t rows = (panels.size() + 1) / 2;
  const size_t legend_rows = (results.systems.size() + kLegendColumns - 1) / kLegendColumns;
  const double panels_end = kHead + static_cast<double>(rows) * kPanelHeight;
  const double height = panels_end + static_cast<double>(legend_rows) * kLegendRow + 20;
  const double width = 2 * kPanelWidth;
  const Setting& setting = results.setting;

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"{2}\">\n<title>Throughput "
      "of Farside "
      "and others</title>\n",
      width, height, kInk);
  svg +=
      Text(kLeft, 24, "start", " font-size=\"16\" font-weight=\"600\"", "Throughput, operations per second");
  svg += Text(
      kLeft, 44, "start", "",
      fmt::format("{} records of {}+{} bytes, uniform; log scale; medians of {} rounds, bars from slowest to "
                  "fastest; {} cores",
                  ShortNumber(static_cast<double>(setting.records)), kKeyBytes, setting.value_size,
                  setting.rounds, setting.cores));
  for (size_t i = 0; i < panels.size(); ++i) {
    const double x = static_cast<double>(i % 2) * kPanelWidth;
    const double y = kHead + static_cast<double>(i / 2) * kPanelHeight;
    svg += PanelDrawing(panels[i], scale, results.systems.size(), x, y).Draw();
  }
  svg += Legend(results, panels_end + 16);
  return svg + "</svg>\n";
}

}  // namespace farside::peers
