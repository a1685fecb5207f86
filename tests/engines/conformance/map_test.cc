// Every engine is a map from byte strings to byte strings, for one session that is alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/engines/conformance/engine.h"

namespace farside::conformance {
namespace {

using testing::HasSubstr;

class EngineMapTest : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Engines, EngineMapTest, testing::ValuesIn(AllEngines()), LabelOf);

TEST_P(EngineMapTest, AnEmptyTable_HasNothing) {
  // Given an empty table. Expect that nothing is found, updated, deleted, or returned by a cursor.
  EXPECT_EQ(Get("k"), std::nullopt);
  EXPECT_FALSE(Must(session_.Update(table_, "k", "v")));
  EXPECT_FALSE(Must(session_.Delete(table_, "k")));
  EXPECT_FALSE(Must(session_.CompareAndSet(table_, "k", "", "v")));
  EXPECT_TRUE(All().empty());
  EXPECT_EQ(Must(session_.Stats(table_)).records, 0u);
}

TEST_P(EngineMapTest, Put_InsertsAndReplaces) {
  // When a key is put twice. Expect the second value.
  Must(session_.Put(table_, "k", "first"));
  EXPECT_EQ(Get("k"), "first");
  Must(session_.Put(table_, "k", "second"));
  EXPECT_EQ(Get("k"), "second");
  EXPECT_EQ(All(), (std::vector<Record>{{"k", "second"}}));
}

TEST_P(EngineMapTest, Insert_OnlyIfAbsent) {
  // Given a key. When it is inserted again. Expect that it is refused, and nothing changed.
  EXPECT_TRUE(Must(session_.Insert(table_, "k", "first")));
  EXPECT_FALSE(Must(session_.Insert(table_, "k", "second")));
  EXPECT_EQ(Get("k"), "first");
}

TEST_P(EngineMapTest, Update_OnlyIfPresent) {
  // Given a key. When it and an absent one are updated. Expect that only the one that is there changes.
  Must(session_.Put(table_, "k", "first"));
  EXPECT_TRUE(Must(session_.Update(table_, "k", "second")));
  EXPECT_FALSE(Must(session_.Update(table_, "absent", "x")));
  EXPECT_EQ(Get("k"), "second");
  EXPECT_EQ(Get("absent"), std::nullopt);
}

TEST_P(EngineMapTest, Delete_TellsWhetherItWasThere) {
  // Given a key. When it is deleted twice. Expect that the first one finds it, and that it can be inserted
  // again.
  Must(session_.Put(table_, "k", "v"));
  EXPECT_TRUE(Must(session_.Delete(table_, "k")));
  EXPECT_EQ(Get("k"), std::nullopt);
  EXPECT_FALSE(Must(session_.Delete(table_, "k")));
  EXPECT_TRUE(Must(session_.Insert(table_, "k", "w")));
  EXPECT_EQ(Get("k"), "w");
}

TEST_P(EngineMapTest, CompareAndSet_OnlyIfTheValueIsExactlyThat) {
  // Given a value. When it is compared with others, also with parts of it. Expect that only the same one is
  // replaced.
  Must(session_.Put(table_, "k", "value"));
  for (const std::string_view other : {"", "valu", "values", "Value"}) {
    EXPECT_FALSE(Must(session_.CompareAndSet(table_, "k", other, "new"))) << other;
  }
  EXPECT_EQ(Get("k"), "value");
  EXPECT_TRUE(Must(session_.CompareAndSet(table_, "k", "value", "")));
  EXPECT_EQ(Get("k"), "");
  EXPECT_TRUE(Must(session_.CompareAndSet(table_, "k", "", "again")));
  EXPECT_EQ(Get("k"), "again");
}

TEST_P(EngineMapTest, Increment_CountsFromZeroAndWraps) {
  // When an absent counter is incremented. Expect that it counts from 0, is 8 bytes little-endian, and wraps.
  EXPECT_EQ(Must(session_.Increment(table_, "n", 5)), 5u);
  EXPECT_EQ(Get("n"), std::string("\5\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(Must(session_.Increment(table_, "n", 0)), 5u);
  EXPECT_EQ(Must(session_.Increment(table_, "n", ~uint64_t{0})), 4u);
}

TEST_P(EngineMapTest, Increment_OfWhatIsNoCounter_IsRefused) {
  // Given values that have not 8 bytes. When they are incremented. Expect an error, and that they stay.
  for (const std::string_view value : {"", "seven b", "nine byte"}) {
    Must(session_.Put(table_, "k", value));
    const Result<uint64_t> added = session_.Increment(table_, "k", 1);
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(Get("k"), value);
  }
}

TEST_P(EngineMapTest, EmptyKeysAndValues_AreLikeAnyOther) {
  // Given an empty value, and an empty key. Expect that they are present, and apart from what is absent.
  Must(session_.Put(table_, "", "of nothing"));
  Must(session_.Put(table_, "empty", ""));
  EXPECT_EQ(Get(""), "of nothing");
  EXPECT_EQ(Get("empty"), "");
  EXPECT_EQ(All(), (std::vector<Record>{{"", "of nothing"}, {"empty", ""}}));
  EXPECT_TRUE(Must(session_.Delete(table_, "")));
  EXPECT_EQ(Get(""), std::nullopt);
  EXPECT_EQ(Get("empty"), "");
}

TEST_P(EngineMapTest, BinaryKeys_ThatDifferLittle_AreDifferentKeys) {
  // Given keys of zeros and of ones, of many lengths: prefixes of each other. Expect that each has its own
  // value.
  std::vector<std::string> keys;
  for (const size_t length : {1, 7, 8, 9, 16, 40, 63, 64}) {
    keys.emplace_back(length, '\0');
    keys.emplace_back(length, '\xff');
  }
  for (const std::string& key : keys) Must(session_.Put(table_, key, "value of " + key));
  for (const std::string& key : keys) EXPECT_EQ(Get(key), "value of " + key);
  EXPECT_EQ(All().size(), keys.size());
  for (const std::string& key : keys) EXPECT_TRUE(Must(session_.Delete(table_, key)));
  EXPECT_TRUE(All().empty());
}

TEST_P(EngineMapTest, ValuesOfAllSizes_GrowAndShrink) {
  // When one value has one size after the other, around every border there may be. Expect each of them back.
  std::vector<size_t> sizes;
  for (const size_t border : {64, 128, 512, 1024, 4096, 65536, 1 << 20}) {
    for (const size_t around : {border - 40, border - 25, border - 1, border, border + 1})
      sizes.push_back(around);
  }
  std::vector<size_t> back(sizes.rbegin(), sizes.rend());
  sizes.insert(sizes.end(), back.begin(), back.end());
  for (const size_t size : sizes) {
    std::string value(size, static_cast<char>('a' + size % 26));
    if (size > 0) value.back() = '!';
    Must(session_.Put(table_, "k", value));
    ASSERT_TRUE(Get("k") == value) << size;
  }
}

TEST_P(EngineMapTest, TheLargestKey_IsTaken_AndALargerOneRefused) {
  // Given the largest key that there may be. Expect that all operations take it, and none a larger one.
  const std::string key(kMaxKeyBytes, 'k');
  const std::string too_large(kMaxKeyBytes + 1, 'k');
  Must(session_.Put(table_, key, "v"));
  EXPECT_EQ(Get(key), "v");
  EXPECT_TRUE(Must(session_.CompareAndSet(table_, key, "v", "w")));
  EXPECT_TRUE(Must(session_.Delete(table_, key)));

  const Result<std::optional<std::string>> got = session_.Get(table_, too_large);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(got.error().message(), HasSubstr("65537"));
  EXPECT_EQ(session_.Put(table_, too_large, "v").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(session_.Insert(table_, too_large, "v").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(session_.Update(table_, too_large, "v").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(session_.Delete(table_, too_large).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(session_.Increment(table_, too_large).error().code(), ErrorCode::kInvalidArgument);
}

TEST_P(EngineMapTest, RandomOperations_AgreeWithAModel) {
  // Given a model. When a thousand random operations on a few keys are done to both. Expect the same answers,
  // always.
  Random random(1);
  std::map<std::string, std::string> model;
  for (int step = 0; step < 1000; ++step) {
    const std::string key = "key-" + std::to_string(random.Below(12));
    const std::string value = std::string(random.Below(200), static_cast<char>('a' + step % 26));
    const auto found = model.find(key);
    const bool there = found != model.end();
    SCOPED_TRACE("step " + std::to_string(step));
    switch (random.Below(6)) {
      case 0:
        Must(session_.Put(table_, key, value));
        model[key] = value;
        break;
      case 1:
        EXPECT_EQ(Must(session_.Insert(table_, key, value)), !there);
        model.emplace(key, value);
        break;
      case 2:
        EXPECT_EQ(Must(session_.Update(table_, key, value)), there);
        if (there) found->second = value;
        break;
      case 3:
        EXPECT_EQ(Must(session_.Delete(table_, key)), there);
        model.erase(key);
        break;
      case 4: {
        const std::string expected = there && random.Below(2) == 0 ? found->second : value;
        const bool same = there && found->second == expected;
        EXPECT_EQ(Must(session_.CompareAndSet(table_, key, expected, value)), same);
        if (same) found->second = value;
        break;
      }
      default: EXPECT_EQ(Get(key), there ? std::optional(found->second) : std::nullopt);
    }
  }
  std::vector<Record> expected;
  for (const auto& [key, value] : model) expected.push_back({key, value});
  EXPECT_EQ(All(), expected);
  EXPECT_EQ(Must(session_.Stats(table_)).records, expected.size());
}

// ---- with more records -------------------------------------------------------------------------------

class EngineManyTest : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Engines, EngineManyTest, testing::ValuesIn(RoomyEngines()), LabelOf);

TEST_P(EngineManyTest, ManyRecords_AreAllThere_AndGoAgain) {
  // Given ten thousand records. Expect that keys, cursor and statistics find all of them; and none when they
  // are deleted.
  constexpr size_t kRecords = 10'000;
  const auto key = [](size_t i) { return "key-" + std::to_string(i); };
  for (size_t i = 0; i < kRecords; ++i) Must(session_.Put(table_, key(i), std::to_string(i)));
  for (size_t i = 0; i < kRecords; ++i) ASSERT_EQ(Get(key(i)), std::to_string(i));
  EXPECT_EQ(Get(key(kRecords)), std::nullopt);
  EXPECT_EQ(All().size(), kRecords);
  const TableStats stats = Must(session_.Stats(table_));
  EXPECT_EQ(stats.records, kRecords);
  EXPECT_GE(stats.slots, kRecords);
  EXPECT_GT(stats.index_bytes, 0u);
  EXPECT_GE(stats.block_bytes, kRecords * 24);
  for (size_t i = 0; i < kRecords; ++i) ASSERT_TRUE(Must(session_.Delete(table_, key(i))));
  EXPECT_TRUE(All().empty());
}

TEST_P(EngineManyTest, Batches_HaveAnOutcomePerItem) {
  // Given half of a thousand keys. When batches ask for all of them. Expect the outcome of each.
  constexpr size_t kRecords = 1000;
  std::vector<std::string> keys;
  for (size_t i = 0; i < kRecords; ++i) keys.push_back("key-" + std::to_string(i));
  std::vector<PutItem> puts;
  for (size_t i = 0; i < kRecords; i += 2) puts.push_back({.key = keys[i], .value = keys[i]});
  Must(session_.MultiPut(table_, puts));

  std::vector<GetItem> gets;
  for (const std::string& key : keys) gets.push_back({.key = key});
  Must(session_.MultiGet(table_, gets));
  for (size_t i = 0; i < kRecords; ++i) {
    ASSERT_EQ(*gets[i].found, i % 2 == 0) << i;
    ASSERT_EQ(gets[i].value, i % 2 == 0 ? keys[i] : "") << i;
  }

  std::vector<DeleteItem> deletes;
  for (const std::string& key : keys) deletes.push_back({.key = key});
  Must(session_.MultiDelete(table_, deletes));
  for (size_t i = 0; i < kRecords; ++i) ASSERT_EQ(*deletes[i].deleted, i % 2 == 0) << i;
  EXPECT_TRUE(All().empty());
}

// ---- with the largest values -------------------------------------------------------------------------

class EngineLargeTest : public EngineTest {
 protected:
  EngineLargeTest() : EngineTest("embedded:?size=256MiB") {}
};
INSTANTIATE_TEST_SUITE_P(Engines, EngineLargeTest, testing::ValuesIn(RoomyEngines()), LabelOf);

TEST_P(EngineLargeTest, TheLargestValue_IsTaken_AndALargerOneRefused) {
  // Given the largest value that there may be. Expect that it comes back, can be replaced, and that no larger
  // one is taken.
  std::string value(kMaxValueBytes, 'v');
  for (size_t i = 0; i < value.size(); i += 4096) value[i] = static_cast<char>(i >> 12);
  Must(session_.Put(table_, "k", value));
  EXPECT_TRUE(Get("k") == value);
  value.push_back('!');
  const Status put = session_.Put(table_, "k", value);
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(put.error().message(), HasSubstr("67108865"));
  EXPECT_EQ(session_.CompareAndSet(table_, "k", value, "").error().code(), ErrorCode::kInvalidArgument);
  value.pop_back();
  EXPECT_TRUE(Must(session_.CompareAndSet(table_, "k", value, "small")));
  EXPECT_EQ(Get("k"), "small");
}

}  // namespace
}  // namespace farside::conformance
