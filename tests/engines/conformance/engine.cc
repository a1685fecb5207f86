#include "tests/engines/conformance/engine.h"

#include <algorithm>
#include <utility>

#include "index/reference/reference.h"
#include "store/engines.h"
#include "tests/support/words_only.h"

namespace farside::conformance {
namespace {

// Tables that do not grow are made large.
index::OptionMap RoomyOptions(std::string_view engine) {
  if (engine == "reference") return {{"buckets", "1024"}};
  return {};
}

// A scan of a table without any order looks through all of it.
index::OptionMap OptionsForScans(std::string_view engine) {
  if (engine == "reference") return {{"buckets", "8"}};
  return {};
}

// Reading as trees do that the chime table is compared with.
const index::OptionMap kAsOthersRead = {
    {"leaf_read", "whole"}, {"insert_read", "whole"}, {"fence_read", "always"}, {"lock_read", "apart"},
    {"span", "4"},          {"neighbourhood", "2"},   {"fanout", "3"}};

std::optional<size_t> FixedSize(const store::EngineEntry& entry, const index::OptionMap& options) {
  return Must(entry.make(options))->fixed_size();
}

Result<std::shared_ptr<index::Engine>> MakeWordsOnly(const index::OptionMap& options) {
  return std::shared_ptr<index::Engine>(
      std::make_shared<WordsOnly>(Must(index::reference::MakeReferenceEngine(options))));
}

}  // namespace

std::vector<EngineUnderTest> RoomyEngines() {
  std::vector<EngineUnderTest> engines;
  for (const store::EngineEntry& entry : store::Engines()) {
    engines.push_back({std::string(entry.name), std::string(entry.name), RoomyOptions(entry.name)});
  }
  return engines;
}

std::vector<EngineUnderTest> StressedEngines() {
  std::vector<EngineUnderTest> engines;
  for (const store::EngineEntry& entry : store::Engines()) {
    const std::vector<index::OptionMap> all = Must(entry.make({}))->stress_options();
    for (size_t i = 0; i < all.size(); ++i) {
      if (FixedSize(entry, all[i]).has_value()) continue;
      const std::string name(entry.name);
      engines.push_back({name + "_stress_" + std::to_string(i), name, all[i]});
    }
    if (entry.make(kAsOthersRead).ok())
      engines.push_back(
          {std::string(entry.name) + "_stress_as_others", std::string(entry.name), kAsOthersRead});
  }
  return engines;
}

std::vector<EngineUnderTest> AllEngines() {
  std::vector<EngineUnderTest> engines = RoomyEngines();
  std::ranges::move(StressedEngines(), std::back_inserter(engines));
  return engines;
}

std::vector<EngineUnderTest> OrderedEngines() {
  std::vector<EngineUnderTest> engines;
  for (const store::EngineEntry& entry : store::Engines()) {
    const auto add = [&](std::string_view suffix, const index::OptionMap& options) {
      engines.push_back({.label = std::string(entry.name) + std::string(suffix),
                         .engine = std::string(entry.name),
                         .options = options,
                         .fixed_size = FixedSize(entry, options),
                         .make = entry.make});
    };
    const std::shared_ptr<index::Engine> usual = Must(entry.make({}));
    if (!usual->ordered()) continue;
    add("", OptionsForScans(entry.name));
    // Where keys can be made to stand in the index itself, they have one size.
    if (const index::OptionMap inside = {{"keys", "inline"}}; entry.make(inside).ok()) add("_inline", inside);
    if (entry.make(kAsOthersRead).ok()) add("_stress_as_others", kAsOthersRead);
    const std::vector<index::OptionMap> stress = usual->stress_options();
    for (size_t i = 0; i < stress.size(); ++i) {
      if (!stress[i].empty()) add("_stress_" + std::to_string(i), stress[i]);
    }
  }
  engines.push_back({.label = "words_only",
                     .engine = "reference",
                     .options = OptionsForScans("reference"),
                     .fixed_size = 8,
                     .make = MakeWordsOnly});
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
