#include "base/log.h"

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace farside {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

// Given a logger with the default level. When it gets a message of each level. Expect a line for each but
// debug, with level and arguments.
TEST(Logger, WritesOneLinePerMessage) {
  std::vector<std::string> lines;
  Logger log(LogLevel::kInfo, [&](std::string_view line) { lines.emplace_back(line); });
  log.Debug("not shown {}", 0);
  log.Info("{} nodes", 3);
  log.Warn("node {} did not answer within {} ms", 2, 5);
  log.Error("{:#x}", 255);
  EXPECT_EQ(lines, (std::vector<std::string>{"info: 3 nodes\n", "warn: node 2 did not answer within 5 ms\n",
                                             "error: 0xff\n"}));
}

// Given a logger of each level. Expect it to be enabled from that level on.
TEST(Logger, LevelsAreOrdered) {
  const Logger all(LogLevel::kDebug);
  const Logger errors(LogLevel::kError);
  EXPECT_TRUE(all.Enabled(LogLevel::kDebug));
  EXPECT_FALSE(errors.Enabled(LogLevel::kWarn));
  EXPECT_TRUE(errors.Enabled(LogLevel::kError));
}

// Given a logger with a clock. When time passes. Expect the time of day, in UTC, at the head of each line.
TEST(Logger, LinesStartWithTheTimeOfTheClock) {
  std::string out;
  std::chrono::system_clock::time_point now = std::chrono::sys_days(2026y / 3 / 1) + 12h;
  Logger log(
      LogLevel::kInfo, [&](std::string_view line) { out += line; }, [&] { return now; });
  log.Info("a");
  now += 345ms;
  log.Warn("b");
  EXPECT_EQ(out, "2026-03-01T12:00:00.000Z info: a\n2026-03-01T12:00:00.345Z warn: b\n");
}

// Given times around the end of a year and of a leap day, and before 1970. Expect each in UTC, cut to
// milliseconds.
TEST(UtcText, WritesDateAndTimeOfDay) {
  const auto text = [](std::chrono::sys_days day, std::chrono::nanoseconds of_day) {
    return UtcText(std::chrono::time_point_cast<std::chrono::system_clock::duration>(day + of_day));
  };
  EXPECT_EQ(text(1970y / 1 / 1, 0ns), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(text(2025y / 12 / 31, 24h - 1ns), "2025-12-31T23:59:59.999Z");
  EXPECT_EQ(text(2028y / 2 / 29, 9h + 5min + 7s + 40ms), "2028-02-29T09:05:07.040Z");
  EXPECT_EQ(text(1970y / 1 / 1, -1ns), "1969-12-31T23:59:59.999Z");
}

// Given a key that holds a line break and a forged line, terminal escapes and bytes above ASCII. When it is
// logged. Expect a single line of printable ASCII.
TEST(Logger, AKeyCannotForgeALine) {
  std::vector<std::string> lines;
  Logger log(LogLevel::kInfo, [&](std::string_view line) { lines.emplace_back(line); });
  log.Info("key {}", "k\nerror: disk on fire\r\x1b[2J\x7f\x9b\0end"sv);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "info: key k\\x0aerror: disk on fire\\x0d\\x1b[2J\\x7f\\x9b\\x00end\n");
}

// Given a key that was escaped by its logger's caller. Expect it not to be escaped again.
TEST(Logger, AnEscapedKeyStaysAsItIs) {
  std::string out;
  Logger log(LogLevel::kInfo, [&](std::string_view line) { out += line; });
  log.Info("key \"{}\"", Escape("k\0\xff"sv));
  EXPECT_EQ(out, "info: key \"k\\x00\\xff\"\n");
}

// Given messages around the longest that fits. Expect the fitting one whole, and longer ones cut with "..."
// at the limit, also where an escape of four characters would pass it.
TEST(Logger, LongMessagesAreCut) {
  std::string line;
  Logger log(LogLevel::kInfo, [&](std::string_view written) { line = written; });
  const size_t room = Logger::kMaxLine - "info: \n"sv.size();

  log.Info("{}", std::string(room, 'x'));
  EXPECT_EQ(line, "info: " + std::string(room, 'x') + "\n");

  log.Info("{}", std::string(room + 1, 'x'));
  EXPECT_EQ(line, "info: " + std::string(room - 3, 'x') + "...\n");

  log.Info("{}{}", std::string(room - 3, 'x'), '\n');
  EXPECT_EQ(line, "info: " + std::string(room - 3, 'x') + "...\n");

  log.Info("{}{}", std::string(room - 4, 'x'), '\n');
  EXPECT_EQ(line, "info: " + std::string(room - 4, 'x') + "\\x0a\n");

  log.Info("{}", std::string(1'000'000, '\n'));
  EXPECT_LE(line.size(), Logger::kMaxLine);
  EXPECT_TRUE(line.ends_with("\\x0a...\n"));
}

// Given four threads that log through one logger into a sink without any protection of its own. Expect every
// line whole and none lost.
TEST(Logger, ThreadsDoNotMixTheirLines) {
  constexpr size_t kThreads = 4;
  constexpr size_t kLines = 500;
  std::vector<std::string> lines;
  Logger log(LogLevel::kInfo, [&](std::string_view line) { lines.emplace_back(line); });
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&log, thread] {
      for (size_t i = 0; i < kLines; ++i) log.Info("{}", std::string(50, static_cast<char>('a' + thread)));
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<size_t> count(kThreads);
  for (const std::string& line : lines) {
    const auto thread = static_cast<size_t>(line.at(6) - 'a');
    ASSERT_EQ(line, "info: " + std::string(50, static_cast<char>('a' + thread)) + "\n");
    ++count.at(thread);
  }
  EXPECT_EQ(count, std::vector<size_t>(kThreads, kLines));
}

// Given a logger with its default sink. Expect the line on standard error.
TEST(Logger, WritesToStandardErrorByDefault) {
  testing::internal::CaptureStderr();
  Logger log;
  log.Warn("{} left", 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warn: 1 left\n");
}

}  // namespace
}  // namespace farside
