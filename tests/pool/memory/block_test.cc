// Blocks: what goes in comes out, and anything else is told apart from a block.
#include "pool/memory/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"

namespace farside::pool {
namespace {

std::vector<std::byte> Encode(std::string_view key, std::string_view value) {
  std::vector<std::byte> bytes(BlockBytes(key.size(), value.size()));
  EncodeBlock(bytes, key, value, Hash64(key));
  return bytes;
}

TEST(Block, EveryShapeOfKeyAndValueComesBack) {
  const std::string zeros(300, '\0');
  const std::string ones(5000, '\xff');
  for (std::string_view key :
       {std::string_view(), std::string_view("k"), std::string_view(zeros), std::string_view(ones)}) {
    for (std::string_view value :
         {std::string_view(), std::string_view("v"), std::string_view(zeros), std::string_view(ones)}) {
      const std::vector<std::byte> bytes = Encode(key, value);
      EXPECT_EQ(bytes.size() % kLine, 0u);
      const Result<BlockView> view = DecodeBlock(bytes);
      ASSERT_TRUE(view.ok());
      EXPECT_EQ(view->key, key);
      EXPECT_EQ(view->value, value);
      EXPECT_EQ(view->hash, Hash64(key));
      EXPECT_EQ(*BlockBytesFromHeader(std::span(bytes).first(kLine)), bytes.size());
    }
  }
}

TEST(Block, SizesRoundUpToLines) {
  EXPECT_EQ(BlockBytes(0, 0), 64u);
  EXPECT_EQ(BlockBytes(20, 20), 64u);
  EXPECT_EQ(BlockBytes(20, 21), 128u);
  EXPECT_EQ(BlockBytes(kMaxKeyBytes, kMaxValueBytes), 64 * 1024 + 64 * 1024 * 1024 + 64u);
}

TEST(Block, GoldenBytes) {
  const std::vector<std::byte> bytes = Encode("key", "value");
  EXPECT_EQ(
      HexDump(bytes),
      "00000000  03 00 00 00 05 00 00 00  e3 65 51 a0 63 0d ea bb  |.........eQ.c...|\n"  // sizes, hash
      "00000010  47 7b 62 bb 2f 28 1a 2c  6b 65 79 76 61 6c 75 65  |G{b./(.,keyvalue|\n"  // checksum, key, value
      "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
      "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

TEST(Block, WhatIsTooLargeIsNamed) {
  const std::string key(kMaxKeyBytes + 1, 'k');
  const Status status = CheckBlockSizes(key, "v");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message(), testing::HasSubstr("65537 bytes; keys have at most 65536"));
  EXPECT_TRUE(CheckBlockSizes(key.substr(1), "v").ok());
}

TEST(Block, EveryFlippedBitIsFound) {
  // Given a block of one line, full to the last byte.
  // When any one bit of it is flipped.
  // Expect it to be refused.
  const std::vector<std::byte> whole = Encode("0123456789", std::string(30, 'v'));
  ASSERT_EQ(whole.size(), kLine);
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::vector<std::byte> damaged = whole;
    damaged[bit / 8] ^= std::byte(1 << bit % 8);
    const Result<BlockView> view = DecodeBlock(damaged);
    ASSERT_FALSE(view.ok()) << "bit " << bit;
    EXPECT_EQ(view.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(Block, CutOffAnywhere_IsRefused) {
  const std::vector<std::byte> whole = Encode("key", std::string(500, 'v'));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeBlock(std::span(whole).first(size)).ok()) << size;
  }
}

TEST(Block, AnyBytes_NeverReadBeyondTheirEnd) {
  // Given random bytes, many with small numbers where the sizes stand.
  // Expect an answer, whatever it is; the sanitizer watches.
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(random.Below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
    for (size_t at = 0; at + 4 <= std::min<size_t>(bytes.size(), 8); at += 4) {
      StoreU32(bytes.data() + at, static_cast<uint32_t>(random.LogUniform(UINT32_MAX)));
    }
    const Result<BlockView> view = DecodeBlock(bytes);
    if (view.ok()) {
      EXPECT_LE(view->key.size() + view->value.size(), bytes.size());
    }
    const Result<uint64_t> size = BlockBytesFromHeader(bytes);
    if (size.ok()) {
      EXPECT_LE(*size, BlockBytes(kMaxKeyBytes, kMaxValueBytes));
    }
  }
}

}  // namespace
}  // namespace farside::pool
