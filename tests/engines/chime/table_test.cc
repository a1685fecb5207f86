// A chime table as one or two clients use it: order, ranges, keys of all kinds, several memory nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/engines/chime/world.h"
#include "tests/support/sanitized.h"

namespace farside::index::chime {
namespace {

using Model = std::map<std::string, std::string>;

// What a model has of a range.
std::vector<Record> Expected(const Model& model, const KeyRange& range, size_t limit) {
  std::vector<Record> page;
  for (const auto& [key, value] : model) {
    if (range.Has(key) && page.size() < limit) page.push_back({key, value});
  }
  return page;
}

// Scans of random ranges, page by page, and the greatest key of each.
void ExpectRanges(Member& member, const Model& model, const std::vector<std::string>& bounds, int rounds) {
  Random random(3);
  for (int round = 0; round < rounds; ++round) {
    KeyRange range = KeyRange::From(bounds[random.Below(bounds.size())]);
    if (random.Chance(2, 3)) range.to = bounds[random.Below(bounds.size())];
    const size_t limit = 1 + random.Below(random.Chance(1, 2) ? 10 : 1000);
    ASSERT_EQ(member.Now(member.Scan(range, limit)), Expected(model, range, limit));
    const std::vector<Record> all = Expected(model, range, model.size());
    ASSERT_EQ(member.Now(member.Last(range)), all.empty() ? "absent" : all.back().key);
  }
}

void ExpectInOrder(World& world, Member& member) {
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

// Keys that make trouble: empty, of zeros, of ones, prefixes of each other.
std::vector<std::string> TroublesomeKeys() {
  std::vector<std::string> keys = {""};
  for (const size_t length : {1, 2, 7, 8, 9, 10, 16, 17}) {
    for (const char c : {'\0', '\1', 'a', '\xff'}) {
      keys.emplace_back(length, c);
      keys.push_back(std::string(length, c) + "b");
      keys.push_back("strawber" + std::string(length, c));
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

class ChimeShapes : public testing::TestWithParam<OptionMap> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ChimeShapes,
                         testing::Values(OptionMap{}, OptionMap{{"span", "1"}, {"fanout", "2"}},
                                         OptionMap{{"span", "4"}, {"neighbourhood", "2"}, {"fanout", "3"}},
                                         OptionMap{{"span", "2"}, {"fanout", "2"}, {"cache", "0"}}));

TEST_P(ChimeShapes, KeysThatMakeTrouble_ComeInOrder) {
  // Given keys that are empty, of zeros and of ones, and prefixes of each other, inserted in random order
  // When ranges of them are scanned, and their greatest keys asked for; also when every second one was
  // deleted
  // Expect what a map says
  World world({.region_bytes = 8 << 20, .nodes = 2});
  Member member(world, GetParam());
  std::vector<std::string> keys = TroublesomeKeys();
  const std::vector<std::string> bounds = keys;
  Random random(1);
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
  Model model;
  for (const std::string& key : keys) {
    member.Now(member.Put(key, "value of " + key));
    model[key] = "value of " + key;
  }
  ExpectRanges(member, model, bounds, 200);
  for (size_t i = 0; i < keys.size(); i += 2) {
    EXPECT_TRUE(member.Now(member.Delete(keys[i])));
    model.erase(keys[i]);
  }
  ExpectRanges(member, model, bounds, 200);
  for (const std::string& key : keys) {
    EXPECT_EQ(member.Now(member.Get(key)), model.contains(key) ? model[key] : "absent");
  }
  ExpectInOrder(world, member);
}

TEST(ChimeTable, ManyKeysShareTheirFirstTwentyBytes_AllAreFoundInOrder) {
  // Given keys that differ behind 20 bytes only
  // When many of them are put
  // Expect that all are found, by name, by cursor and in order, and that the table is whole
  World world({.region_bytes = 32 << 20});
  Member member(world, {});
  constexpr int kKeys = 6000;
  Model model;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = fmt::format("twenty bytes, shared {}", i * 7919 % 100'003);
    member.Now(member.Put(key, std::to_string(i)));
    model[key] = std::to_string(i);
  }
  for (const auto& [key, value] : model) ASSERT_EQ(member.Now(member.Get(key)), value);
  EXPECT_EQ(member.Now(member.Scan(KeyRange::All(), kKeys + 1)), Expected(model, KeyRange::All(), kKeys));
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(stats.records, model.size());
  EXPECT_GE(DetailOf(stats, "levels"), 3);
  ExpectInOrder(world, member);
}

TEST(ChimeTable, AscendingAndDescendingInserts_GrowTheTree) {
  // Given keys that come in order. Expect that they are all there, and the tree is whole.
  for (const bool ascending : {true, false}) {
    World world({.region_bytes = 16 << 20});
    Member member(world, {{"keys", "inline"}, {"span", "8"}, {"fanout", "4"}});
    constexpr uint64_t kKeys = 1000;
    for (uint64_t i = 0; i < kKeys; ++i)
      member.Now(member.Put(EightBytes(ascending ? i : kKeys - i), "value of"));
    const std::vector<Record> page = member.Now(member.Scan(KeyRange::All(), 2 * kKeys));
    EXPECT_EQ(page.size(), kKeys);
    EXPECT_TRUE(std::is_sorted(page.begin(), page.end(),
                               [](const Record& a, const Record& b) { return a.key < b.key; }));
    EXPECT_GE(DetailOf(member.Now(member.Stats()), "levels"), 5);
    ExpectInOrder(world, member);
  }
}

TEST(ChimeTable, InlineKeys_OtherSizesAreRefusedWithAReason) {
  // Given keys=inline. When keys and values of other sizes are put. Expect errors that say why; and that
  // ranges may have any bounds.
  World world;
  Member member(world, {{"keys", "inline"}});
  for (const std::string key : {"", "seven b", "nine byte"}) {
    const Result<PutOutcome> put = member.Try(member.Put(key, "8 bytes!"));
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(put.error().message().find("keys=inline"), std::string::npos);
    EXPECT_FALSE(member.Try(member.Get(key)).ok());
  }
  EXPECT_FALSE(member.Try(member.Put("8 bytes!", "more than that")).ok());
  member.Now(member.Put("8 bytes!", "8 bytes?"));
  EXPECT_EQ(member.Now(member.Scan(KeyRange::Between("8", "9"), 10)).size(), 1u);
  EXPECT_EQ(member.Now(member.Scan(KeyRange::From("8 bytes! and more"), 10)).size(), 0u);
  EXPECT_EQ(member.Now(member.Last(KeyRange::Prefix("8 "))), "8 bytes!");
  EXPECT_EQ(world.problem, "");
}

TEST(ChimeTable, EverythingIsDeleted_EveryBlockIsFree_AndEmptyLeavesArePassedOver) {
  // Given a table of many leaves. When all keys are deleted but one. Expect that scans and Last find it, and
  // that only the tree takes memory when that is deleted too.
  World world({.region_bytes = 16 << 20});
  Member member(world, {{"span", "4"}, {"fanout", "4"}});
  for (int i = 0; i < 500; ++i) member.Now(member.Put(fmt::format("k{}", i), "v"));
  for (int i = 0; i < 500; ++i) {
    if (i == 250) continue;
    EXPECT_TRUE(member.Now(member.Delete(fmt::format("k{}", i))));
  }
  EXPECT_EQ(member.Now(member.Last(KeyRange::All())), "k250");
  EXPECT_EQ(member.Now(member.Scan(KeyRange::All(), 10)).size(), 1u);
  EXPECT_TRUE(member.Now(member.Delete("k250")));
  EXPECT_EQ(member.Now(member.Last(KeyRange::All())), "absent");
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(stats.records, 0u);
  EXPECT_EQ(stats.block_bytes, 0u);
  ExpectInOrder(world, member);
}

TEST(ChimeTable, WholeLeavesAndNothingRemembered_GiveTheSameAnswers) {
  // Given clients that read whole leaves, or remember neither inner nodes nor keys. Expect what the others
  // find.
  World world({.region_bytes = 16 << 20});
  Member writer(world, {{"span", "16"}, {"fanout", "4"}});
  Member whole(world, {{"span", "16"}, {"fanout", "4"}, {"leaf_read", "whole"}});
  Member forgetful(world, {{"span", "16"}, {"fanout", "4"}, {"cache", "0"}, {"hotspot", "0"}});
  for (int i = 0; i < 300; ++i) writer.Now(writer.Put(fmt::format("k{}", i), std::to_string(i)));
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(whole.Now(whole.Get(fmt::format("k{}", i))), std::to_string(i));
    EXPECT_EQ(forgetful.Now(forgetful.Get(fmt::format("k{}", i))), std::to_string(i));
  }
  EXPECT_EQ(forgetful.Now(forgetful.Scan(KeyRange::All(), 1000)).size(), 300u);
  EXPECT_EQ(forgetful.Now(forgetful.Stats()).client_bytes, 0u);
  EXPECT_EQ(DetailOf(whole.Now(whole.Stats()), "hotspots"), -1);
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::chime
