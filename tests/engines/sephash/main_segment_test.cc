// MainSegments as bytes: what is written is read again, and what was damaged is not taken for a MainSegment.
#include "index/sephash/main_segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace farside::index::sephash {
namespace {

using fabric::FarAddr;
using fabric::NodeId;

constexpr FarAddr kAt(NodeId{0}, 0x10000);
constexpr uint64_t kSegment = 0x4000;

MainContent Draw(uint64_t seed, size_t entries, size_t dropped) {
  Random random(seed);
  MainContent content;
  content.merges = random.Below(1'000'000) + 1;
  content.segment = kSegment;
  content.sibling = random.Below(2) * 0x8000;
  for (size_t i = 0; i < entries; ++i) {
    content.entries.push_back(Entry::OfBlock(0, static_cast<Tag>(random.Below(1 << 20)),
                                             (i + 1) * pool::kLine, random.Below(7) * pool::kLine));
  }
  std::sort(content.entries.begin(), content.entries.end());
  for (size_t i = 0; i < dropped; ++i)
    content.dropped.emplace_back((entries + i + 1) * pool::kLine, (random.Below(20) + 1) * pool::kLine);
  return content;
}

// `spare`: bytes that it is allocated beyond what it takes.
std::vector<std::byte> Encode(const MainContent& content, uint64_t spare = 0) {
  std::vector<std::byte> bytes(content.bytes() + spare);
  EncodeMain(content, bytes);
  return bytes;
}

bool IsFilter(size_t byte) { return byte >= kFilterOffset && byte < kStartsOffset; }

constexpr std::string_view kWhole = "whole";
constexpr std::string_view kCorrupt = "kCorrupt";
std::string_view OutcomeOf(std::span<const std::byte> bytes) {
  const Result<MainContent> decoded = DecodeMain(bytes, kAt, kSegment);
  return decoded.ok() ? kWhole : Name(decoded.error().code());
}

TEST(SephashMain, WhatIsWrittenIsReadAgain) {
  // Given MainSegments of no entries, of few, of as many as two bytes can count, and of more
  // When their bytes are made and read
  // Expect the same entries, dropped blocks and names; and starts that follow from the entries
  for (const size_t entries : {size_t{0}, size_t{1}, size_t{7232}, size_t{0xffff}, size_t{0x10000}}) {
    for (const size_t dropped : {size_t{0}, size_t{1}, size_t{126}}) {
      const MainContent content = Draw(entries + dropped, entries, dropped);
      const std::vector<std::byte> bytes = Encode(content, entries % 2 * 192);
      EXPECT_EQ(bytes.size() % pool::kLine, 0u);
      const Result<MainContent> read = DecodeMain(bytes, kAt, kSegment);
      ASSERT_TRUE(read.ok()) << read.error().ToString();
      EXPECT_EQ(read->merges, content.merges);
      EXPECT_EQ(read->segment, content.segment);
      EXPECT_EQ(read->sibling, content.sibling);
      EXPECT_EQ(read->entries, content.entries);
      EXPECT_EQ(read->dropped, content.dropped);
      EXPECT_EQ(read->allocated, bytes.size());
      const Result<Starts> starts = DecodeStarts(bytes, kAt);
      ASSERT_TRUE(starts.ok()) << starts.error().ToString();
      EXPECT_EQ(*starts, StartsOf(content.entries));
    }
  }
}

TEST(SephashMain, StartsDivideTheEntriesByTheirFingerprints) {
  // Given sorted entries
  // When their starts are computed
  // Expect that each entry stands between the start of its fingerprint and the next one
  const MainContent content = Draw(1, 5000, 0);
  const Starts starts = StartsOf(content.entries);
  for (size_t i = 0; i < content.entries.size(); ++i) {
    const size_t fp = content.entries[i].fp();
    EXPECT_LE(starts[fp], i);
    EXPECT_LT(i, fp + 1 < kFingerprints ? starts[fp + 1] : content.entries.size());
  }
}

TEST(SephashMain, AnyByteIsFlipped_OnlyTheFilterMayChange) {
  // Given a MainSegment with entries, dropped blocks and memory that it does not use
  // When one bit of one byte is flipped, any of them
  // Expect kCorrupt; except for a byte of the filter, which clients may set: then it is read as it was
  const MainContent content = Draw(2, 40, 3);
  const std::vector<std::byte> whole = Encode(content, pool::kLine);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> flipped = whole;
      flipped[byte] ^= std::byte(1 << bit);
      ASSERT_EQ(OutcomeOf(flipped), IsFilter(byte) ? kWhole : kCorrupt) << byte;
    }
  }
}

TEST(SephashMain, AnyTailIsMissing_ItIsCorrupt) {
  // Given the bytes of a MainSegment
  // When they end earlier, at any byte
  // Expect kCorrupt, and no access beyond the end
  const std::vector<std::byte> whole = Encode(Draw(3, 40, 3));
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_EQ(OutcomeOf(cut), kCorrupt) << size;
    if (size < sizeof(MainHeader)) continue;
    const Result<Starts> starts = DecodeStarts(cut, kAt);
    ASSERT_EQ(starts.ok(), size >= EntriesOffset(40)) << size;
    if (!starts.ok()) {
      ASSERT_EQ(starts.error().code(), ErrorCode::kCorrupt) << size;
    }
  }
}

TEST(SephashMain, HeadersOfRandomBytes_NoneIsTakenAndNoneIsFollowed) {
  // Given bytes that another table may have left, with a header that says anything
  // When they are read as a MainSegment
  // Expect kCorrupt, and no access beyond the end
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    std::vector<std::byte> bytes(random.Below(64) * pool::kLine);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
    if (bytes.size() >= sizeof(MainHeader)) {
      // The size is right, so that what it counts has to be looked at.
      MainHeader header;
      std::memcpy(&header, bytes.data(), sizeof header);
      header.bytes = bytes.size();
      if (random.Below(2) == 0) header.entries = static_cast<uint32_t>(random.Below(600));
      std::memcpy(bytes.data(), &header, sizeof header);
      EXPECT_FALSE(DecodeStarts(bytes, kAt).ok()) << seed;
    }
    EXPECT_EQ(OutcomeOf(bytes), kCorrupt) << seed;
  }
}

TEST(SephashMain, ItIsOfAnotherSegment_ItIsCorrupt) {
  // Given a whole MainSegment
  // When it is read for another CurSegment than its own
  // Expect kCorrupt with a text that says so
  const std::vector<std::byte> whole = Encode(Draw(4, 40, 3));
  const Result<MainContent> read = DecodeMain(whole, kAt, kSegment + pool::kLine);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(read.error().message().find("belongs to another segment"), std::string::npos);
}

TEST(SephashMain, EntriesAreOutOfOrder_ItIsCorrupt) {
  // Given entries that are not sorted, with the right checksum
  // When the MainSegment is read
  // Expect kCorrupt: a search by ranges would miss some of them
  MainContent content = Draw(5, 40, 0);
  std::swap(content.entries.front(), content.entries.back());
  EXPECT_EQ(OutcomeOf(Encode(content)), kCorrupt);
}

}  // namespace
}  // namespace farside::index::sephash
