#include "bench/peers/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/peers/report.h"

namespace farside::peers {
namespace {

// ---- sizes, in pixels

constexpr double kPanelWidth = 490;
constexpr double kPanelHeight = 320;
constexpr double kLeft = 62;      // of a panel's frame: the numbers of its axis
constexpr double kRight = 192;    // the names of the systems
constexpr double kTop = 34;       // its title
constexpr double kBottom = 42;    // the depths
constexpr double kHead = 58;      // of the picture: title and what is shown
constexpr double kInset = 26;     // from the frame to the first and the last depth
constexpr double kLabelGap = 14;  // between the names of two systems, at least

// Two inks: Farside in the one, all others in the other. Without a style sheet they are told apart on white
// and on black; with one, they follow the page.
constexpr std::string_view kStyle =
    "<style>"
    "text{fill:#57606a}.farside{stroke:#0969da}.peer{stroke:#9aa4ae}.name-farside{fill:#0969da}"
    ".dot-farside{fill:#0969da}.dot-peer{fill:#9aa4ae}.grid{stroke:#7a828c}"
    "@media (prefers-color-scheme:dark){"
    "text{fill:#adbac7}.farside{stroke:#58a6ff}.peer{stroke:#7d8894}.name-farside{fill:#58a6ff}"
    ".dot-farside{fill:#58a6ff}.dot-peer{fill:#7d8894}}"
    "</style>\n";

constexpr std::string_view kInk = "#7a828c";
constexpr std::string_view kFarsideInk = "#2f81f7";

// A system of this name is Farside itself.
bool IsFarside(std::string_view name) { return name.starts_with("farside"); }

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

// Moves heights apart that are closer than `gap`, each as little as possible, and keeps all between `top` and
// `bottom` if they fit. `wanted` ascends.
std::vector<double> MovedApart(const std::vector<double>& wanted, double gap, double top, double bottom) {
  // Less its share of the gaps, a height may not be above the one before. Neighbours that would be have their
  // mean in common.
  struct Group {
    double sum;
    size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < wanted.size(); ++i) {
    groups.push_back({wanted[i] - gap * static_cast<double>(i), 1});
    while (groups.size() > 1 && groups.back().mean() < groups[groups.size() - 2].mean()) {
      groups[groups.size() - 2].sum += groups.back().sum;
      groups[groups.size() - 2].count += groups.back().count;
      groups.pop_back();
    }
  }
  const double room = std::max(0.0, bottom - top - gap * static_cast<double>(wanted.size() - 1));
  std::vector<double> moved;
  for (const Group& group : groups) {
    for (size_t i = 0; i < group.count; ++i) {
      moved.push_back(top + std::clamp(group.mean() - top, 0.0, room) +
                      gap * static_cast<double>(moved.size()));
    }
  }
  return moved;
}

class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, const Scale& scale, const std::vector<SystemInfo>& systems, double x,
               double y)
      : panel_(panel), scale_(scale), systems_(systems), x_(x + kLeft), y_(y + kTop) {}

  std::string Draw() {
    Frame();
    // Farside lies over the others.
    for (const bool farside : {false, true}) {
      for (size_t system = 0; system < systems_.size(); ++system) {
        if (IsFarside(systems_[system].name) == farside) Line(system);
      }
    }
    Names();
    return std::move(svg_);
  }

 private:
  static constexpr double kWidth = kPanelWidth - kLeft - kRight;
  static constexpr double kHeight = kPanelHeight - kTop - kBottom;

  // Where the line of a system ends, and its name belongs.
  struct End {
    size_t system;
    double x;
    double y;
  };

  double X(size_t cell) const {
    if (panel_.cells.size() < 2) return x_ + kWidth / 2;
    return x_ + kInset +
           (kWidth - 2 * kInset) * static_cast<double>(cell) / static_cast<double>(panel_.cells.size() - 1);
  }
  double Y(double value) const { return y_ + kHeight * (1 - scale_.At(value)); }

  template <class... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  void Frame() {
    svg_ += Text(x_, y_ - 12, "start", kBold,
                 fmt::format("{}, {} client{}", Name(panel_.operation), panel_.clients,
                             panel_.clients == 1 ? "" : "s"));
    for (int power = scale_.first(); power <= scale_.last(); ++power) {
      GridLine(std::pow(10, power), 0.35);
      svg_ += Text(x_ - 6, Y(std::pow(10, power)) + 4, "end", "", AxisNumber(power));
      if (power == scale_.last()) continue;
      for (const int between : {2, 5}) GridLine(between * std::pow(10, power), 0.15);
    }
    for (size_t cell = 0; cell < panel_.cells.size(); ++cell) {
      svg_ += Text(X(cell), y_ + kHeight + 18, "middle", "", std::to_string(panel_.cells[cell]->depth));
    }
    svg_ += Text(x_ + kWidth / 2, y_ + kHeight + 35, "middle", "", "operations at a time (depth)");
  }

  void GridLine(double value, double opacity) {
    Add(R"(<path class="grid" d="M{:.1f} {:.1f}h{:.1f}" stroke="{}" stroke-opacity="{}"/>)", x_, Y(value),
        kWidth, kInk, opacity);
  }

  static std::string AxisNumber(int power) {
    const int unit = std::clamp(power / 3, 0, 3);
    const std::string_view name =
        std::array<std::string_view, 4>{"", " k", " M", " G"}[static_cast<size_t>(unit)];
    return fmt::format("{:.0f}{}", std::pow(10, power - 3 * unit), name);
  }

  // A line through the medians, and at each depth a bar from the slowest round to the fastest one.
  void Line(size_t system) {
    const bool farside = IsFarside(systems_[system].name);
    const std::string_view kind = farside ? "farside" : "peer";
    const std::string_view ink = farside ? kFarsideInk : kInk;
    std::string line;
    std::string marks;
    for (size_t cell = 0; cell < panel_.cells.size(); ++cell) {
      for (const Entry& entry : panel_.cells[cell]->entries) {
        if (entry.system != system || entry.rounds.empty()) continue;
        const End point{system, X(cell), Y(entry.Middle().ops_per_second)};
        line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", point.x, point.y);
        marks +=
            fmt::format(R"(<path class="{}" d="M{:.1f} {:.1f}V{:.1f}" stroke="{}" stroke-opacity="0.6"/>)",
                        kind, point.x, Y(entry.Slowest()), Y(entry.Fastest()), ink);
        marks += fmt::format(R"(<circle class="dot-{}" cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"/>)", kind,
                             point.x, point.y, farside ? 3 : 2, ink);
        if (ends_.empty() || ends_.back().system != system) ends_.push_back(point);
        ends_.back() = point;
      }
    }
    if (line.empty()) return;
    Add("<path class=\"{}\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>{}\n", kind, line, ink,
        farside ? 2 : 1.25, marks);
  }

  // The name of each system at the end of its line, with a thin line to it where names had to be moved apart.
  void Names() {
    std::ranges::stable_sort(ends_, {}, &End::y);
    std::vector<double> wanted;
    for (const End& end : ends_) wanted.push_back(end.y);
    const std::vector<double> heights = MovedApart(wanted, kLabelGap, y_, y_ + kHeight);
    const double x = x_ + kWidth + 10;
    for (size_t i = 0; i < ends_.size(); ++i) {
      const bool farside = IsFarside(systems_[ends_[i].system].name);
      Add(R"(<path class="{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="{}" stroke-opacity="0.5" )"
          "stroke-width=\"0.75\"/>",
          farside ? "farside" : "peer", ends_[i].x + 5, ends_[i].y, x - 3, heights[i],
          farside ? kFarsideInk : kInk);
      const std::string style =
          farside ? fmt::format(" class=\"name-farside\" fill=\"{}\"", kFarsideInk) : "";
      svg_ += Text(x, heights[i] + 4, "start", style, systems_[ends_[i].system].name);
    }
  }

  const Panel& panel_;
  const Scale& scale_;
  const std::vector<SystemInfo>& systems_;
  const double x_;  // of the frame
  const double y_;
  std::vector<End> ends_;
  std::string svg_;
};

}  // namespace

std::string Chart(const Results& results) {
  const std::vector<Panel> panels = PanelsOf(results);
  const Scale scale(results);
  const size_t rows = (panels.size() + 1) / 2;
  const double height = kHead + static_cast<double>(rows) * kPanelHeight + 8;
  const double width = 2 * kPanelWidth;
  const Setting& setting = results.setting;

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"{2}\">\n<title>Throughput "
      "of Farside "
      "and others</title>\n",
      width, height, kInk);
  svg += kStyle;
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
    svg += PanelDrawing(panels[i], scale, results.systems, x, y).Draw();
  }
  return svg + "</svg>\n";
}

}  // namespace farside::peers
