// What an ordered engine promises (index/index.h), for every such engine on every backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "tests/engines/conformance/ordered_table.h"
#include "tests/support/sanitized.h"

namespace farside::conformance {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

class EngineScanTest : public OrderedTest {};
INSTANTIATE_TEST_SUITE_P(Engines, EngineScanTest, testing::ValuesIn(OrderedOnAllBackends()), OrderedLabel);

TEST_P(EngineScanTest, AnEmptyTable_HasNothingInAnyRange) {
  // Given an empty table. Expect that no range has anything, and that the scan knows that there is no more.
  for (const KeyRange& range : {KeyRange::All(), KeyRange::From("a"), KeyRange::Between("a", "b"),
                                KeyRange::Between("", ""), KeyRange::Prefix("a"), KeyRange::Prefix("\xff")}) {
    ExpectRange(range);
  }
}

TEST_P(EngineScanTest, Keys_ComeInOrder_HoweverTheyWereInserted) {
  // Given keys that were inserted from the middle outwards. Expect all of them in order.
  for (const char* key : {"m", "l", "n", "k", "o", "a", "z", "am", "ma", "mm"}) Put(K(key), V(key));
  ExpectRange(KeyRange::All());
}

TEST_P(EngineScanTest, TheEmptyKey_IsTheFirst) {
  if (!takes_any_size()) GTEST_SKIP() << "this table has no empty key";
  // Given the empty key, and the smallest one behind it. Expect that ranges take the first, the second or
  // both.
  Put("", "of nothing");
  Put(std::string(1, '\0'), "of a zero");
  Put("a", "of a");
  ExpectRange(KeyRange::All());
  ExpectRange(KeyRange::From(std::string(1, '\0')));
  ExpectRange(KeyRange::Between("", std::string(1, '\0')));
  ExpectRange(KeyRange::Between("", ""));
}

TEST_P(EngineScanTest, BinaryKeys_AreOrderedAsUnsignedBytes) {
  // Given keys of zeros, of ones, and of bytes around the sign. Expect the order of memcmp, a prefix before
  // what is longer.
  if (takes_any_size()) {
    for (const size_t length : {1, 7, 8, 9, 16, 40, 63, 64}) {
      Put(std::string(length, '\0'), "zeros");
      Put(std::string(length, '\xff'), "ones");
      Put(std::string(length, '\x80'), "signs");
    }
  } else {
    const size_t size = *GetParam().engine.traits.fixed_size;
    for (const char fill : {'\0', '\x7f', '\x80', '\xff'}) {
      for (const char end : {'\0', '\x01', '\x7f', '\x80', '\xff'})
        Put(std::string(size - 1, fill) + end, V("v"));
    }
  }
  ExpectRange(KeyRange::All());
  ExpectRange(KeyRange::From("\x80"));
  ExpectRange(KeyRange::Between(std::string(8, '\0'), std::string(8, '\x80')));
  ExpectRange(KeyRange::Between("\x7f\xff", "\xff\xff"));
}

TEST_P(EngineScanTest, APrefixOfOnes_ReachesToTheEnd) {
  // Given keys that begin with ones, and others. When the prefix has only ones, so that no key is the first
  // beyond it. Expect those that begin with it, up to the last key there can be.
  for (const char* key : {"a", "\xfe\xff", "\xff", "\xff\x01", "\xff\xfe\xff", "\xff\xff", "\xff\xff\xff"})
    Put(K(key), V("v"));
  if (!takes_any_size()) Put(std::string(*GetParam().engine.traits.fixed_size, '\xff'), V("last"));
  EXPECT_EQ(KeyRange::Prefix("\xff\xff").to, std::nullopt);
  ExpectRange(KeyRange::Prefix("\xff"));
  ExpectRange(KeyRange::Prefix("\xff\xff"));
  ExpectRange(KeyRange::Prefix(std::string(9, '\xff')));
  ExpectRange(KeyRange::Prefix("\xfe"));
  ExpectRange(KeyRange::Prefix(""));
}

TEST_P(EngineScanTest, Bounds_IncludeFromAndExcludeTo) {
  // Given some keys. When bounds are keys, fall between keys, or are shorter or longer than any. Expect from
  // included and to excluded.
  for (const char* key : {"b", "d", "f", "h"}) Put(K(key), V(key));
  std::vector<std::string> bounds = {"", "a", "b", "c", "d", "f", "g", "h", "i", std::string(20, 'd')};
  for (const char* key : {"b", "d", "f", "h"}) {
    bounds.push_back(K(key));
    bounds.push_back(K(key) + '\0');  // the first one behind the key
    bounds.push_back(K(key) + "\xff");
  }
  // Longer than a key may be: where a scan goes on behind the longest one.
  bounds.push_back("d" + std::string(kMaxKeyBytes, 'x'));
  for (const std::string& from : bounds) {
    ExpectRange(KeyRange::From(from));
    for (const std::string& to : {std::string("d"), K("d"), K("f") + '\0', std::string("z")}) {
      SCOPED_TRACE(fmt::format("{} bytes to {} bytes", from.size(), to.size()));
      const std::vector<Record> expected = Expected(KeyRange::Between(from, to));
      EXPECT_EQ(table_->Scan(KeyRange::Between(from, to), 100).records, expected);
    }
  }
}

TEST_P(EngineScanTest, EmptyAndReversedRanges_HaveNothing) {
  // Given some keys. When a range ends where it begins, or before. Expect nothing, and that there is no more.
  for (const char* key : {"a", "b", "c"}) Put(K(key), V(key));
  ExpectRange(KeyRange::Between(K("b"), K("b")));
  ExpectRange(KeyRange::Between(K("c"), K("a")));
  ExpectRange(KeyRange::Between("z", "a"));
  ExpectRange(KeyRange::Between("", ""));
  EXPECT_TRUE(table_->Scan(KeyRange::Between(K("b"), K("b")), 1).records.empty());
  EXPECT_FALSE(table_->Last(KeyRange::Between(K("c"), K("a"))).has_value());
}

TEST_P(EngineScanTest, APage_IsAppendedTo) {
  // Given a page with a record in it. When a scan appends to it. Expect that the record stays, and does not
  // count.
  for (const char* key : {"a", "b", "c"}) Put(K(key), V(key));
  std::vector<Record> page = {{"mine", "stays"}};
  Op op(table_->client(), OpKind::kScan);
  EXPECT_TRUE(Must(fabric::Run(table_->client(), table_->index().Scan(op, KeyRange::All(), 2, page))));
  EXPECT_EQ(page, (std::vector<Record>{{"mine", "stays"}, {K("a"), V("a")}, {K("b"), V("b")}}));
}

TEST_P(EngineScanTest, Pages_GoOnBehindTheLastKey) {
  // Given thirty keys. When pages of several sizes are taken, each from behind the last key. Expect all keys,
  // once.
  for (int i = 0; i < 30; ++i) Put(K(fmt::format("k{:02}", i * 7 % 30)), V(fmt::format("v{}", i)));
  for (const size_t size : {1, 2, 3, 7, 29, 30, 31}) {
    std::vector<Record> all;
    KeyRange rest = KeyRange::Between("k", "l");
    for (bool more = true; more;) {
      const OrderedClient::Page page = table_->Scan(rest, size);
      all.insert(all.end(), page.records.begin(), page.records.end());
      ASSERT_LE(all.size(), model_.size()) << "pages of " << size;
      more = page.more;
      if (!page.records.empty()) rest.from = page.records.back().key + '\0';
    }
    EXPECT_EQ(all, Expected(KeyRange::All())) << "pages of " << size;
  }
}

TEST_P(EngineScanTest, KeysThatShareLongPrefixes_AreTakenApart) {
  if (!takes_any_size()) GTEST_SKIP() << "keys have one size";
  // Given keys that differ only behind a hundred bytes, and some that are prefixes of others. Expect their
  // order, and that ranges begin and end among them.
  const std::string shared(100, 'p');
  for (int i = 0; i < 40; ++i) Put(shared + fmt::format("{:02}", i * 17 % 40), fmt::format("value {}", i));
  for (const size_t length : {1, 8, 9, 50, 99, 100}) Put(shared.substr(0, length), "a prefix");
  ExpectRange(KeyRange::All());
  ExpectRange(KeyRange::Prefix(shared));
  ExpectRange(KeyRange::Prefix(shared + "1"));
  ExpectRange(KeyRange::Between(shared + "05", shared + "31"));
  ExpectRange(KeyRange::Between(shared.substr(0, 9), shared + "1"));
}

TEST_P(EngineScanTest, DeletedKeys_AreGone_AndMayComeBack) {
  // Given keys. When every other one is deleted, then all of the upper half, and then some come back. Expect
  // what is there.
  for (int i = 0; i < 30; ++i) Put(K(fmt::format("k{:02}", i)), V("first"));
  for (int i = 0; i < 30; i += 2) Delete(K(fmt::format("k{:02}", i)));
  ExpectRange(KeyRange::All());
  for (int i = 15; i < 30; ++i) Delete(K(fmt::format("k{:02}", i)));
  ExpectRange(KeyRange::All());
  ExpectRange(KeyRange::From(K("k15")));
  for (int i = 20; i < 25; ++i) Put(K(fmt::format("k{:02}", i)), V("again"));
  ExpectRange(KeyRange::All());
  for (int i = 0; i < 30; ++i) Delete(K(fmt::format("k{:02}", i)));
  ExpectRange(KeyRange::All());
}

TEST_P(EngineScanTest, ReplacedValues_AreTheNewOnes) {
  // Given records. When their values are replaced. Expect the new ones, and each key once.
  for (const char* value : {"first", "second", "third"}) {
    for (int i = 0; i < 10; ++i) Put(K(fmt::format("k{}", i)), V(value));
    ExpectRange(KeyRange::All());
  }
}

TEST_P(EngineScanTest, LargeValues_ComeWithSmallOnes) {
  if (!takes_any_size()) GTEST_SKIP() << "values have one size";
  // Given values from nothing to some hundred kilobytes. Expect each of them with its key.
  int number = 0;
  for (const size_t size : {0, 1, 63, 64, 65, 1000, 4096, 70'000, 300'000}) {
    std::string value(size, static_cast<char>('a' + number));
    if (size > 0) value.back() = '!';
    Put(fmt::format("k{}", number++), value);
  }
  const OrderedClient::Page page = table_->Scan(KeyRange::All(), 100);
  EXPECT_TRUE(page.records == Expected(KeyRange::All()));
  const std::optional<Record> last = table_->Last(KeyRange::All());
  ASSERT_TRUE(last.has_value());
  EXPECT_TRUE(last->value == model_.rbegin()->second);
}

TEST_P(EngineScanTest, Last_IsTheGreatestOfTheRange) {
  // Given some keys. Expect the greatest one of a range, also where the bound itself is a key, or deleted.
  for (const char* key : {"b", "d", "f"}) Put(K(key), V(key));
  const auto key_of = [](const std::optional<Record>& record) { return record ? record->key : "none"; };
  EXPECT_EQ(key_of(table_->Last(KeyRange::All())), K("f"));
  EXPECT_EQ(key_of(table_->Last(KeyRange::Between("", K("f")))), K("d"));
  EXPECT_EQ(key_of(table_->Last(KeyRange::Between("", K("f") + '\0'))), K("f"));
  EXPECT_EQ(key_of(table_->Last(KeyRange::Between("", K("b")))), "none");
  EXPECT_EQ(key_of(table_->Last(KeyRange::From("g"))), "none");
  Delete(K("f"));
  EXPECT_EQ(key_of(table_->Last(KeyRange::All())), K("d"));
}

TEST_P(EngineScanTest, AScan_IsOneOperation) {
  // When a range is scanned, and its last key is asked for. Expect two operations of the kind scan, and no
  // other.
  for (const char* key : {"a", "b", "c"}) Put(K(key), V(key));
  fabric::Counters& counters = table_->client().counters();
  counters = fabric::Counters();
  table_->Scan(KeyRange::All(), 100);
  table_->Last(KeyRange::All());
  EXPECT_EQ(counters.at(OpKind::kScan, OpOutcome::kDone).operations, 2u);
  EXPECT_GE(counters.at(OpKind::kScan, OpOutcome::kDone).end_to_end_trips, 2u);
  EXPECT_EQ(counters.Total().operations, 2u);
}

TEST_P(EngineScanTest, RandomChangesAndRanges_AgreeWithAModel) {
  // Given a model. When random changes are done to both, and random ranges are scanned. Expect the same,
  // always.
  Random random(7);
  const auto some_key = [&] {
    std::string text;
    const uint64_t length = takes_any_size() ? random.Below(4) : 1 + random.Below(3);
    // Few letters, also the outermost bytes, so that keys are prefixes of each other.
    constexpr std::string_view kLetters("\0a\x7f\xff", 4);
    for (uint64_t i = 0; i < length; ++i) text += kLetters[random.Below(kLetters.size())];
    return K(text);
  };
  const int steps = static_cast<int>(120 / (kSanitized ? 4 : 1));
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    for (int change = 0; change < 3; ++change) {
      const std::string key = some_key();
      if (random.Chance(1, 3) || model_.size() >= 40) {
        Delete(model_.size() >= 40 ? model_.begin()->first : key);
      } else {
        Put(key, V(fmt::format("v{}.{}", step, change)));
      }
    }
    KeyRange range = KeyRange::From(random.Chance(1, 4) ? "" : some_key());
    if (random.Chance(1, 2)) range.to = some_key();
    const size_t limit = 1 + random.Below(12);
    const std::vector<Record> expected = Expected(range);
    const OrderedClient::Page page = table_->Scan(range, limit);
    const auto end = expected.begin() + static_cast<ptrdiff_t>(std::min(limit, expected.size()));
    ASSERT_EQ(page.records, std::vector<Record>(expected.begin(), end));
    if (expected.size() > limit) {
      ASSERT_TRUE(page.more);
    }
    if (expected.size() < limit) {
      ASSERT_FALSE(page.more);
    }
    const std::optional<Record> last = table_->Last(range);
    ASSERT_EQ(last.has_value(), !expected.empty());
    if (last.has_value()) {
      ASSERT_EQ(*last, expected.back());
    }
  }
}

// ---- while others write --------------------------------------------------------------------------------

// Puts and deletes the keys one after the other, again and again.
Task<Done> ComeAndGo(OrderedClient& table, std::vector<std::string> keys, std::string value, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& key : keys) {
      Op op(table.client(), OpKind::kUpdate);
      if (round % 2 == 0) {
        co_await table.index().Put(op, key, value);
      } else {
        co_await table.index().Delete(op, key);
      }
    }
    Op op(table.client(), OpKind::kMaintenance);
    if (table.session().pool().MaintenanceDue()) co_await table.session().pool().Maintain(op);
  }
  co_return Done{};
}

// Scans the range as long as there is something left to do, and demands that `always` are in it, and nothing
// twice.
Task<Done> ScanOften(OrderedClient& table, std::vector<std::string> always, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<Record> page;
    Op op(table.client(), OpKind::kScan);
    const KeyRange all = KeyRange::All();
    const bool more = co_await table.index().Scan(op, all, 1000, page);
    EXPECT_FALSE(more);
    std::vector<std::string> seen;
    for (const Record& record : page) seen.push_back(record.key);
    EXPECT_EQ(std::ranges::adjacent_find(seen, std::ranges::greater_equal{}), seen.end());
    EXPECT_TRUE(std::ranges::includes(seen, always)) << "a key that is there throughout was not seen";
    Record last;
    const bool found = co_await table.index().Last(op, all, last);
    EXPECT_TRUE(found);
    EXPECT_GE(last.key, always.back());
    Op aside(table.client(), OpKind::kMaintenance);
    if (table.session().pool().MaintenanceDue()) co_await table.session().pool().Maintain(aside);
  }
  co_return Done{};
}

TEST_P(EngineScanTest, WhileOthersComeAndGo_WhatIsThereThroughoutIsSeen) {
  // Given keys that stay, and between them keys that two others put and delete all the time. When ranges are
  // scanned meanwhile. Expect every key that stays in every scan, in order, and none twice.
  std::vector<std::string> stay;
  std::vector<std::string> pass_by[2];
  for (int i = 0; i < 10; ++i) {
    stay.push_back(K(fmt::format("k{}m", i)));
    pass_by[0].push_back(K(fmt::format("k{}a", i)));
    pass_by[1].push_back(K(fmt::format("k{}z", i)));
    Put(stay.back(), V("stays"));
  }
  const int rounds = (GetParam().backend.simulated ? 6 : 60) / (kSanitized ? 3 : 1);
  const std::unique_ptr<OrderedClient> others[2] = {NewClient(), NewClient()};
  const fabric::conformance::Part parts[] = {
      {&table_->client(), [&](fabric::Client&) { return ScanOften(*table_, stay, 2 * rounds); }},
      {&others[0]->client(),
       [&](fabric::Client&) { return ComeAndGo(*others[0], pass_by[0], V("a"), rounds); }},
      {&others[1]->client(),
       [&](fabric::Client&) { return ComeAndGo(*others[1], pass_by[1], V("z"), rounds); }},
  };
  world_->PlayWell(parts);
}

}  // namespace
}  // namespace farside::conformance
