#include "tests/engines/conformance/engine.h"

#include <algorithm>
#include <utility>

#include "store/engines.h"
#include "tests/support/words_only.h"

namespace farside::conformance {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

// An engine of the list with a set of options.
EngineUnderTest Test(const store::EngineEntry& entry, std::string_view suffix,
                     const index::OptionMap& options) {
  const index::Traits traits = Must(entry.make(options))->traits();
  return {.label = std::string(entry.name) + std::string(suffix),
          .engine = std::string(entry.name),
          .options = options,
          .traits = traits,
          .make = entry.make};
}

// With each set of options for small tables, also those for keys and values of one size.
std::vector<EngineUnderTest> Stressed(const store::EngineEntry& entry) {
  std::vector<EngineUnderTest> tests;
  const std::shared_ptr<index::Engine> engine = Must(entry.make({}));
  const std::vector<index::OptionMap> stress = engine->stress_options();
  for (size_t i = 0; i < stress.size(); ++i)
    tests.push_back(Test(entry, "_stress_" + std::to_string(i), stress[i]));
  for (const auto& [name, options] : engine->conformance_options())
    tests.push_back(Test(entry, "_stress_" + name, options));
  return tests;
}

// The first engine of the list that keeps keys in order, disguised as one that takes only words.
Result<std::shared_ptr<index::Engine>> MakeWordsOnly(const index::OptionMap& options) {
  const auto ordered = std::ranges::find_if(
      store::Engines(), [](const store::EngineEntry& entry) { return store::IsOrdered(entry.name, {}); });
  return std::shared_ptr<index::Engine>(std::make_shared<WordsOnly>(Must(ordered->make(options))));
}

}  // namespace

std::vector<EngineUnderTest> RoomyEngines() {
  std::vector<EngineUnderTest> engines;
  for (const store::EngineEntry& entry : store::Engines()) {
    const index::OptionMap options = Must(entry.make({}))->OptionsFor({.records = 5120});
    engines.push_back(Test(entry, "", options));
  }
  return engines;
}

std::vector<EngineUnderTest> StressedEngines() {
  std::vector<EngineUnderTest> engines;
  for (const store::EngineEntry& entry : store::Engines()) {
    for (const EngineUnderTest& engine : Stressed(entry)) {
      if (!engine.traits.fixed_size.has_value()) engines.push_back(engine);
    }
  }
  return engines;
}

std::vector<EngineUnderTest> AllEngines() {
  std::vector<EngineUnderTest> engines = RoomyEngines();
  std::ranges::move(StressedEngines(), std::back_inserter(engines));
  return engines;
}

std::vector<EngineUnderTest> OrderedEngines() {
  // Few, because a scan of a table without any order looks through all of it.
  const index::ExpectedRecords any_size{.records = 200};
  const index::ExpectedRecords words{.records = 200, .key_bytes = kWord, .value_bytes = kWord};
  std::vector<EngineUnderTest> engines;
  for (const store::EngineEntry& entry : store::Engines()) {
    const std::shared_ptr<index::Engine> usual = Must(entry.make({}));
    if (!usual->traits().ordered) continue;
    engines.push_back(Test(entry, "", usual->OptionsFor(any_size)));
    EngineUnderTest of_words = Test(entry, "_words", usual->OptionsFor(words));
    if (of_words.traits.fixed_size.has_value()) engines.push_back(std::move(of_words));
    for (const EngineUnderTest& engine : Stressed(entry)) {
      if (!engine.options.empty()) engines.push_back(engine);
    }
  }
  // What the tests make for such engines is tested also where there is none.
  EngineUnderTest words_only = engines.front();
  words_only.label = "words_only";
  words_only.traits.fixed_size = kWord;
  words_only.make = MakeWordsOnly;
  engines.push_back(std::move(words_only));
  return engines;
}

std::string LabelOf(const testing::TestParamInfo<EngineUnderTest>& info) {
  std::string label = info.param.label;
  std::ranges::replace_if(
      label, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return label;
}

EngineTest::EngineTest(std::string_view url)
    : pool_(Must(Pool::Open(url))), table_(MakeTable(pool_)), session_(Must(pool_.NewSession())) {}

Table EngineTest::MakeTable(Pool& pool) {
  return Must(pool.CreateTable("t", {.engine = GetParam().engine, .options = GetParam().options}));
}

std::optional<std::string> EngineTest::Get(std::string_view key) { return Must(session_.Get(table_, key)); }

std::vector<Record> EngineTest::All() {
  std::vector<Record> all;
  std::vector<Record> page;
  Cursor cursor;
  while (Must(session_.Next(table_, cursor, page))) std::ranges::move(page, std::back_inserter(all));
  std::ranges::sort(all, {}, &Record::key);
  const auto twice = std::ranges::adjacent_find(all, {}, &Record::key);
  EXPECT_EQ(twice, all.end()) << "the cursor returned a key twice";
  return all;
}

}  // namespace farside::conformance
