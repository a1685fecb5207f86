#include "workload/records.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace farside::workload {
namespace {

std::string KeyOf(uint64_t record, size_t bytes = kFewestKeyBytes) {
  std::string key(bytes, '\0');
  FillKey(record, key);
  return key;
}

std::string ValueOf(const std::string& key, uint32_t version, size_t bytes) {
  std::string value(bytes, '\0');
  FillValue(key, version, value);
  return value;
}

TEST(Records, KeysDifferAndLookRandom) {
  // Given the first 100,000 records. Expect different keys, of which about half have their first bit set.
  std::set<std::string> keys;
  int set = 0;
  for (uint64_t record = 0; record < 100'000; ++record) {
    const std::string key = KeyOf(record);
    set += static_cast<unsigned char>(key[0]) >> 7;
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 100'000u);
  EXPECT_NEAR(set, 50'000, 1000);
}

TEST(Records, ALongerKeyBeginsWithTheShorterOne) {
  // Given one record. When its key is made in several sizes. Expect that the size alone decides where it
  // ends.
  const std::string longest = KeyOf(42, 100);
  for (const size_t bytes : {8, 9, 15, 16, 17, 64}) EXPECT_EQ(KeyOf(42, bytes), longest.substr(0, bytes));
}

TEST(Records, AValueProvesItsKeyInEverySize) {
  // Given values of all small sizes, and a large one. Expect that each is one of its key; and, from 4 bytes
  // on, none of another key. (Fewer bytes agree by chance now and then.)
  for (size_t bytes : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 100, 5000}) {
    const std::string mine = KeyOf(1);
    const std::string other = KeyOf(2);
    for (const uint32_t version : {0u, 1u, 77'777u, ~0u}) {
      const std::string value = ValueOf(mine, version, bytes);
      EXPECT_TRUE(IsValueOf(mine, value, bytes)) << bytes << " bytes, version " << version;
      const bool proves = bytes >= 4;
      EXPECT_FALSE(proves && IsValueOf(other, value, bytes)) << bytes << " bytes, version " << version;
    }
  }
}

TEST(Records, AnyBitThatIsWrongIsSeen) {
  // Given a value of 16 bytes. When any bit of it is turned, or it is cut short. Expect that it is none of
  // its key.
  const std::string key = KeyOf(3);
  const std::string value = ValueOf(key, 9, 16);
  for (size_t bit = 0; bit < 16 * 8; ++bit) {
    std::string wrong = value;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(IsValueOf(key, wrong, 16)) << "bit " << bit;
  }
  EXPECT_FALSE(IsValueOf(key, value.substr(0, 15), 16));
  EXPECT_FALSE(IsValueOf(key, "", 16));
}

TEST(Records, VersionsDiffer) {
  // Given one key. When it gets values of different versions. Expect different bytes.
  const std::string key = KeyOf(4);
  EXPECT_NE(ValueOf(key, 1, 8), ValueOf(key, 2, 8));
  EXPECT_NE(ValueOf(key, 1, 100).substr(4), ValueOf(key, 2, 100).substr(4));
}

}  // namespace
}  // namespace farside::workload
