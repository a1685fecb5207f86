#include "bench/peers/others_load.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <unistd.h>

#include "bench/peers/process.h"

namespace farside::peers {
namespace {

std::optional<ProcessorTicks> ReadProcessorTicks() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return ParseProcessorTicks(text.str());
}

}  // namespace

// The first line: "cpu user nice system idle iowait irq softirq steal ...". Guests are in user already.
std::optional<ProcessorTicks> ParseProcessorTicks(std::string_view stat) {
  constexpr int kIdle = 3;
  constexpr int kWaiting = 4;  // for disks
  constexpr int kColumns = 8;
  std::istringstream line(std::string(stat.substr(0, stat.find('\n'))));
  std::string name;
  if (!(line >> name) || name != "cpu") return std::nullopt;
  ProcessorTicks ticks;
  for (int column = 0; column < kColumns; ++column) {
    uint64_t count = 0;
    if (!(line >> count)) return std::nullopt;
    ticks.all += count;
    if (column != kIdle && column != kWaiting) ticks.busy += count;
  }
  return ticks;
}

OthersLoad::OthersLoad(std::vector<pid_t> ours)
    : ours_(std::move(ours)), before_(ReadProcessorTicks()), ours_before_(Ours()) {}

Nanos OthersLoad::Ours() const {
  Nanos sum{0};
  for (const pid_t process : ours_) sum += CpuTime(process).value_or(Nanos{0});
  return sum;
}

std::optional<double> OthersLoad::Share() const {
  const std::optional<ProcessorTicks> now = ReadProcessorTicks();
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (!before_.has_value() || !now.has_value() || now->all <= before_->all || ticks <= 0) return std::nullopt;
  const auto all = static_cast<double>(now->all - before_->all);
  const auto busy = static_cast<double>(now->busy - before_->busy);
  const double ours =
      std::chrono::duration<double>(Ours() - ours_before_).count() * static_cast<double>(ticks);
  return std::clamp((busy - ours) / all, 0.0, 1.0);
}

}  // namespace farside::peers
