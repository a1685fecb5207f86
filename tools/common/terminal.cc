#include "tools/common/terminal.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"

namespace farside::tools {
namespace {

constexpr Nanos kRedraw = std::chrono::milliseconds(100);
constexpr uint64_t kBarColumns = 20;

// Whether a person looks at it through something that can draw over a line.
bool IsTerminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::string TimeLeft(Nanos spent, uint64_t done, uint64_t total) {
  if (done == 0) return "";
  const double seconds = std::chrono::duration<double>(spent).count();
  return fmt::format(", {:.0f} s left",
                     seconds * static_cast<double>(total - done) / static_cast<double>(done));
}

}  // namespace

Paint Paint::ForStdout() {
  const char* no_colour = std::getenv("NO_COLOR");
  return Paint(IsTerminal(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0'));
}

std::string Paint::Wrap(std::string_view code, std::string_view text) const {
  if (!colours_) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

ProgressLine::ProgressLine(std::string title, std::string unit, uint64_t total, Nanos patience)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      total_(total),
      visible_(IsTerminal(STDERR_FILENO)),
      start_(clock_.Now()),
      next_(start_ + patience) {}

// Spaces instead of an escape sequence: this is no colour, but NO_COLOR output is to be plain text.
ProgressLine::~ProgressLine() {
  if (drawn_ > 0) WriteToStderr(fmt::format("\r{:{}}\r", "", drawn_));
}

void ProgressLine::Show(uint64_t done) {
  if (!visible_) return;
  const Nanos now = clock_.Now();
  if (now < next_) return;
  next_ = now + kRedraw;
  const std::string text = total_ == 0 ? fmt::format("{}  {} {}", title_, done, unit_) : Bar(done, now);
  WriteToStderr(fmt::format("\r{:{}}", text, drawn_));
  drawn_ = text.size();
}

std::string ProgressLine::Bar(uint64_t done, Nanos now) const {
  done = std::min(done, total_);
  const uint64_t filled = kBarColumns * done / total_;
  return fmt::format("{}  [{}{}] {:3}%  {} of {} {}{}", title_, std::string(filled, '#'),
                     std::string(kBarColumns - filled, '.'), 100 * done / total_, done, total_, unit_,
                     TimeLeft(now - start_, done, total_));
}

void ProgressLines::Show(std::string_view what, uint64_t done, uint64_t total, std::string_view unit) {
  if (what != what_) {
    line_.reset();  // wiped before the next one is drawn
    what_ = what;
    line_ = std::make_unique<ProgressLine>(what_, std::string(unit), total, patience_);
  }
  line_->Show(done);
}

// As setlocale would look for it: the first of these that is set decides.
bool StdoutDrawsUnicode() {
  if (!IsTerminal(STDOUT_FILENO)) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* locale = std::getenv(name);
    if (locale == nullptr || *locale == '\0') continue;
    const std::string_view text = locale;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

}  // namespace farside::tools
