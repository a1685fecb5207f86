#include "tools/common/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "base/log.h"
#include "tools/common/text.h"

namespace farside::tools {

bool ReaderIsGone(int descriptor) {
  pollfd pipe{.fd = descriptor, .events = 0, .revents = 0};
  return ::poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

void Print(std::string_view text) {
  static_cast<void>(
      std::fwrite(text.data(), 1, text.size(), stdout));  // stdio keeps the error until FinishOutput
}

bool OutputIsBroken() { return std::ferror(stdout) != 0; }

ExitCode FinishOutput(ExitCode code) {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && !OutputIsBroken()) return code;
  if (ReaderIsGone(STDOUT_FILENO)) return kCouldNotRun;
  return CouldNotRun("farside",
                     flushed ? "the results could not be written"
                             : fmt::format("the results could not be written: {}", std::strerror(error)));
}

ExitCode WrongUsage(std::string_view command, std::string_view why) {
  WriteToStderr(fmt::format("{}: {} (try '{} --help')\n", command, Harmless(why), command));
  return kWrongUsage;
}

ExitCode CouldNotRun(std::string_view command, std::string_view why) {
  WriteToStderr(fmt::format("{}: {}\n", command, Harmless(why)));
  return kCouldNotRun;
}

ExitCode BadUrl(std::string_view command, const Error& error) {
  return error.code() == ErrorCode::kUnsupported ? CouldNotRun(command, error.message())
                                                 : WrongUsage(command, error.message());
}

std::string Grouped(uint64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) text += ',';
    text += digits[at];
  }
  return text;
}

std::string ShellQuoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace farside::tools
