#include "base/log.h"

#include <cassert>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/bytes.h"

namespace farside {
namespace {

// Appends as much of the message as leaves the line, with its '\n', within Logger::kMaxLine.
void AppendMessage(std::string& line, std::string_view message) {
  constexpr std::string_view kCut = "...";
  constexpr size_t kRoom = Logger::kMaxLine - 1;  // for everything before the '\n'
  size_t cut_at = line.size();                    // the longest prefix that leaves room for kCut
  for (const char c : message) {
    if (IsPrintableAscii(c)) {
      line += c;
    } else {
      line += Escape({&c, 1});
    }
    if (line.size() + kCut.size() <= kRoom) cut_at = line.size();
    if (line.size() > kRoom) {
      line.resize(cut_at);
      line += kCut;
      return;
    }
  }
}

}  // namespace

std::string_view Name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarn: return "warn";
    case LogLevel::kError: return "error";
  }
  return "unknown log level";
}

void WriteToStderr(std::string_view line) {
  // One call, unless a signal or a full disk cuts it short. Nowhere to report a failure to: the line is lost.
  while (!line.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    line.remove_prefix(static_cast<size_t>(written));
  }
}

std::string UtcText(std::chrono::system_clock::time_point time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss of_day(std::chrono::floor<std::chrono::milliseconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     of_day.hours().count(), of_day.minutes().count(), of_day.seconds().count(),
                     of_day.subseconds().count());
}

std::string HeadOfLine(LogLevel level, const LogClock& clock) {
  std::string head;
  if (clock != nullptr) head = UtcText(clock()) + " ";
  head += Name(level);
  head += ": ";
  return head;
}

Logger::Logger(LogLevel least, LogSink sink, LogClock clock)
    : least_(least), clock_(std::move(clock)), sink_(std::move(sink)) {
  assert(sink_ != nullptr);
}

void Logger::Write(LogLevel level, fmt::string_view format, fmt::format_args args) {
  if (!Enabled(level)) return;

  fmt::memory_buffer message;
  fmt::vformat_to(std::back_inserter(message), format, args);

  std::string line = HeadOfLine(level, clock_);
  AppendMessage(line, {message.data(), message.size()});
  line += '\n';

  const std::scoped_lock lock(mutex_);
  sink_(line);
}

}  // namespace farside
