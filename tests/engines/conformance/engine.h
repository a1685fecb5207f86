// The engines that the conformance suite tests: every engine that is compiled in, as users get it and with
// each set of options under which small tables pass through everything that large ones do. What an engine
// need not do, it states as a trait.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "farside/farside.h"
#include "index/index.h"

namespace farside::conformance {

struct EngineUnderTest {
  std::string label;  // "reference", "reference_stress_0"
  std::string engine;
  index::OptionMap options;
  index::Traits traits;
  // Makes the engine; not always an engine that users get.
  Result<std::shared_ptr<index::Engine>> (*make)(const index::OptionMap& options) = nullptr;
};
inline std::ostream& operator<<(std::ostream& out, const EngineUnderTest& engine) {
  return out << engine.label;
}

// With room for some five thousand records; most engines grow by themselves, and need no options for that.
std::vector<EngineUnderTest> RoomyEngines();
// With the options of Engine::stress_options, for a few dozen records.
std::vector<EngineUnderTest> StressedEngines();
std::vector<EngineUnderTest> AllEngines();
// Engines that keep keys in order, also if they take only keys and values of one size, which the lists above
// leave out. With room for some two hundred records, or, if they are stressed, for a few dozen.
std::vector<EngineUnderTest> OrderedEngines();

std::string LabelOf(const testing::TestParamInfo<EngineUnderTest>& info);

// A pool with one table of the engine, and a session.
class EngineTest : public testing::TestWithParam<EngineUnderTest> {
 protected:
  explicit EngineTest(std::string_view url = "embedded:?size=64MiB");

  // The value of a key; none if it is absent. An error fails the test.
  std::optional<std::string> Get(std::string_view key);
  // All records, by a cursor; a key that comes twice fails the test. Only while no client changes the table.
  std::vector<Record> All();

  static Table MakeTable(Pool& pool);

  Pool pool_;
  Table table_;
  Session session_;
};

// The outcome of an operation that must not fail.
template <class T>
T Must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().ToString();
    std::abort();
  }
  return std::move(*result);
}

}  // namespace farside::conformance
