#include "tools/import/line_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"

namespace farside::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Lines : public testing::Test {
 protected:
  ~Lines() override { std::filesystem::remove(path_); }

  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  std::vector<std::string> Read(size_t most = 1 << 30) {
    Result<LineSource> source = LineSource::Open(path_);
    if (!source.ok()) return {"could not open: " + source.error().message()};
    std::vector<std::string> lines;
    std::string_view line;
    while (true) {
      const Result<bool> more = source->Next(line, most);
      if (!more.ok()) lines.push_back(fmt::format("line {}: {}", source->lines(), more.error().message()));
      if (!more.ok() || !*more) return lines;
      lines.emplace_back(line);
    }
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / fmt::format("farside_lines_{}", ::getpid());
};

TEST_F(Lines, TheLastOneNeedsNoNewline) {
  Write("");
  EXPECT_THAT(Read(), ElementsAre());
  Write("\n");
  EXPECT_THAT(Read(), ElementsAre(""));
  Write("a\n\nb");
  EXPECT_THAT(Read(), ElementsAre("a", "", "b"));
  Write("a\nb\n");
  EXPECT_THAT(Read(), ElementsAre("a", "b"));
}

TEST_F(Lines, OfAnyLength_AcrossReads) {
  // Given lines of random lengths, some of them longer than what is read at a time. When they are read.
  // Expect all of them.
  Random random(5);
  std::vector<std::string> lines;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const size_t length = i % 50 == 0 ? random.Below(3'000'000) : random.Below(300);
    lines.push_back(std::string(length, static_cast<char>('a' + i % 26)));
    text += lines.back() + "\n";
  }
  Write(text);
  EXPECT_TRUE(Read() == lines);
}

TEST_F(Lines, LongerThanTheBound_IsAnErrorOfThatLine) {
  Write("12345\n123456\n");
  EXPECT_THAT(Read(5), ElementsAre("12345", "line 2: the line has more than 5 bytes"));
  Write(std::string(5'000'000, 'x'));
  EXPECT_THAT(Read(2'000'000), ElementsAre("line 1: the line has more than 2000000 bytes"));
}

TEST_F(Lines, WhatCannotBeRead_IsNamed) {
  EXPECT_THAT(Read(), ElementsAre(HasSubstr("farside_lines_")));
  const Result<LineSource> folder = LineSource::Open("/");
  ASSERT_TRUE(folder.ok());  // it can be opened, but not read
  std::string_view line;
  LineSource source = std::move(*LineSource::Open("/"));
  EXPECT_THAT(source.Next(line, 10).error().message(), HasSubstr("/: Is a directory"));
}

}  // namespace
}  // namespace farside::tools
