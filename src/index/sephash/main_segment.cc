#include "index/sephash/main_segment.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"
#include "index/sephash/errors.h"

namespace farside::index::sephash {
namespace {

// Of what never changes: the header but for the checksum itself, and everything behind the filter.
uint64_t HeadChecksum(const MainHeader& header, std::span<const std::byte> behind_filter) {
  MainHeader summed = header;
  summed.head_checksum = 0;
  return Hash64(behind_filter, Hash64(std::as_bytes(std::span(&summed, 1))));
}

template <class Number>
void EncodeStarts(const Starts& starts, std::span<std::byte> out) {
  std::array<Number, kFingerprints> numbers;
  std::transform(starts.begin(), starts.end(), numbers.begin(),
                 [](uint32_t start) { return static_cast<Number>(start); });
  std::memcpy(out.data(), numbers.data(), sizeof numbers);
}

template <class Number>
Starts DecodeStarts(std::span<const std::byte> bytes) {
  std::array<Number, kFingerprints> numbers;
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  Starts starts;
  std::copy(numbers.begin(), numbers.end(), starts.begin());
  return starts;
}

template <class Word>
std::vector<Word> DecodeWords(std::span<const std::byte> bytes, size_t count) {
  std::vector<Word> words(count);
  if (count > 0) std::memcpy(words.data(), bytes.data(), count * sizeof(Word));
  return words;
}

}  // namespace

Starts StartsOf(std::span<const Entry> entries) {
  Starts starts;
  size_t entry = 0;
  for (size_t fp = 0; fp < kFingerprints; ++fp) {
    while (entry < entries.size() && entries[entry].fp() < fp) ++entry;
    starts[fp] = static_cast<uint32_t>(entry);
  }
  return starts;
}

MainImage EncodeMain(const Shape& shape, const MainContent& content, std::span<const uint32_t> pages) {
  MainImage image{.head = std::vector<std::byte>(shape.HeadBytes(pages.size())),
                  .pages = std::vector<std::byte>(pages.size() * shape.page_bytes())};
  const auto entries = std::as_bytes(std::span(content.entries));
  const auto dropped = std::as_bytes(std::span(content.dropped));
  std::copy(entries.begin(), entries.end(), image.pages.begin());
  std::copy(dropped.begin(), dropped.end(), image.pages.begin() + static_cast<ptrdiff_t>(entries.size()));

  const std::span<std::byte> head(image.head);
  for (size_t line = 0; line < kFilterLines; ++line)
    std::memcpy(&head[kFilterOffset + line * sizeof(FilterLine)], &content.merges, sizeof(uint64_t));
  const Starts starts = StartsOf(content.entries);
  if (shape.StartBytes(pages.size()) == sizeof(uint16_t)) {
    EncodeStarts<uint16_t>(starts, head.subspan(kStartsOffset));
  } else {
    EncodeStarts<uint32_t>(starts, head.subspan(kStartsOffset));
  }
  const auto numbers = std::as_bytes(pages);
  std::copy(numbers.begin(), numbers.end(),
            image.head.begin() + static_cast<ptrdiff_t>(shape.NumbersOffset(pages.size())));
  MainHeader header{};
  header.merges = content.merges;
  header.segment = content.segment;
  header.sibling = content.sibling;
  header.parent = content.parent;
  header.parent_meta = content.parent_meta;
  header.entries = static_cast<uint32_t>(content.entries.size());
  header.dropped = static_cast<uint32_t>(content.dropped.size());
  header.pages = static_cast<uint32_t>(pages.size());
  header.words_checksum = Hash64(std::span(image.pages).first(content.words() * sizeof(Entry)));
  header.head_checksum = HeadChecksum(header, head.subspan(kStartsOffset));
  std::memcpy(head.data(), &header, sizeof header);
  return image;
}

Result<MainHead> DecodeHead(const Shape& shape, std::span<const std::byte> bytes, fabric::FarAddr at,
                            std::optional<uint64_t> segment) {
  if (bytes.size() < kStartsOffset) return DamagedMain(at, "is too short");
  MainHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (shape.HeadBytes(header.pages) != bytes.size())
    return DamagedMain(at, "has another number of pages than its segment says");
  if (header.head_checksum != HeadChecksum(header, bytes.subspan(kStartsOffset)))
    return DamagedMain(at, "does not have the checksum that it names");
  if (segment.has_value() && header.segment != *segment) return DamagedMain(at, "belongs to another segment");
  MainHead head;
  head.merges = header.merges;
  head.segment = header.segment;
  head.sibling = header.sibling;
  head.parent = header.parent;
  head.parent_meta = header.parent_meta;
  head.words_checksum = header.words_checksum;
  head.entries = header.entries;
  head.dropped = header.dropped;
  head.pages = DecodeWords<uint32_t>(bytes.subspan(shape.NumbersOffset(header.pages)), header.pages);
  std::memcpy(head.filter.data(), &bytes[kFilterOffset], sizeof head.filter);
  const std::span<const std::byte> starts = bytes.subspan(kStartsOffset);
  const bool narrow = shape.StartBytes(header.pages) == sizeof(uint16_t);
  head.starts = narrow ? DecodeStarts<uint16_t>(starts) : DecodeStarts<uint32_t>(starts);
  if (shape.PagesOf(head.words()) > header.pages || !std::is_sorted(head.starts.begin(), head.starts.end()) ||
      head.starts.back() > head.entries)
    return DamagedMain(at, "has numbers that cannot be");
  return head;
}

Result<MainContent> DecodeMain(const MainHead& head, std::span<const std::byte> pages, fabric::FarAddr at) {
  if (Hash64(pages.first(head.words() * sizeof(Entry))) != head.words_checksum)
    return DamagedMain(at, "has pages without the checksum that it names");
  MainContent content;
  static_cast<MainNames&>(content) = head;
  content.entries = DecodeWords<Entry>(pages, head.entries);
  content.dropped = DecodeWords<DroppedBlock>(pages.subspan(head.entries * sizeof(Entry)), head.dropped);
  content.pages = head.pages;
  if (!std::is_sorted(content.entries.begin(), content.entries.end()))
    return DamagedMain(at, "is not sorted");
  return content;
}

}  // namespace farside::index::sephash
