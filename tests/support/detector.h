// Hunting planted bugs.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <string>
#include <vector>

#include "base/mutant.h"

namespace farside {

// Something that may catch a bug: says what it has caught, or nothing.
struct Detector {
  std::string name;
  std::function<std::string()> run;
};

// With the bug, one detector after the other, until one has caught it. Which one did is recorded with the
// test.
inline void ExpectCaught(MutantName bug, const std::vector<Detector>& detectors) {
  const ScopedMutant mutant(bug);
  for (const Detector& detector : detectors) {
    const std::string caught = detector.run();
    if (caught.empty()) continue;
    testing::Test::RecordProperty("by", detector.name);
    testing::Test::RecordProperty("what", caught);
    return;
  }
  FAIL() << bug.text << " was not caught";
}

// "shard/no-takeover" as part of a test's name.
inline std::string NameOfBug(const testing::TestParamInfo<MutantName>& bug) {
  std::string name = bug.param.text;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace farside
