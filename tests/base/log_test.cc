#include "base/log.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/dropping_sink.h"
#include "base/limited_log.h"

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

// ---- a sink that drops

// The two ends of a pipe, of which the reader does not wait.
struct Pipe {
  Pipe() {
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::string ReadAll() const {
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<size_t>(got));
    return text;
  }
  int ends[2] = {-1, -1};
};

// Given a pipe that is not read. When more is logged than it holds. Expect that nothing waits, that all lines
// that were taken are whole, and that a line says how many were dropped when the pipe was read.
TEST(DroppingSink, DropsWhatIsNotReadAndSaysHowMuch) {
  const Pipe pipe;
  DroppingSink sink(pipe.ends[1]);
  Logger log(LogLevel::kInfo, [&](std::string_view line) { sink.Write(line); });
  const std::string text(1000, 'x');
  uint64_t written = 0;
  for (; sink.dropped() < 10; ++written) log.Info("{}", text);
  const uint64_t taken = written - 10;
  ASSERT_GT(taken, 10u);
  std::string expected;
  for (uint64_t i = 0; i < taken; ++i) expected += "info: " + text + "\n";
  EXPECT_EQ(pipe.ReadAll(), expected);
  log.Info("again");
  log.Info("and again");
  EXPECT_EQ(pipe.ReadAll(),
            "warn: 10 lines of this log were dropped, as it was not read fast enough\n"
            "info: again\ninfo: and again\n");
  EXPECT_EQ(sink.dropped(), 10u);
}

// Given a socket, as a service manager gives to a daemon, that takes a part of a line. When it is read again.
// Expect that the line is ended before another begins.
TEST(DroppingSink, LinesStayWholeInASocket) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  DroppingSink sink(ends[1]);
  Logger log(LogLevel::kInfo, [&](std::string_view line) { sink.Write(line); });
  while (sink.dropped() < 3) log.Info("{}", std::string(3000, 'x'));
  std::string text;
  std::array<char, 4096> part;
  const auto read_all = [&] {
    for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<size_t>(got));
  };
  read_all();
  log.Info("again");
  read_all();
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
    EXPECT_TRUE(line == "info: again" || line == "info: " + std::string(3000, 'x') ||
                line.starts_with("warn: 3 lines"))
        << line;
  }
  EXPECT_TRUE(text.ends_with("info: again\n"));
  ::close(ends[0]);
  ::close(ends[1]);
}

// ---- lines that others cause

// Given a log with a limit. When far more lines are caused at once. Expect kBurst of them, then one in each
// kInterval, and a count of the rest after kReportEvery and at the end.
TEST(LimitedLog, LeavesOutAndCounts) {
  std::vector<std::string> lines;
  Logger log(LogLevel::kInfo, [&](std::string_view line) { lines.emplace_back(line); });
  LimitedLog limited(log, "strangers");
  const auto many = [&](Nanos now) {
    lines.clear();
    for (int i = 0; i < 1000; ++i) limited.Warn(now, "{}", i);
    return lines.size();
  };
  EXPECT_EQ(many(1000s), size_t{LimitedLog::kBurst});
  EXPECT_TRUE(limited.HasLeftOut());
  EXPECT_EQ(many(1000s + LimitedLog::kInterval), 1u);
  lines.clear();
  limited.ReportLeftOut(1000s + LimitedLog::kReportEvery - 1ms);
  EXPECT_TRUE(lines.empty());
  limited.ReportLeftOut(1000s + LimitedLog::kReportEvery);
  EXPECT_EQ(lines, std::vector<std::string>{"warn: strangers: 1899 lines like these were left out\n"});
  EXPECT_FALSE(limited.HasLeftOut());
  // When it was quiet for long. Expect as many as at first.
  EXPECT_EQ(many(2000s), size_t{LimitedLog::kBurst});
  lines.clear();
  limited.ReportTheRest(2000s);
  limited.ReportTheRest(2000s);
  EXPECT_EQ(lines, std::vector<std::string>{"warn: strangers: 900 lines like these were left out\n"});
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
