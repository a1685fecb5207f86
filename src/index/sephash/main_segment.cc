#include "index/sephash/main_segment.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"
#include "index/sephash/errors.h"

namespace farside::index::sephash {
namespace {

// Of what never changes: the header but for the checksum itself, and everything behind the filter.
uint64_t Checksum(const MainHeader& header, std::span<const std::byte> behind_filter) {
  MainHeader summed = header;
  summed.checksum = 0;
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
Starts ReadStarts(std::span<const std::byte> bytes) {
  std::array<Number, kFingerprints> numbers;
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  Starts starts;
  std::copy(numbers.begin(), numbers.end(), starts.begin());
  return starts;
}

template <class Word>
std::vector<Word> ReadWords(std::span<const std::byte> bytes, size_t count) {
  std::vector<Word> words(count);
  if (count > 0) std::memcpy(words.data(), bytes.data(), count * sizeof(Word));
  return words;
}

MainHeader HeaderOf(std::span<const std::byte> bytes) {
  MainHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
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

void EncodeMain(const MainContent& content, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  MainHeader header{};
  header.merges = content.merges;
  header.segment = content.segment;
  header.sibling = content.sibling;
  header.bytes = out.size();
  header.entries = static_cast<uint32_t>(content.entries.size());
  header.dropped = static_cast<uint32_t>(content.dropped.size());
  for (size_t line = 0; line < kFilterLines; ++line)
    std::memcpy(out.data() + kFilterOffset + line * sizeof(FilterLine), &content.merges, sizeof(uint64_t));
  const Starts starts = StartsOf(content.entries);
  if (StartBytes(header.entries) == sizeof(uint16_t)) {
    EncodeStarts<uint16_t>(starts, out.subspan(kStartsOffset));
  } else {
    EncodeStarts<uint32_t>(starts, out.subspan(kStartsOffset));
  }
  const std::span<std::byte> words = out.subspan(EntriesOffset(header.entries));
  const auto entries = std::as_bytes(std::span(content.entries));
  const auto dropped = std::as_bytes(std::span(content.dropped));
  std::copy(entries.begin(), entries.end(), words.begin());
  std::copy(dropped.begin(), dropped.end(), words.begin() + static_cast<ptrdiff_t>(entries.size()));
  header.checksum = Checksum(header, out.subspan(kStartsOffset));
  std::memcpy(out.data(), &header, sizeof header);
}

Result<MainContent> DecodeMain(std::span<const std::byte> bytes, fabric::FarAddr at, uint64_t segment) {
  if (bytes.size() < kStartsOffset) return DamagedMain(at, "is too short");
  const MainHeader header = HeaderOf(bytes);
  if (header.bytes != bytes.size() || MainBytes(header.entries, header.dropped) > bytes.size())
    return DamagedMain(at, "has another size than its segment says");
  if (header.checksum != Checksum(header, bytes.subspan(kStartsOffset)))
    return DamagedMain(at, "does not have the checksum that it names");
  if (header.segment != segment) return DamagedMain(at, "belongs to another segment");
  MainContent content;
  content.allocated = header.bytes;
  content.merges = header.merges;
  content.segment = header.segment;
  content.sibling = header.sibling;
  const std::span<const std::byte> words = bytes.subspan(EntriesOffset(header.entries));
  content.entries = ReadWords<Entry>(words, header.entries);
  content.dropped = ReadWords<DroppedBlock>(words.subspan(header.entries * sizeof(Entry)), header.dropped);
  if (!std::is_sorted(content.entries.begin(), content.entries.end()))
    return DamagedMain(at, "is not sorted");
  return content;
}

Result<Starts> DecodeStarts(std::span<const std::byte> bytes, fabric::FarAddr at) {
  const MainHeader header = HeaderOf(bytes);
  const bool narrow = StartBytes(header.entries) == sizeof(uint16_t);
  if (bytes.size() < EntriesOffset(header.entries)) return DamagedMain(at, "is too short");
  const std::span<const std::byte> behind = bytes.subspan(kStartsOffset);
  const Starts starts = narrow ? ReadStarts<uint16_t>(behind) : ReadStarts<uint32_t>(behind);
  if (!std::is_sorted(starts.begin(), starts.end()) || starts.back() > header.entries)
    return DamagedMain(at, "says that fingerprints begin where they cannot");
  return starts;
}

}  // namespace farside::index::sephash
