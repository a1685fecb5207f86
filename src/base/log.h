// A small logger. One line per message, handed to the sink in one piece:
//
//   warn: node 2 did not answer within 5 ms
//   2026-03-01T12:00:00.345Z warn: node 2 did not answer within 5 ms      with a clock
//
// There is no global logger: code that logs is given a `Logger&`.
//
// What is logged may hold keys that a stranger chose. So every byte of a message that is not printable ASCII
// is written as \xNN: no key can forge a line or speak to a terminal. A backslash stays as it is, so that a
// key that went through Escape() is not escaped twice.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace farside {

enum class LogLevel {
  kDebug,  // for work on Farside itself
  kInfo,   // something happened as it should
  kWarn,   // something went wrong and was dealt with
  kError,  // something went wrong and an operator has to act
};

// "warn"
std::string_view Name(LogLevel level);

// Takes a line that ends in '\n'. A logger calls its sink from one thread at a time.
using LogSink = std::function<void(std::string_view line)>;

// Tells the time of day, as std::chrono::system_clock::now does.
using LogClock = std::function<std::chrono::system_clock::time_point()>;

// "2026-03-01T12:00:00.345Z": ISO 8601, in UTC, with milliseconds.
std::string UtcText(std::chrono::system_clock::time_point time);

// "2026-03-01T12:00:00.345Z warn: ": what stands before a message; without the time if there is no clock.
std::string HeadOfLine(LogLevel level, const LogClock& clock);

// The default sink: one write(2) per line, which waits for the reader (base/dropping_sink.h does not). The
// lines of several processes do not mix, since a line is no longer than what a pipe takes in one piece.
void WriteToStderr(std::string_view line);

class Logger {
 public:
  // The longest line, with its '\n'; the rest is replaced by "...". As much as a pipe takes in one piece.
  static constexpr size_t kMaxLine = 4096;

  // Writes messages of level `least` and above. Lines start with the time if there is a clock.
  explicit Logger(LogLevel least = LogLevel::kInfo, LogSink sink = WriteToStderr, LogClock clock = nullptr);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Safe from any thread. The format is checked by the compiler:
  //   log.Warn("node {} did not answer within {} ms", node, timeout.count());
  template <class... Args>
  void Debug(fmt::format_string<Args...> format, Args&&... args) {
    Write(LogLevel::kDebug, format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) {
    Write(LogLevel::kInfo, format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) {
    Write(LogLevel::kWarn, format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) {
    Write(LogLevel::kError, format, fmt::make_format_args(args...));
  }

  // Whether a message of this level would be written; for arguments that are costly to compute.
  bool Enabled(LogLevel level) const { return level >= least_; }

 private:
  void Write(LogLevel level, fmt::string_view format, fmt::format_args args);

  const LogLevel least_;
  const LogClock clock_;
  std::mutex mutex_;  // held while the sink runs
  const LogSink sink_;
};

}  // namespace farside
