// Looking for tags in buckets: the fast way finds what the simple way finds.
#include <array>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "base/random.h"
#include "index/shard/bucket.h"

namespace farside::index::shard {
namespace {

using Entries = std::array<Entry, kMostLines * kSlotsPerLine>;

// Entries of few different tags, so that many match; some are empty or holes, and flags are set at random.
Entries RandomEntries(Random& random, uint64_t tags) {
  Entries entries;
  for (Entry& entry : entries) {
    const uint64_t kind = random.Below(8);
    if (kind == 0) {
      entry = Entry();
    } else if (kind == 1) {
      entry = Entry::Hole().WithTag(random.Below(tags));
    } else {
      const uint64_t tag = random.Below(tags) * (Entry::Tag::kMax / tags);
      entry = Entry::Of((1 + random.Below(1 << 20)) * pool::kLine, random.Below(20) * pool::kLine, tag);
    }
    entry = entry.WithFlag(random.Below(2) == 0);
  }
  return entries;
}

std::optional<size_t> FindTagSlotBySlot(const Entries& entries, const Shape& shape, uint64_t tag,
                                        size_t from) {
  for (size_t slot = from; slot < shape.slots; ++slot) {
    if (entries[slot].has_block() && entries[slot].tag() == tag) return slot;
  }
  return std::nullopt;
}

TEST(ShardBucket, FindTag_FindsWhatLookingAtEachSlotFinds) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    // Given buckets of all shapes with entries of a few tags, the smallest and nearly the largest among them.
    const uint64_t tags = 1 + random.Below(6);
    const Entries entries = RandomEntries(random, tags);
    const Shape shape{.slots = static_cast<uint32_t>(1 + random.Below(kMostLines * kSlotsPerLine))};
    for (uint64_t i = 0; i <= tags; ++i) {
      const uint64_t tag = i * (Entry::Tag::kMax / tags);
      for (size_t from = 0; from <= shape.slots; ++from) {
        // When the next slot with a tag is looked for. Expect the one that a loop over all slots finds.
        ASSERT_EQ(FindTag(entries.data(), shape, tag, from), FindTagSlotBySlot(entries, shape, tag, from))
            << "slots " << shape.slots << ", tag " << tag << ", from " << from;
      }
    }
  }
}

}  // namespace
}  // namespace farside::index::shard
