// A plot in characters: columns of different heights over time, with marks below.
//
//     1.8 M/s |          ..##.
//             |   .######################
//           0 |#####################################
//              ^          ^            ^
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace farside::tools::paper {

struct Plot {
  std::string title;
  std::string y_unit;                          // after the number at the top: "M ops/s"
  std::string x_begin;                         // below the first column
  std::string x_end;                           // below the last
  std::vector<double> columns;                 // not negative
  std::vector<std::pair<double, char>> marks;  // at a share of the width, from 0 to 1; a later mark wins
  std::string legend;                          // what the marks mean
};

inline constexpr size_t kPlotWidth = 72;
inline constexpr size_t kPlotHeight = 10;

// At most `width` columns (neighbours become their mean) of `height` rows. With `unicode`, columns end in
// eighths of a character; else in '#' or nothing.
std::string PlotText(const Plot& plot, bool unicode, size_t width = kPlotWidth, size_t height = kPlotHeight);

}  // namespace farside::tools::paper
