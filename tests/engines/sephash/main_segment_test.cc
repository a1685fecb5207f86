// MainSegments as bytes: what is written is read again, and what was damaged is not taken for a MainSegment.
#include "index/sephash/main_segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
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
// Pages of 16 words, and of 512.
constexpr Shape kSmall{.entries = 14, .main = 16};
constexpr Shape kUsual{};
static_assert(kSmall.page_words() == 16 && kUsual.page_words() == 512);

MainContent Draw(uint64_t seed, size_t entries, size_t dropped) {
  Random random(seed);
  MainContent content;
  content.merges = random.Below(1'000'000) + 1;
  content.segment = kSegment;
  content.sibling = random.Below(2) * 0x8000;
  content.parent = random.Below(2) * 0xc000;
  content.parent_meta = static_cast<uint32_t>(random.Below(uint64_t{1} << 32));
  for (size_t i = 0; i < entries; ++i) {
    content.entries.push_back(Entry::OfBlock(0, static_cast<Tag>(random.Below(1 << 20)),
                                             (i + 1) * pool::kLine, random.Below(7) * pool::kLine));
  }
  std::sort(content.entries.begin(), content.entries.end());
  for (size_t i = 0; i < dropped; ++i)
    content.dropped.emplace_back((entries + i + 1) * pool::kLine, (random.Below(20) + 1) * pool::kLine);
  return content;
}

// `spare`: pages beyond those that the content needs.
MainImage Encode(const Shape& shape, const MainContent& content, uint64_t spare = 0) {
  std::vector<uint32_t> pages(shape.PagesOf(content.words()) + spare);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<uint32_t>(7 * i + 3);
  return EncodeMain(shape, content, pages);
}

Result<MainContent> Decode(const Shape& shape, const MainImage& image, uint64_t segment = kSegment) {
  const Result<MainHead> head = DecodeHead(shape, image.head, kAt, segment);
  if (!head.ok()) return head.error();
  return DecodeMain(*head, image.pages, kAt);
}

bool IsFilter(size_t byte) { return byte >= kFilterOffset && byte < kStartsOffset; }

constexpr std::string_view kWhole = "whole";
constexpr std::string_view kCorrupt = "kCorrupt";
std::string_view OutcomeOf(const Shape& shape, const MainImage& image) {
  const Result<MainContent> decoded = Decode(shape, image);
  return decoded.ok() ? kWhole : Name(decoded.error().code());
}
std::string_view OutcomeOfHead(const Shape& shape, std::span<const std::byte> bytes) {
  const Result<MainHead> head = DecodeHead(shape, bytes, kAt, kSegment);
  return head.ok() ? kWhole : Name(head.error().code());
}

void ExpectReadAgain(const Shape& shape, const MainContent& content, uint64_t spare) {
  const MainImage image = Encode(shape, content, spare);
  const uint64_t pages = shape.PagesOf(content.words()) + spare;
  EXPECT_EQ(image.head.size(), shape.HeadBytes(pages));
  EXPECT_EQ(image.pages.size(), pages * shape.page_bytes());
  const Result<MainHead> head = DecodeHead(shape, image.head, kAt, kSegment);
  ASSERT_TRUE(head.ok()) << head.error().ToString();
  EXPECT_EQ(head->merges, content.merges);
  EXPECT_EQ(head->segment, content.segment);
  EXPECT_EQ(head->sibling, content.sibling);
  EXPECT_EQ(head->parent, content.parent);
  EXPECT_EQ(head->parent_meta, content.parent_meta);
  EXPECT_EQ(head->words(), content.words());
  EXPECT_EQ(head->starts, StartsOf(content.entries));
  ASSERT_EQ(head->pages.size(), pages);
  for (size_t i = 0; i < pages; ++i) EXPECT_EQ(head->pages[i], 7 * i + 3);
  for (const FilterLine& line : head->filter) {
    EXPECT_EQ(line.merges, content.merges);
    EXPECT_TRUE(std::all_of(line.bytes.begin(), line.bytes.end(), [](uint8_t byte) { return byte == 0; }));
  }
  const Result<MainContent> read = DecodeMain(*head, image.pages, kAt);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->merges, content.merges);
  EXPECT_EQ(read->segment, content.segment);
  EXPECT_EQ(read->sibling, content.sibling);
  EXPECT_EQ(read->parent, content.parent);
  EXPECT_EQ(read->parent_meta, content.parent_meta);
  EXPECT_EQ(read->entries, content.entries);
  EXPECT_EQ(read->dropped, content.dropped);
  EXPECT_EQ(read->pages, head->pages);
}

TEST(SephashMain, WhatIsWrittenIsReadAgain) {
  // Given MainSegments of no entries, of few, of as many as two bytes can count, and of more; some of them
  // with pages that they do not need
  // When their bytes are made and read
  // Expect the same entries, dropped blocks, names and pages; starts that follow from the entries; and a
  // filter that is empty
  for (const size_t entries : {size_t{0}, size_t{1}, size_t{8064}, size_t{0xffff}, size_t{0x10000}}) {
    for (const size_t dropped : {size_t{0}, size_t{1}, size_t{126}}) {
      const MainContent content = Draw(entries + dropped, entries, dropped);
      ExpectReadAgain(kUsual, content, entries % 2 * 3);
      ExpectReadAgain(kSmall, content, dropped % 2);
    }
  }
}

TEST(SephashMain, HeadsOfUpToSixteenPagesHaveOneSize) {
  // Given MainSegments of any number of pages
  // When the sizes of their heads are computed
  // Expect 960 bytes up to 16 pages, so that their memory serves any of them; then a line for 16 pages more;
  // and wider starts from the page on with which two bytes cannot count the entries
  for (uint64_t pages = 0; pages <= 16; ++pages) EXPECT_EQ(kUsual.HeadBytes(pages), 960u) << pages;
  EXPECT_EQ(kUsual.HeadBytes(17), 1024u);
  EXPECT_EQ(kUsual.StartBytes(127), 2u);
  EXPECT_EQ(kUsual.StartBytes(128), 4u);
  EXPECT_EQ(kUsual.HeadBytes(128), 384u + 1024u + 512u);
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

TEST(SephashMain, AnyByteIsFlipped_OnlyTheFilterAndWhatIsUnusedMayChange) {
  // Given a MainSegment with entries, dropped blocks and a page that it does not use When one bit of one byte
  // is flipped, any of them Expect kCorrupt; except for a byte of the filter, which clients may set, and for
  // bytes of the pages behind the last word: then it is read as it was
  const MainContent content = Draw(2, 40, 3);
  const MainImage whole = Encode(kSmall, content, 1);
  for (size_t byte = 0; byte < whole.head.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      MainImage flipped = whole;
      flipped.head[byte] ^= std::byte(1 << bit);
      ASSERT_EQ(OutcomeOf(kSmall, flipped), IsFilter(byte) ? kWhole : kCorrupt) << byte;
    }
  }
  for (size_t byte = 0; byte < whole.pages.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      MainImage flipped = whole;
      flipped.pages[byte] ^= std::byte(1 << bit);
      const bool is_used = byte < content.words() * sizeof(Entry);
      ASSERT_EQ(OutcomeOf(kSmall, flipped), is_used ? kCorrupt : kWhole) << byte;
    }
  }
}

TEST(SephashMain, TheHeadHasAnotherSize_ItIsCorrupt) {
  // Given the head of a MainSegment of more pages than most have
  // When its bytes end earlier, at any byte, or later
  // Expect kCorrupt, and no access beyond the end
  const std::vector<std::byte> whole = Encode(kSmall, Draw(3, 600, 3)).head;
  ASSERT_GT(whole.size(), kSmall.HeadBytes(Shape::kUsualPages));
  ASSERT_EQ(OutcomeOfHead(kSmall, whole), kWhole);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_EQ(OutcomeOfHead(kSmall, cut), kCorrupt) << size;
  }
  std::vector<std::byte> longer = whole;
  longer.resize(whole.size() + pool::kLine);
  EXPECT_EQ(OutcomeOfHead(kSmall, longer), kCorrupt);
}

TEST(SephashMain, HeadsOfRandomBytes_NoneIsTakenAndNoneIsFollowed) {
  // Given bytes that another table may have left, with a header that says anything
  // When they are read as the head of a MainSegment
  // Expect kCorrupt, and no access beyond the end
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    std::vector<std::byte> bytes(random.Below(64) * pool::kLine);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
    if (bytes.size() >= sizeof(MainHeader)) {
      // The number of pages may be right, so that the rest has to be looked at.
      MainHeader header;
      std::memcpy(&header, bytes.data(), sizeof header);
      const uint64_t numbers = bytes.size() - std::min<size_t>(bytes.size(), kUsual.NumbersOffset(0));
      header.pages = static_cast<uint32_t>(numbers / sizeof(uint32_t));
      if (random.Below(2) == 0) header.entries = static_cast<uint32_t>(random.Below(600));
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    EXPECT_EQ(OutcomeOfHead(kUsual, bytes), kCorrupt) << seed;
  }
}

TEST(SephashMain, PagesAreThoseOfAnotherMainSegment_ItIsCorrupt) {
  // Given the heads of two MainSegments with as many entries
  // When the pages of one are read by the head of the other
  // Expect kCorrupt: the head has the checksum of its entries
  MainImage mixed = Encode(kSmall, Draw(6, 40, 3));
  mixed.pages = Encode(kSmall, Draw(7, 40, 3)).pages;
  EXPECT_EQ(OutcomeOf(kSmall, mixed), kCorrupt);
}

TEST(SephashMain, ItIsOfAnotherSegment_ItIsCorrupt) {
  // Given a whole MainSegment
  // When it is read for another CurSegment than its own, or for any
  // Expect kCorrupt with a text that says so, or the MainSegment
  const MainImage whole = Encode(kSmall, Draw(4, 40, 3));
  const Result<MainContent> read = Decode(kSmall, whole, kSegment + pool::kLine);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(read.error().message().find("belongs to another segment"), std::string::npos);
  EXPECT_TRUE(DecodeHead(kSmall, whole.head, kAt, std::nullopt).ok());
}

TEST(SephashMain, EntriesAreOutOfOrder_ItIsCorrupt) {
  // Given entries that are not sorted, with the right checksum
  // When the MainSegment is read
  // Expect kCorrupt: a search by ranges would miss some of them
  MainContent content = Draw(5, 40, 0);
  std::swap(content.entries.front(), content.entries.back());
  EXPECT_EQ(OutcomeOf(kSmall, Encode(kSmall, content)), kCorrupt);
}

}  // namespace
}  // namespace farside::index::sephash
