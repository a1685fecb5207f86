// Holds docs/memory-model.md and the tests of this folder together.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/fabric/conformance/cite.h"

namespace farside::fabric::conformance {
namespace {

// The top of the source tree. ctest says where it is; else, this file knows, unless it was built under
// another name (as by a compiler cache, or for a reproducible build).
std::filesystem::path SourceTree() {
  if (const char* told = std::getenv("FARSIDE_SOURCE")) return told;
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
}

// By number, such as "fabric/7"; spaces and line ends are one space each.
std::map<std::string, std::string> SentencesOfTheContract() {
  std::ifstream page(SourceTree() / "docs" / "memory-model.md");
  EXPECT_TRUE(page.good()) << "no docs/memory-model.md in " << SourceTree() << "; set FARSIDE_SOURCE";
  std::map<std::string, std::string> sentences;
  const std::regex start(R"(^- \*\*((?:fabric|freedom)/\d+)\*\* (.*))");
  std::string current;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (std::regex_match(line, match, start)) {
      current = match[1];
      EXPECT_FALSE(sentences.contains(current)) << current << " is there twice";
      sentences[current] = match[2];
    } else if (!current.empty() && line.starts_with("  ")) {
      sentences[current] += " " + line.substr(2);
    } else {
      current.clear();
    }
  }
  return sentences;
}

// Expect that every sentence is stated by a test.
TEST(Contract, EverySentenceHasATest) {
  std::set<std::string> cited;
  for (const auto& citation : Cite::All()) cited.insert(std::string(citation.sentence));
  const auto sentences = SentencesOfTheContract();
  EXPECT_GT(sentences.size(), 50u);
  for (const auto& [number, text] : sentences) EXPECT_TRUE(cited.contains(number)) << number << ": " << text;
}

// Expect that every test quotes a sentence that stands there in these words.
TEST(Contract, EveryTestQuotesASentence) {
  const auto sentences = SentencesOfTheContract();
  EXPECT_GE(Cite::All().size(), sentences.size());
  for (const auto& [number, quote] : Cite::All()) {
    const auto found = sentences.find(std::string(number));
    if (found == sentences.end()) {
      ADD_FAILURE() << number << " is not in docs/memory-model.md";
    } else {
      EXPECT_NE(found->second.find(quote), std::string::npos) << number << " does not say: " << quote;
    }
  }
}

// Expect that the numbers have no gaps, so that none was lost.
TEST(Contract, SentencesAreNumberedWithoutGaps) {
  const auto sentences = SentencesOfTheContract();
  for (const std::string kind : {"fabric", "freedom"}) {
    size_t count = 0;
    for (const auto& [number, text] : sentences) count += number.starts_with(kind + "/") ? 1 : 0;
    for (size_t i = 1; i <= count; ++i)
      EXPECT_TRUE(sentences.contains(kind + "/" + std::to_string(i))) << kind << i;
  }
}

}  // namespace
}  // namespace farside::fabric::conformance
