#include "base/hash.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace farside {
namespace {

// Bytes 0, 1, 2, ... 255, 0, ...
std::string Pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i);
  return text;
}

// Given inputs of every length class of XXH3 (0, 1-3, 4-8, 9-16, 17-128, 129-240, longer), without and with
// a seed. Expect the recorded values, since hashes are stored in far memory. The first is the published hash
// of nothing; the others were recorded from libxxhash.
TEST(Hash64, KeepsItsValues) {
  EXPECT_EQ(Hash64(Pattern(0)), 0x2d06800538d394c2u);
  EXPECT_EQ(Hash64(Pattern(1)), 0xc44bdff4074eecdbu);
  EXPECT_EQ(Hash64(Pattern(8)), 0x3a1c2d7c85af88f8u);
  EXPECT_EQ(Hash64(Pattern(16)), 0x8355e3a6f61770dbu);
  EXPECT_EQ(Hash64(Pattern(100)), 0x004e4f921a64bd1cu);
  EXPECT_EQ(Hash64(Pattern(200)), 0xf42a8864feaf0703u);
  EXPECT_EQ(Hash64(Pattern(1000)), 0xd33dd80b46f60e50u);
  EXPECT_EQ(Hash64(Pattern(0), 42), 0xb029411ff43d84d2u);
  EXPECT_EQ(Hash64(Pattern(8), 42), 0x533b2c25fa397f0bu);
  EXPECT_EQ(Hash64(Pattern(1000), 42), 0x1ba5b309df6f67d3u);
}

// Given the same memory as text and as bytes. Expect the same hash.
TEST(Hash64, TextAndBytesAgree) {
  const std::string text = Pattern(33);
  EXPECT_EQ(Hash64(AsBytes(text)), Hash64(text));
  EXPECT_EQ(Hash64(AsBytes(text), 5), Hash64(text, 5));
  EXPECT_EQ(Hash64(std::span<const std::byte>()), Hash64(""));
}

// Given the same bytes at different alignments. Expect the same hash.
TEST(Hash64, DoesNotDependOnTheAddress) {
  const std::string text = Pattern(300);
  for (size_t shift = 0; shift < 16; ++shift) {
    const std::string moved = std::string(shift, 'x') + text;
    EXPECT_EQ(Hash64(std::string_view(moved).substr(shift)), Hash64(text));
  }
}

// Given a key, its variants of one flipped bit, another length and other seeds. Expect different hashes.
TEST(Hash64, SmallDifferencesMatter) {
  const std::string key = Pattern(16);
  std::set<uint64_t> seen = {Hash64(key), Hash64(key, 1), Hash64(key, 2), Hash64(key + '\0')};
  for (size_t bit = 0; bit < 8 * key.size(); ++bit) {
    std::string variant = key;
    variant[bit / 8] = static_cast<char>(variant[bit / 8] ^ (1 << bit % 8));
    seen.insert(Hash64(variant));
  }
  EXPECT_EQ(seen.size(), 4 + 8 * key.size());
}

}  // namespace
}  // namespace farside
