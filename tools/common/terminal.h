// What a terminal gets and a file does not: colours, and a line that shows progress.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace farside::tools {

// Text for stdout, coloured if a person looks at it: stdout is a terminal and NO_COLOR (no-color.org) is not
// set.
class Paint {
 public:
  static Paint ForStdout();
  explicit Paint(bool colours) : colours_(colours) {}

  std::string Bold(std::string_view text) const { return Wrap("1", text); }
  std::string Dim(std::string_view text) const { return Wrap("2", text); }
  std::string Red(std::string_view text) const { return Wrap("31", text); }
  std::string Green(std::string_view text) const { return Wrap("32", text); }
  std::string Yellow(std::string_view text) const { return Wrap("33", text); }

 private:
  std::string Wrap(std::string_view code, std::string_view text) const;

  bool colours_;
};

// A line on stderr that is drawn over and over, and wiped when it ends:
//
//   checking  [###########.............]  47%  470 of 1000 seeds, 12 s left
//
// Without a total (0), it only counts: "importing  470 records". Nothing is shown if stderr is no
// terminal, nor before `patience` has passed.
class ProgressLine {
 public:
  ProgressLine(std::string title, std::string unit, uint64_t total, Nanos patience);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  void Show(uint64_t done);

 private:
  std::string Bar(uint64_t done, Nanos now) const;

  const std::string title_;
  const std::string unit_;
  const uint64_t total_;
  const bool visible_;
  const SteadyClock clock_;
  const Nanos start_;
  Nanos next_;        // when it is drawn again
  size_t drawn_ = 0;  // columns in use
};

// One progress line after the other: a new one for each thing that goes on.
class ProgressLines {
 public:
  explicit ProgressLines(Nanos patience) : patience_(patience) {}

  void Show(std::string_view what, uint64_t done, uint64_t total, std::string_view unit);

 private:
  const Nanos patience_;
  std::string what_;
  std::unique_ptr<ProgressLine> line_;
};

// Whether a person looks at stdout through a terminal that draws more than ASCII.
bool StdoutDrawsUnicode();

}  // namespace farside::tools
