#include "tools/paper/timeline.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace farside::tools::paper {
namespace {

constexpr double kSteadyQuantile = 0.9;

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

std::span<const uint64_t> WholeWindows(std::span<const uint64_t> windows) {
  return windows.empty() ? windows : windows.first(windows.size() - 1);
}

}  // namespace

Evenness MeasureEvenness(std::span<const uint64_t> windows, Nanos window, size_t length) {
  const std::span<const uint64_t> whole = WholeWindows(windows);
  Evenness evenness;
  if (length == 0 || whole.size() < length) return evenness;
  std::vector<uint64_t> stretches;
  uint64_t sum = std::accumulate(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length), uint64_t{0});
  stretches.push_back(sum);
  for (size_t end = length; end < whole.size(); ++end) {
    sum += whole[end] - whole[end - length];
    stretches.push_back(sum);
  }
  const double seconds = Seconds(window) * static_cast<double>(length);
  const auto slowest = std::min_element(stretches.begin(), stretches.end());
  evenness.slowest = static_cast<double>(*slowest) / seconds;
  evenness.slowest_at = window * (slowest - stretches.begin());
  const auto at = static_cast<size_t>(kSteadyQuantile * static_cast<double>(stretches.size() - 1));
  std::nth_element(stretches.begin(), stretches.begin() + static_cast<ptrdiff_t>(at), stretches.end());
  evenness.steady = static_cast<double>(stretches[at]) / seconds;
  return evenness;
}

Plot PlotOf(const BenchTally& tally, Nanos window, std::string title) {
  const std::span<const uint64_t> whole = WholeWindows(tally.windows);
  Plot plot;
  plot.title = std::move(title);
  plot.y_unit = "M/s";
  for (const uint64_t count : whole)
    plot.columns.push_back(static_cast<double>(count) / Seconds(window) / 1e6);
  const Nanos length = window * static_cast<int64_t>(whole.size());
  plot.x_begin = "0 ms";
  plot.x_end = fmt::format("{:.0f} ms of virtual time", Seconds(length) * 1e3);
  // Where both fall into one column, what is in force is shown.
  for (const bool in_force : {false, true}) {
    for (const auto& [step, at] : tally.growth) {
      if (at > length || (step % 2 == 0) != in_force) continue;
      plot.marks.emplace_back(Seconds(at) / Seconds(length), in_force ? '^' : '.');
    }
  }
  plot.legend = ". a resize is announced   ^ in force: buckets are split when a client writes to them";
  return plot;
}

}  // namespace farside::tools::paper
